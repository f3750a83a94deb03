# SPDX-License-Identifier: GPL-2.0-only
"""Which files a program needs to start: its loader and shared libraries.

The files are read, not run, so programs for other architectures can be asked too.
"""

import functools
import os
import re
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import CannotBuild

# e_machine, and the directories of Debian's libraries for it.
MACHINES = {"amd64": 62, "arm64": 183}
_TRIPLES = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29


@dataclass(frozen=True)
class Elf:
    """What the headers of an ELF file say."""

    machine: int
    interpreter: str | None
    needed: tuple[str, ...]
    search: tuple[str, ...]
    """Directories in which its libraries are looked for first."""


def _string(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode(errors="replace")


def _dynamic(data: bytes, segments: list[tuple[int, ...]]) -> Iterator[tuple[int, str]]:
    """The entries of the dynamic section whose values are strings."""
    start, size = next(((s[2], s[5]) for s in segments if s[0] == _PT_DYNAMIC), (0, 0))
    entries = list(struct.iter_unpack("<QQ", data[start : start + size // 16 * 16]))
    address = next((value for tag, value in entries if tag == _DT_STRTAB), 0)
    for load in segments:
        if load[0] == _PT_LOAD and load[3] <= address < load[3] + load[5]:
            table = address - load[3] + load[2]
            for tag, value in entries:
                if tag in (_DT_NEEDED, _DT_RPATH, _DT_RUNPATH):
                    yield tag, _string(data, table + value)
            return


def read(path: Path) -> Elf | None:
    """The headers of a 64-bit little-endian ELF file; None for other files."""
    try:
        with open(path, "rb") as file:
            if file.read(6) != b"\x7fELF\x02\x01":
                return None
        data = path.read_bytes()
        machine, table, size, count = (
            *struct.unpack_from("<H", data, 18),
            *struct.unpack_from("<Q", data, 32),
            *struct.unpack_from("<HH", data, 54),
        )
        segments = [struct.unpack_from("<IIQQQQQQ", data, table + size * index) for index in range(count)]
        interpreter = next((_string(data, s[2]) for s in segments if s[0] == _PT_INTERP), None)
        strings = list(_dynamic(data, segments))
    except (OSError, struct.error, ValueError, OverflowError) as error:
        raise CannotBuild(f"{path} cannot be read as a program: {error}") from error
    paths = ":".join(value for tag, value in strings if tag != _DT_NEEDED)
    search = [entry.replace("$ORIGIN", str(path.parent)) for entry in paths.split(":") if entry]
    return Elf(machine, interpreter, tuple(v for tag, v in strings if tag == _DT_NEEDED), tuple(search))


@functools.cache
def _loader_cache() -> list[tuple[str, str]]:
    """The libraries that the host's loader knows: name and path."""
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        if os.access(program, os.X_OK):
            text = subprocess.run([program, "-p"], capture_output=True, text=True, check=False).stdout
            return re.findall(r"^\s+(\S+) \(.*\) => (\S+)$", text, re.MULTILINE)
    return []


class Libraries:
    """Finds libraries for one architecture below the roots, in order."""

    def __init__(self, arch: str, roots: list[Path]) -> None:
        self.arch = arch
        triple = _TRIPLES[arch]
        self._usual = [f"/usr/lib/{triple}", f"/lib/{triple}", f"/usr/{triple}/lib", "/usr/lib64", "/usr/lib"]
        self._roots = roots

    def _directories(self, root: Path) -> list[Path]:
        return [Path(f"{str(root).rstrip('/')}{entry}") for entry in self._usual]

    def _fits(self, path: Path) -> bool:
        if not path.is_file():
            return False
        found = read(path)
        return found is not None and found.machine == MACHINES[self.arch]

    def find(self, name: str, elf: Elf, path: Path) -> Path:
        """The file of a library that `path` needs."""
        places = [Path(entry) / name for entry in elf.search]
        for root in self._roots:
            # a package's libraries go with its loader, which this machine's do not
            if root == Path("/"):
                places += [Path(target) for library, target in _loader_cache() if library == name]
            places += [directory / name for directory in self._directories(root)]
        found = next((place for place in places if self._fits(place)), None)
        if not found:
            raise CannotBuild(f"{path} needs the library {name} for {self.arch}, which this machine does not have")
        return found

    def interpreter(self, elf: Elf, path: Path) -> Path:
        """The host's file of a program's loader."""
        names = [
            place
            for root in self._roots  # the loader of the root that has the C library: one fits the other only
            for place in (
                Path(f"{str(root).rstrip('/')}{elf.interpreter}"),
                *(entry / Path(str(elf.interpreter)).name for entry in self._directories(root)),
            )
        ]
        found = next((name for name in names if name.is_file()), None)
        if not found:
            raise CannotBuild(f"{path} needs the loader {elf.interpreter}, which this machine does not have")
        return found
