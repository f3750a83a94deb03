# SPDX-License-Identifier: GPL-2.0-only
"""A machine as `coreward topology M --json` describes it."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import CannotBuild

_REPOSITORY = Path(__file__).resolve().parents[2]

# Intel CPUs and arm64 keep the kernel's default of this; only some AMD CPUs raise it.
KERNEL_RECLAIM_DISTANCE = 30


@dataclass(frozen=True)
class Cpu:
    """Where one CPU is. Cores, clusters, LLCs, packages and nodes are numbered over the machine."""

    core: int
    cluster: int | None
    llc: int
    package: int
    node: int
    capacity: int


@dataclass(frozen=True)
class Machine:
    """CPUs by number, and the distances between their nodes."""

    name: str
    arch: str
    cpus: tuple[Cpu, ...]
    distances: tuple[tuple[int, ...], ...]
    reclaim_distance: int

    @property
    def nodes(self) -> int:
        """The number of NUMA nodes."""
        return len(self.distances)

    @property
    def asymmetric(self) -> bool:
        """Whether CPUs differ in capacity."""
        return len({cpu.capacity for cpu in self.cpus}) > 1


def guest_arch(machine: Machine) -> str:
    """Debian's name of the architecture that a machine's guests are of."""
    arch = {"x86": "amd64", "arm64": "arm64"}.get(machine.arch)
    if not arch:
        raise CannotBuild(f"{machine.name} is a machine of {machine.arch}, guests are of x86 or arm64")
    return arch


def coreward() -> str:
    """The `coreward` program: `$COREWARD`, this tree's, or the one in the PATH."""
    built = [_REPOSITORY / "target" / kind / "coreward" for kind in ("release", "debug")]
    newest = max((path for path in built if path.is_file()), key=lambda p: p.stat().st_mtime, default=None)
    program = os.environ.get("COREWARD") or (str(newest) if newest else shutil.which("coreward"))
    if not program:
        raise CannotBuild(
            "there is no coreward program yet: run 'cargo build -p coreward', or set COREWARD to its path"
        )
    return program


def ask(*arguments: str) -> str:
    """What `coreward` prints."""
    done = subprocess.run([coreward(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(done.stderr.strip().removeprefix("coreward: ") or "coreward failed")
    return done.stdout


def load(name: str) -> Machine:
    """Reads a machine: a preset, a file or a shorthand."""
    facts = json.loads(ask("topology", name, "--json"))
    keys = Cpu.__dataclass_fields__
    machine = Machine(
        name=facts["name"],
        arch=facts["arch"],
        cpus=tuple(Cpu(**{key: cpu[key] for key in keys}) for cpu in facts["cpus"]),
        distances=tuple(tuple(row) for row in facts["distances"]),
        reclaim_distance=facts["reclaim_distance"],
    )
    _check_reclaim(machine)
    return machine


def _check_reclaim(machine: Machine) -> None:
    reclaim, usual = machine.reclaim_distance, KERNEL_RECLAIM_DISTANCE
    for distance in {d for row in machine.distances for d in row}:
        if (distance > reclaim) != (distance > usual):
            raise CannotBuild(
                f"{machine.name} has nodes at a distance of {distance} and a reclaim distance of {reclaim}, "
                f"but in a guest it is always {usual}"
            )
