# SPDX-License-Identifier: GPL-2.0-only
"""Fetches Debian packages with a separate configuration of apt: nothing is installed, and the host's
lists are not changed.

The mirror and its key are those of the host's sources; the suites are `SUITES`, or the words of
`$COREWARD_SUITES`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import cache, sources
from .errors import CannotBuild

SUITES = ("trixie", "trixie-backports")

# Series that are in no suite of these.
_OLD_SUITES = {"5.10": "bullseye", "6.1": "bookworm"}

# All of the config of a kernel whose config the archive has dropped.
NO_CONFIG = "# the archive has dropped this kernel's config"

# What a guest needs to talk to the host, in the order in which it is loaded. Newer kernels have it built in.
_MODULES = ("virtio", "virtio_ring", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci", "virtio_console")

# Kernels for other purposes, or of which the debugging symbols are in the package.
_OTHER_FLAVOURS = re.compile(r"-(rt|cloud|dbg|unsigned|16k)\b")


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel."""

    release: str
    """What `uname -r` says in the guest."""
    image: Path
    config: Path

    @property
    def modules(self) -> list[Path]:
        """The modules to load first, in their order."""
        paths = (self.image.parent / f"{name}.ko" for name in _MODULES)
        return [path for path in paths if path.is_file()]


def host_arch() -> str:
    """This host's architecture as Debian calls it."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)


def suites(series: str = "") -> list[str]:
    """The suites in which packages are looked for, or the kernels of a series."""
    old = _OLD_SUITES.get(".".join(series.split(".")[:2]))
    return os.environ.get("COREWARD_SUITES", "").split() or ([old] if old else list(SUITES))


class Apt:
    """apt for one architecture, with lists and cache below the cache directory."""

    def __init__(self, arch: str, series: str = "") -> None:
        self.arch = arch
        self.suites = suites(series)
        self.root = cache.directory() / "apt" / "-".join([arch, *self.suites])
        self.conf = self.root / "apt.conf"

    def _configure(self) -> None:
        for name in ("lists/partial", "cache/archives/partial", "parts", "state"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        parts = self.root / "parts" / "debian.sources"
        parts.write_text(sources.stanza(self.suites, self.arch), encoding="utf-8")
        (self.root / "state" / "status").touch()
        settings = {
            "Dir::State": "state",
            "Dir::State::Lists": "lists",
            "Dir::State::status": "state/status",
            "Dir::Cache": "cache",
            "Dir::Etc::SourceParts": "parts",
        }
        lines = [f'{key} "{self.root / value}";' for key, value in settings.items()]
        lines += [
            'Dir::Etc::SourceList "/dev/null";',
            f'APT::Architecture "{self.arch}";',
            f'APT::Architectures {{"{self.arch}";}};',
            'Acquire::Languages "none";',
            'APT::Sandbox::User "";',
        ]
        self.conf.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _run(self, *command: str, cwd: Path | None = None) -> str:
        environment = {**os.environ, "APT_CONFIG": str(self.conf), "LC_ALL": "C"}
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.splitlines() or ["it says nothing"]
            said = next((line for line in lines if line.startswith("E:")), lines[-1])
            raise CannotBuild(f"{' '.join(command[:2])} failed: {said}")
        return done.stdout

    def update(self) -> None:
        """Renews the lists."""
        print(f"vm: reading the package lists of {' '.join(self.suites)} for {self.arch}", file=sys.stderr)
        self._configure()
        self._run("apt-get", "-q", "update")

    def names(self, prefix: str) -> list[str]:
        """Names of the packages that begin with the prefix."""
        return self._run("apt-cache", "pkgnames", prefix).split()

    def unpack(self, packages: list[str], into: Path) -> None:
        """Downloads packages and unpacks them."""
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.root) as scratch:
            what = packages[0] if len(packages) == 1 else f"{packages[0]} and {len(packages) - 1} more"
            print(f"vm: fetching {what} for {self.arch}", file=sys.stderr)
            names = [f"{package}:{self.arch}" for package in packages]
            self._run("apt-get", "-q", "download", *names, cwd=Path(scratch))
            for deb in sorted(Path(scratch).glob("*.deb")):
                self._run("dpkg-deb", "-x", str(deb), str(into))

    def closure(self, packages: list[str]) -> list[str]:
        """The packages and all that they depend on."""
        text = self._run(
            "apt-get", "-qq", "install", "--print-uris", "--no-install-recommends", "-y", *packages
        )
        return sorted({line.split()[1].split("_")[0] for line in text.splitlines() if line.startswith("'")})


def _newest(names: list[str], series: str, arch: str) -> str:
    """The newest kernel among package names, as a release; empty if there is none."""
    pattern = re.compile(rf"linux-(?:image|binary)-({re.escape(series)}[.\d]*\S*-{arch})$")
    found = {
        match[1] for name in names if (match := pattern.match(name)) and not _OTHER_FLAVOURS.search(name)
    }
    exact = {release for release in found if re.match(rf"{re.escape(series)}(?![\d])", release)}
    return max(exact, key=lambda r: [int(n) for n in re.findall(r"\d+", r.split(f"-{arch}")[0])], default="")


def series(arch: str) -> list[str]:
    """The series of kernels that the suites have, the oldest first."""
    with cache.locked(f"packages-{arch}"):
        apt = Apt(arch)
        apt.update()
        names = [name for kind in ("image", "binary") for name in apt.names(f"linux-{kind}-")]
    found = {match[1] for name in names if (match := re.match(rf"linux-\w+-(\d+\.\d+)\.\d+\S*-{arch}$", name))}
    return sorted(found, key=lambda text: [int(number) for number in text.split(".")])


def _fetch_kernel(series: str, arch: str, where: Path) -> str:
    """Unpacks the newest kernel of a series below `where/RELEASE`; returns the release."""
    apt = Apt(arch, series)
    apt.update()
    names = [name for kind in ("image", "binary") for name in apt.names(f"linux-{kind}-{series}")]
    release = _newest(names, series, arch)
    if not release:
        raise CannotBuild(f"no kernel {series} for {arch} in the suites {' '.join(apt.suites)}")
    wanted = [f"linux-image-{release}"]
    if f"linux-binary-{release}" in names:
        # the config is in a package of its own; the archive may have dropped that before the kernel
        base = f"linux-base-{release}"
        wanted = [f"linux-binary-{release}", *(name for name in apt.names(base) if name == base)]
    with tempfile.TemporaryDirectory(dir=where) as scratch:
        tree = Path(scratch)
        apt.unpack(wanted, tree)
        modules = tree / "usr/lib/modules" / release
        here = (modules / "vmlinuz", modules / "config")
        boot = (tree / f"boot/vmlinuz-{release}", tree / f"boot/config-{release}")
        image, config = (
            next((path for path in place if path.is_file()), None) for place in zip(here, boot)
        )
        if not image:
            raise CannotBuild(f"the packages of kernel {release} hold no vmlinuz")
        (where / release).mkdir(exist_ok=True)
        for module in tree.rglob("*.ko"):
            if module.stem in _MODULES:
                shutil.copyfile(module, where / release / module.name)
        shutil.copyfile(image, where / release / "vmlinuz")
        if config:
            shutil.copyfile(config, where / release / "config")
        else:
            # libbpf wants a file, and takes the options that it lacks for unset
            (where / release / "config").write_text(f"{NO_CONFIG}\n", encoding="ascii")
    return release


def kernel(series: str, arch: str, refresh: bool = False) -> Kernel:
    """The newest kernel of a series ("6.12", "7.3", or a full version), fetched once and then kept
    until `refresh`."""
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?(\+\w+)?", series):
        raise CannotBuild(f"--kernel is '{series}', allowed is a version such as 6.12 or 7.3")
    where = cache.directory() / "kernels" / arch
    where.mkdir(parents=True, exist_ok=True)

    def kept() -> str:
        whole = [f"linux-image-{path.name}" for path in where.iterdir() if (path / "config").is_file()]
        return _newest(whole, series, arch)

    release = "" if refresh else kept()
    if not release:
        with cache.locked(f"packages-{arch}"):
            release = ("" if refresh else kept()) or _fetch_kernel(series, arch, where)
    return Kernel(release, where / release / "vmlinuz", where / release / "config")


def _unpack_once(name: str, arch: str, unpack: Callable[[Apt, Path], None]) -> Path:
    """A directory of the cache that is filled once; an incomplete one is not used."""
    where = cache.directory() / name
    if not where.is_dir():
        with cache.locked(f"packages-{arch}"):
            if not where.is_dir():
                apt = Apt(arch)
                apt.update()
                where.parent.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(dir=where.parent) as scratch:
                    unpack(apt, Path(scratch) / "tree")
                    (Path(scratch) / "tree").rename(where)
    return where


def busybox(arch: str) -> Path:
    """A static busybox of the guest's architecture."""
    tree = _unpack_once(f"busybox/{arch}", arch, lambda apt, where: apt.unpack(["busybox-static"], where))
    return next(path for path in sorted(tree.rglob("busybox")) if path.is_file() and os.access(path, os.X_OK))


def tree(packages: list[str], arch: str) -> Path:
    """A directory with these packages and all that they depend on, unpacked."""

    def unpack(apt: Apt, where: Path) -> None:
        apt.unpack(apt.closure(packages), where)
        # as on every merged-/usr system: the C library's linker script names /lib
        (where / "lib").symlink_to("usr/lib")

    return _unpack_once(f"trees/{arch}/{'+'.join(sorted(packages))}", arch, unpack)
