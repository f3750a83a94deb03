# SPDX-License-Identifier: GPL-2.0-only
"""Runs a guest under QEMU and watches it until it ends.

The guest talks through ports of one virtio-serial device, whose host ends are files in the run's
directory: `stdout` and `stderr` of the command, `status` (`started`, then `exit N`), and `out`, a
tar of what it left in /out. The kernel's console is in `console`. All of this is built into Debian's
kernels from 6.12 on; what is not in older ones comes as modules (`packages.Kernel.modules`).
"""

import contextlib
import ctypes
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from .errors import CannotBuild, EmulatorFailed, GuestHung, GuestPanicked
from .stall import Staller

_POLL_SECONDS = 0.05
_PORTS = ("stdout", "stderr", "status", "out")
_PR_SET_PDEATHSIG = 1
_QEMU_MAJOR = 10

_TROUBLE = re.compile(
    r"Kernel panic - not syncing.*|Oops:.*|BUG: .*|Unable to handle kernel .*|Internal error: .*"
)


@dataclass(frozen=True)
class Guest:
    """A guest that is ready to be started."""

    program: str
    machine: list[str]
    """QEMU's arguments for the machine: `-machine`, `-cpu`, `-smp`, `-numa` and the like."""
    accelerator: list[str]
    kernel: Path
    initramfs: Path
    command_line: str
    stall: bool = False
    """Whether its CPUs stand still now and then, one after the other, while the command runs."""


@dataclass(frozen=True)
class Limits:
    """How long a guest may take, in seconds in which it did not wait for a CPU of the local machine."""

    boot: float
    """Until the command starts."""
    command: float
    """From then until the guest is off."""


def program(arch: str) -> str:
    """QEMU for an architecture, at least of version 10."""
    name = {"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}[arch]
    try:
        text = subprocess.run([name, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotBuild(f"there is no {name} on this machine: run 'scripts/setup.sh vm'") from error
    version = re.search(r"version (\d+)\.(\d+)", text)
    if not version or int(version[1]) < _QEMU_MAJOR:
        found = version[0].split()[1] if version else "unknown"
        raise CannotBuild(
            f"{name} is of version {found}, {_QEMU_MAJOR} or later is needed: run 'scripts/setup.sh vm'"
        )
    return name


def command(guest: Guest, run: Path) -> list[str]:
    """QEMU's command line."""
    arguments = [guest.program, *guest.accelerator, *guest.machine]
    arguments += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    arguments += [
        "-kernel",
        str(guest.kernel),
        "-initrd",
        str(guest.initramfs),
        "-append",
        guest.command_line,
    ]
    if guest.stall:
        arguments += ["-name", "guest,debug-threads=on"]
    arguments += ["-serial", f"file:{run / 'console'}", "-device", "virtio-serial-pci,max_ports=8"]
    for number, name in enumerate(_PORTS, 1):
        arguments += ["-chardev", f"file,id={name},path={run / name}"]
        arguments += ["-device", f"virtserialport,chardev={name},name={name},nr={number}"]
    return arguments


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class _Follower:
    """Passes on what is appended to a file."""

    def __init__(self, path: Path, write: Callable[[bytes], object]) -> None:
        self._file = open(path, "rb")
        self._write = write

    def step(self) -> None:
        """Passes on what is new."""
        while data := self._file.read(1 << 20):
            self._write(data)

    def close(self) -> None:
        """Passes on the rest and closes the file."""
        self.step()
        self._file.close()


def _to(stream: TextIO) -> Callable[[bytes], object]:
    def write(data: bytes) -> None:
        stream.buffer.write(data)
        stream.buffer.flush()

    return write


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def trouble(run: Path) -> str | None:
    """The first complaint on the console that means that the kernel is broken."""
    match = _TROUBLE.search(_read(run / "console"))
    return match[0].strip() if match else None


def waited(pid: int) -> float:
    """For how many seconds a process was ready to run and had no CPU: that of its threads that waited longest."""
    waits = [0]
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # it has just ended
            waits.append(int(thread.read_text(encoding="utf-8").split()[1]))
    return max(waits) / 1e9


class Stopwatch:
    """The time that a process had: without that in which it had no CPU, and without pauses of this machine, which are
    steps that last for too long."""

    STEP_SECONDS = 1.0

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._now, self._waited = time.monotonic(), waited(pid)
        self._had = 0.0

    def step(self) -> float:
        """Looks again. The time since the beginning, in seconds."""
        now, without = time.monotonic(), waited(self._pid)
        self._had += max(0.0, min(now - self._now - (without - self._waited), self.STEP_SECONDS))
        self._now, self._waited = now, without
        return self._had


def _watch(
    process: "subprocess.Popen[bytes]",
    run: Path,
    limits: Limits,
    followers: list[_Follower],
    staller: Staller | None,
) -> None:
    """Waits until QEMU ends; ends it when time is up."""
    limit = limits.boot
    had = Stopwatch(process.pid)
    running = False
    while process.poll() is None:
        for follower in followers:
            follower.step()
        if running and staller:
            staller.step()
        if not running and started(run):
            running = True
            limit = limits.command
            had = Stopwatch(process.pid)
        if had.step() > limit:
            process.kill()
            process.wait()
            late = f"its command took more than {limits.command:g} s"
            if not running:
                late = f"it took more than {limits.boot:g} s to boot"
            said = trouble(run)
            raise GuestHung(f"the guest hung: {late}{_also(said)} (console: {run / 'console'})")
        time.sleep(_POLL_SECONDS)


def _also(said: str | None) -> str:
    return f"; its kernel said '{said}'" if said else ""


def started(run: Path) -> bool:
    """Whether the guest came as far as its command."""
    return _read(run / "status").startswith("started")


def run_guest(guest: Guest, run: Path, limits: Limits) -> int:
    """Boots a guest, passes on what its command prints, and returns the command's status."""
    for name in (*_PORTS, "console"):
        (run / name).write_bytes(b"")
    with open(run / "qemu", "wb") as log:
        process = subprocess.Popen(
            command(guest, run), stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_parent
        )
        followers = [_Follower(run / "stdout", _to(sys.stdout)), _Follower(run / "stderr", _to(sys.stderr))]
        try:
            _watch(process, run, limits, followers, Staller(process.pid) if guest.stall else None)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            for follower in followers:
                follower.close()
    return _result(process.returncode, run)


def _result(code: int, run: Path) -> int:
    """The command's status, or why there is none. A broken kernel reports no status, because every
    oops is a panic."""
    status = _read(run / "status")
    if "are missing" in status:
        raise EmulatorFailed("the guest could not pass back all files of /out")
    if match := re.search(r"^exit (\d+)$", status, re.MULTILINE):
        return int(match[1])
    if said := trouble(run):
        raise GuestPanicked(f"the guest's kernel broke: {said} (console: {run / 'console'})")
    lines = [line for line in _read(run / "qemu").splitlines() if "TCG doesn't support" not in line]
    said = lines[-1] if lines else "it says nothing"
    if code == 1 and not _read(run / "console"):
        raise CannotBuild(f"QEMU refuses the guest: {said}")
    if code == 0:
        raise EmulatorFailed(
            f"the guest switched itself off before its command had ended (console: {run / 'console'})"
        )
    raise EmulatorFailed(f"QEMU ended with status {code}: {said}")
