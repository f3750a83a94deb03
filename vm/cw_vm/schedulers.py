# SPDX-License-Identifier: GPL-2.0-only
"""The schedulers that guests run: the kernel's, coreward's, and its published peers."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import peers
from .errors import CannotBuild

_REPOSITORY = Path(__file__).resolve().parents[2]
FUNCTIONS = Path(__file__).with_name("scx.sh")

KERNEL = "eevdf"
"""The kernel's own scheduler: nothing is loaded."""
COREWARD = "coreward"
NAMES = (KERNEL, COREWARD, *peers.VERSIONS)
SHADOW = "shadow"
"""The kernel's own, watched by `coreward shadow`."""

PROLOGUE = ". /usr/lib/scx.sh\n"
"""Begins the commands of guests that run schedulers: the functions of scx.sh."""


@dataclass(frozen=True)
class Scheduler:
    """One scheduler, ready to be run in a guest."""

    name: str
    command: str
    """What starts it in a guest; empty for the kernel's own."""
    copies: tuple[str, ...]
    """The files that the guest needs for it, as `session.Options` takes them."""

    @property
    def ops(self) -> str:
        """The beginning of its name in /sys/kernel/sched_ext/root/ops; empty for the kernel's own."""
        return "" if self.name in (KERNEL, SHADOW) else self.name.removeprefix("scx_")

    @property
    def start(self) -> str:
        """Starts it in a guest, with functions of scx.sh."""
        return f"{'shadow_start' if self.name == SHADOW else 'scx_start'} {self.command}".strip()


def coreward_live() -> Path:
    """The `coreward-live` program: `$COREWARD_LIVE`, this tree's, or the one in the PATH."""
    built = _REPOSITORY / "target/release/coreward-live"
    found = os.environ.get("COREWARD_LIVE") or (built if built.is_file() else shutil.which("coreward-live"))
    if not found:
        raise CannotBuild(
            "there is no coreward-live program yet: run 'make live', or set COREWARD_LIVE to its path"
        )
    return Path(found).absolute()


def find(name: str, arguments: str = "") -> Scheduler:
    """A scheduler by its name, and with more arguments for its command."""
    functions = f"{FUNCTIONS}:/usr/lib/scx.sh"
    if name == KERNEL:
        return Scheduler(name, "", (functions,))
    if name in (COREWARD, SHADOW):
        program, subcommand = coreward_live(), "live" if name == COREWARD else "shadow --json"
    else:
        program, subcommand = peers.program(name), ""
        if not program.is_file():
            raise CannotBuild(f"{name} has not been built yet: run vm/peers")
    # $COREWARD_LIVE may be called anything
    guest = "/usr/bin/coreward-live" if name in (COREWARD, SHADOW) else f"/usr/bin/{program.name}"
    command = " ".join(filter(None, (guest, subcommand, arguments)))
    return Scheduler(name, command, (functions, f"{program}:{guest}"))
