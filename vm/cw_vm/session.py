# SPDX-License-Identifier: GPL-2.0-only
"""One guest from its options to its command's status."""

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import accel, guest, hardware, machine, packages, qemu
from .errors import CannotBuild, EmulatorFailed, GuestHung, GuestPanicked

# Always on the kernel's command line:
#   sched_verbose     debugfs shows the sched domains
#   panic=-1 oops=panic  a broken kernel ends at once
#   tsc=reliable      the emulated clock is the host's: do not distrust it when the host is busy
#   no_timer_check    nor the timer: the check of it at boot fails now and then on a busy host
#   mitigations=off   they are for other hardware, and slow under emulation
#   nowatchdog        a CPU that the host does not run for seconds is not locked up
_COMMAND_LINE = "sched_verbose panic=-1 oops=panic nowatchdog mitigations=off loglevel=5"
_COMMAND_LINE_X86 = "tsc=reliable no_timer_check"


@dataclass(frozen=True)
class Options:
    """The description of a guest."""

    kernel: str
    machine: str
    command: str
    arch: str | None = None
    cmdline: str = ""
    memory: int | None = None
    boot_timeout: float = 300
    timeout: float = 600
    accel: str = "auto"
    instruction_ns: int | None = None
    """The ns that an instruction takes on the clock of an emulated guest; None is the host's clock."""
    copies: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    out: Path | None = None
    keep: Path | None = None
    refresh: bool = False
    stall: bool = False
    """Whether one CPU after the other stands still for a while (`stall.Staller`)."""
    retries: int = 2
    """How often a guest that breaks before its command starts is tried again."""


def positive(text: str) -> int:
    """A number of seconds or MiB."""
    value = int(text)
    if not 1 <= value <= 1 << 20:
        raise ValueError
    return value


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options that all programs here have."""
    add = parser.add_argument
    add(
        "--arch",
        choices=("amd64", "arm64"),
        help="the guest's architecture [default: that of the machine]",
    )
    add("--memory", type=positive, metavar="MIB", help="the guest's memory [default: depends on its CPUs]")
    add(
        "--timeout",
        type=positive,
        default=600,
        metavar="S",
        help="limit for the command, in seconds [default: 600]",
    )
    add(
        "--boot-timeout",
        type=positive,
        default=300,
        metavar="S",
        help="limit until the command starts, in seconds [default: 300]",
    )
    add(
        "--accel",
        choices=("auto", "kvm", "tcg-multi", "tcg-single"),
        default="auto",
        help="[default: KVM if it works, otherwise TCG with one thread for all CPUs]",
    )
    add(
        "--instruction-ns",
        type=int,
        choices=(1, 2, 4, 8, 16, 32),
        metavar="N",
        help="let the clock of an emulated guest count instructions, of N ns each (a power of 2 up to 32): "
        "times then do not depend on other load",
    )
    add(
        "--copy-in",
        action="append",
        default=[],
        metavar="PATH[:GUEST]",
        help="a file or a directory tree to copy into the guest, to the same path or another",
    )
    add(
        "--package",
        action="append",
        default=[],
        metavar="NAME",
        help="a Debian package to fetch for the guest, whose programs the command uses",
    )
    add("--refresh", action="store_true", help="look for a newer kernel of the series")


def common(parsed: argparse.Namespace) -> dict[str, Any]:
    """The options of `add_options`, as `Options` calls them."""
    return {
        "arch": parsed.arch,
        "memory": parsed.memory,
        "timeout": parsed.timeout,
        "boot_timeout": parsed.boot_timeout,
        "accel": parsed.accel,
        "instruction_ns": parsed.instruction_ns,
        "copies": tuple(parsed.copy_in),
        "packages": tuple(parsed.package),
        "refresh": parsed.refresh,
    }


@contextlib.contextmanager
def _run_directory(keep: Path | None) -> Iterator[Path]:
    """A directory for the run: a new one that is kept if the guest fails, or the one asked for."""
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    run = Path(tempfile.mkdtemp(prefix="coreward-vm-"))
    try:
        yield run
    except (GuestHung, GuestPanicked, EmulatorFailed):
        (run / "initramfs").unlink(missing_ok=True)
        raise
    except BaseException:
        shutil.rmtree(run)
        raise
    shutil.rmtree(run)


def _guest(chosen: Options, run: Path) -> qemu.Guest:
    """Builds the guest: fetches what it needs and writes its initramfs."""
    host = machine.load(chosen.machine)
    arch = chosen.arch or machine.guest_arch(host)
    program = qemu.program(arch)
    kernel = packages.kernel(chosen.kernel, arch, chosen.refresh)
    if arch == "amd64":
        built = hardware.for_x86(host, chosen.memory)
    else:
        built = hardware.for_arm64(host, chosen.memory, program, run)
    accelerator = accel.choose(chosen.accel, chosen.instruction_ns, kernel, arch)
    contents = guest.Contents(
        arch=arch,
        command=chosen.command,
        kernel=kernel,
        copies=chosen.copies,
        packages=chosen.packages,
        madt=built.madt,
    )
    (run / "initramfs").write_bytes(guest.build(contents))
    line = [
        f"console={accel.console(arch)}",
        _COMMAND_LINE,
        _COMMAND_LINE_X86 if arch == "amd64" else "",
        chosen.cmdline,
    ]
    return qemu.Guest(
        program,
        built.arguments,
        accelerator,
        kernel.image,
        run / "initramfs",
        " ".join(filter(None, line)),
        chosen.stall,
    )


def _unpack(archive: Path, out: Path) -> None:
    """Puts the files of /out where they are wanted."""
    out.mkdir(parents=True, exist_ok=True)
    if archive.stat().st_size == 0:
        return
    command = ["tar", "--extract", "--no-same-owner", "--file", str(archive), "--directory", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EmulatorFailed(
            f"the files of /out did not come back whole: {done.stderr.strip().splitlines()[0]}"
        )


def run(chosen: Options) -> int:
    """Runs a guest and returns its command's status. A guest that breaks before the command has started
    is retried a few times: emulated CPUs can fail on code that a kernel patches as it boots."""
    with _run_directory(chosen.keep) as directory:
        built = _guest(chosen, directory)
        limits = qemu.Limits(chosen.boot_timeout, chosen.timeout)
        for left in range(chosen.retries, -1, -1):
            try:
                status = qemu.run_guest(built, directory, limits)
                break
            except (GuestPanicked, EmulatorFailed) as error:
                if qemu.started(directory) or not left:
                    raise
                print(f"vm: {error}; it had not come up yet: trying again", file=sys.stderr)
        if chosen.out:
            _unpack(directory / "out", chosen.out)
    return status
