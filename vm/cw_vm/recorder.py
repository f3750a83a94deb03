# SPDX-License-Identifier: GPL-2.0-only
"""coreward-record, built for a guest."""

import subprocess
from pathlib import Path

from . import packages
from .errors import CannotBuild

_SOURCE = Path(__file__).resolve().parents[2] / "bpf"
_LIBRARIES = ["libbpf-dev", "libc6-dev", "libelf-dev", "zlib1g-dev"]

PACKAGES = ("libbpf1",)
"""What guests of another architecture than the host's need to run it."""


def build(arch: str) -> Path:
    """Builds the recorder for an architecture, with the host's libraries or Debian's of that one."""
    command = ["make", "-s", "-C", str(_SOURCE), f"ARCH={arch}"]
    if arch != packages.host_arch():
        command.append(f"SYSROOT={packages.tree(_LIBRARIES, arch)}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"coreward-record for {arch} does not build:\n{done.stderr.strip()}")
    return _SOURCE / "build" / arch / "coreward-record"
