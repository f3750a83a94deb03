# SPDX-License-Identifier: GPL-2.0-only
"""Writes the guest's file system: a cpio archive of the "newc" kind, which the kernel unpacks.

Format: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
"""

import io
import os
import stat
from pathlib import Path, PurePosixPath

_TRAILER = "TRAILER!!!"
# Debian has one tree of programs and libraries, and these names for parts of it.
_MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


class Archive:
    """A cpio archive in the making. Names are absolute paths in the guest."""

    def __init__(self) -> None:
        self._out = io.BytesIO()
        self._inode = 0
        self._names: set[str] = set()

    def _write(self, name: str, mode: int, data: bytes) -> None:
        self._inode += 1
        encoded = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + b"".join(b"%08x" % field for field in fields)
        for part in (header + encoded, data):
            self._out.write(part)
            self._out.write(b"\0" * (-self._out.tell() % 4))

    def _inside(self, path: str) -> str:
        """The name in the archive: relative, and through no symbolic link of `_MERGED`."""
        parts = [part for part in PurePosixPath(path).parts if part != "/"]
        if parts and parts[0] in _MERGED and len(parts) > 1:
            parts[0] = _MERGED[parts[0]]
        return "/".join(parts)

    def _add(self, path: str, mode: int, data: bytes) -> None:
        name = self._inside(path)
        if name in self._names:
            return
        parent = str(PurePosixPath(name).parent)
        if parent != ".":
            self._add("/" + parent, stat.S_IFDIR | 0o755, b"")
        self._names.add(name)
        self._write(name, mode, data)

    def directory(self, path: str) -> None:
        """An empty directory."""
        self._add(path, stat.S_IFDIR | 0o755, b"")

    def data(self, path: str, data: bytes, executable: bool = False) -> None:
        """A file with these contents. The first of a name stays."""
        self._add(path, stat.S_IFREG | (0o755 if executable else 0o644), data)

    def file(self, path: str, source: Path) -> None:
        """A copy of a host's file, or of what a symbolic link leads to."""
        self.data(path, source.read_bytes(), os.access(source, os.X_OK))

    def link(self, path: str, target: str) -> None:
        """A symbolic link."""
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def merge_usr(self) -> None:
        """The links from `/bin` and the like into `/usr`."""
        for name, target in _MERGED.items():
            self.link("/" + name, target)

    def bytes(self) -> bytes:
        """The whole archive."""
        self._write(_TRAILER, 0, b"")
        self._out.write(b"\0" * (-self._out.tell() % 512))
        return self._out.getvalue()
