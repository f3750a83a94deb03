# SPDX-License-Identifier: GPL-2.0-only
"""Published sched_ext schedulers to compare with coreward's: built from the Rust registry
once, and kept in the cache directory."""

import os
import shutil
import subprocess
from pathlib import Path

from . import cache
from .errors import CannotBuild

# All on scx_cargo 1.1.4: scx_cosmos 1.1.4 is on 1.1.1, and does not load on Linux 7.3, which has no
# scx_bpf_cpu_rq any more.
VERSIONS = {"scx_bpfland": "1.1.4", "scx_cosmos": "1.1.7", "scx_rusty": "1.1.4", "scx_lavd": "1.1.4"}

# Others may need this machine's CPUs: builds take minutes, and nobody waits only for them.
_NICENESS = "10"


def _root(name: str) -> Path:
    """Where a peer is installed."""
    return cache.directory() / "peers" / f"{name}-{VERSIONS[name]}"


def _build() -> Path:
    """Where peers are compiled."""
    return cache.directory() / "peers" / "build"


def _clang() -> str:
    """The compiler of their BPF programs: what `$BPF_CLANG` names, else Debian's clang 19."""
    named = os.environ.get("BPF_CLANG")
    found = named or next((name for name in ("clang-19", "clang") if shutil.which(name)), None)
    if not found:
        raise CannotBuild("there is no clang on this machine: run 'scripts/setup.sh bench-live'")
    return found


def _install(name: str) -> None:
    command = ["nice", "-n", _NICENESS, "cargo", "install", "--quiet", "--locked", "--jobs", "2"]
    command += ["--version", f"={VERSIONS[name]}", "--root", str(_root(name))]
    command += ["--target-dir", str(_build()), name]
    done = subprocess.run(
        command, env={**os.environ, "BPF_CLANG": _clang()}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CannotBuild(f"{name} {VERSIONS[name]} does not build:\n{done.stderr.strip()}")


def missing() -> list[str]:
    """The peers that have not been built."""
    return [name for name in VERSIONS if not program(name).is_file()]


def build(name: str) -> None:
    """Builds a peer. What the peers share is compiled once, and deleted when the last one is there."""
    with cache.locked("peers"):
        if not program(name).is_file():
            _install(name)
        if not missing():
            shutil.rmtree(_build(), ignore_errors=True)


def program(name: str) -> Path:
    """Where a peer is once it has been built."""
    return _root(name) / "bin" / name
