# SPDX-License-Identifier: GPL-2.0-only
"""Lets emulated CPUs stand still: stops one of QEMU's threads, those of the CPUs, as a debugger does.

A hypervisor does the same to a virtual CPU when it runs something else. The other CPUs go on, and so does the
guest's clock if it is the local machine's. Each CPU needs a thread of its own.
"""

import ctypes
import os
import time
from pathlib import Path

from .errors import EmulatorFailed

SECONDS = 2.0
"""How long a CPU stands still."""
PAUSE_SECONDS = 4.0
"""How long all of them run then."""

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_EVENT_STOP = 128
_WALL = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request: int, thread: int, data: int = 0) -> None:
    if _libc.ptrace(request, thread, None, data) < 0:
        error = ctypes.get_errno()
        raise EmulatorFailed(f"a thread of QEMU's cannot be stopped: {os.strerror(error)}")


def threads(pid: int) -> list[int]:
    """The threads of a QEMU's CPUs, in order of the CPUs (`-name debug-threads=on`)."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        words = (task / "comm").read_text(encoding="utf-8").split()
        if words[0] == "CPU":
            found.append((int(words[1].partition("/")[0]), int(task.name)))
    return [thread for _, thread in sorted(found)]


class Staller:
    """Stops one CPU after the other, each for a while. All of it is done by the thread that made it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._next = 0
        self._stopped: int | None = None
        self._signal = 0
        self._until = time.monotonic() + PAUSE_SECONDS

    def due(self) -> None:
        """Makes it time for the next step."""
        self._until = 0.0

    def step(self) -> None:
        """Stops the next CPU, or lets it go on, if it is time."""
        if time.monotonic() < self._until:
            return
        if self._stopped is None:
            cpus = threads(self._pid)
            self._stop(cpus[self._next % len(cpus)])
            self._next += 1
            self._until = time.monotonic() + SECONDS
        else:
            _ptrace(_DETACH, self._stopped, self._signal)
            self._stopped = None
            self._until = time.monotonic() + PAUSE_SECONDS

    def _stop(self, thread: int) -> None:
        _ptrace(_SEIZE, thread)
        _ptrace(_INTERRUPT, thread)
        _, status = os.waitpid(thread, _WALL)
        self._stopped = thread
        # a signal that came just then is passed on when the thread goes on
        self._signal = 0 if status >> 16 == _EVENT_STOP else os.WSTOPSIG(status)
