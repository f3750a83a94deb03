# SPDX-License-Identifier: GPL-2.0-only
"""The contents of the guest: busybox, the programs of the command with their libraries, and files."""

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from . import acpi, elf, packages
from .errors import CannotBuild
from .initramfs import Archive

_INIT = Path(__file__).with_name("init.sh")
_TRIPLES = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}


@dataclass(frozen=True)
class Contents:
    """What a guest runs and contains."""

    arch: str
    command: str
    kernel: packages.Kernel
    copies: tuple[str, ...] = ()
    """`PATH` or `PATH:PATH_IN_GUEST`: files and directories."""
    packages: tuple[str, ...] = ()
    """Debian packages of the guest's architecture whose programs the command names."""
    madt: bytes | None = None
    directory: str = field(default_factory=os.getcwd)
    """The command's working directory: the host's, so that relative paths mean the same."""


class Builder:
    """Puts a guest's file system together."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.archive = Archive()
        roots = [packages.tree(list(contents.packages), contents.arch)] if contents.packages else []
        self.trees = roots
        self.libraries = elf.Libraries(contents.arch, [*roots, Path("/")])
        self._seen: set[Path] = set()

    def _libraries_of(self, path: Path, found: elf.Elf) -> None:
        if found.machine != elf.MACHINES[self.contents.arch]:
            raise CannotBuild(f"{path} is not a program for {self.contents.arch}")
        if found.interpreter:
            self.archive.file(found.interpreter, self.libraries.interpreter(found, path))
        for name in found.needed:
            library = self.libraries.find(name, found, path)
            if library not in self._seen:
                self._seen.add(library)
                self.archive.file(f"/usr/lib/{_TRIPLES[self.contents.arch]}/{name}", library)
                inner = elf.read(library)
                assert inner is not None  # Libraries.find takes ELF files only
                self._libraries_of(library, inner)

    def add(self, name: str, source: Path) -> None:
        """A file, with its libraries if it is a program, or a directory."""
        if source.is_dir():
            self.archive.directory(name)
            for child in sorted(source.iterdir()):
                self.add(f"{name}/{child.name}", child)
        elif source.is_file():
            self.archive.file(name, source)
            found = elf.read(source) if os.access(source, os.X_OK) else None
            if found:
                self._libraries_of(source, found)
        elif not source.is_symlink():
            raise CannotBuild(f"{source} is neither a file nor a directory")

    def _copies(self) -> None:
        for copy in self.contents.copies:
            host, _, guest = copy.partition(":")
            source = Path(host).absolute()
            if not source.exists():
                raise CannotBuild(f"--copy-in {host}: there is no such file")
            self.add(guest or str(source), source)

    def _program(self, word: str, applets: frozenset[str]) -> tuple[str, Path] | None:
        """The program that a word of the command names: its path in the guest and here."""
        if "/" in word:
            return str(Path(word).absolute()), Path(word).absolute()
        for tree in self.trees:
            for name in (f"/usr/bin/{word}", f"/usr/sbin/{word}", f"/bin/{word}", f"/sbin/{word}"):
                if (tree / name[1:]).is_file():
                    return name, tree / name[1:]
        found = None if word in applets else shutil.which(word)
        return (found, Path(found)) if found else None

    def _programs(self, applets: frozenset[str]) -> None:
        """The programs that the command names, by path or by name: from the packages, otherwise
        from the host. Busybox's own are preferred to the host's."""
        for word in _words(self.contents.command):
            program = self._program(word, applets)
            if not program or not program[1].is_file() or not os.access(program[1], os.X_OK):
                continue
            found = elf.read(program[1])
            if found and found.machine == elf.MACHINES[self.contents.arch]:
                self.add(*program)

    def build(self) -> bytes:
        """The initramfs, after the table of CPUs if there is one."""
        contents, archive = self.contents, self.archive
        archive.merge_usr()
        busybox = packages.busybox(contents.arch)
        archive.file("/bin/busybox", busybox)
        archive.data("/init", _INIT.read_bytes(), executable=True)
        archive.data("/etc/coreward/command", contents.command.encode())
        archive.data("/etc/coreward/directory", contents.directory.encode())
        archive.data("/etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
        archive.data("/etc/group", b"root:x:0:\n")
        archive.data("/etc/hosts", b"127.0.0.1 localhost\n::1 localhost\n")
        archive.file(f"/boot/config-{contents.kernel.release}", contents.kernel.config)
        archive.directory("/etc/coreward/modules")
        for number, module in enumerate(contents.kernel.modules):
            archive.file(f"/etc/coreward/modules/{number}-{module.name}", module)
        for name in ("proc", "sys", "dev", "tmp", "out", "root", "run"):
            archive.directory("/" + name)
        archive.directory(contents.directory)
        self._copies()
        self._programs(_applets())
        early = Archive()
        if contents.madt:
            early.data("/" + acpi.PATH, contents.madt)
        return (early.bytes() if contents.madt else b"") + archive.bytes()


def _words(command: str) -> list[str]:
    """The words of a shell command and of the commands that it quotes, as far as that can be told
    without running it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        words = command.split()
    return [inner for word in words for inner in (_words(word) if " " in word and word != command else [word])]


def _applets() -> frozenset[str]:
    """What busybox can do itself. The host's own architecture is asked: it can be run."""
    program = packages.busybox(packages.host_arch())
    text = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout
    return frozenset(text.split())


def build(contents: Contents) -> bytes:
    """The initramfs of a guest."""
    return Builder(contents).build()
