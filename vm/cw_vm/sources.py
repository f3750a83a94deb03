# SPDX-License-Identifier: GPL-2.0-only
"""Finds the Debian mirror and signing key that this machine's own package sources name."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import CannotBuild

DEBIAN_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True)
class Source:
    """One archive: where it is, which suite of it, and the key that signs it (a path, or a key
    written out in the sources)."""

    uri: str
    suite: str
    signed_by: str


def _stanzas(text: str) -> Iterator[dict[str, str]]:
    """The paragraphs of a deb822 file; keys in lower case."""
    for paragraph in re.split(r"\n[ \t]*\n", text):
        fields: dict[str, str] = {}
        key = ""
        for line in paragraph.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace() and key:
                fields[key] += "\n" + line
            elif ":" in line:
                key, _, value = line.partition(":")
                key = key.strip().lower()
                fields[key] = value.strip()
        if fields:
            yield fields


def parse_deb822(text: str) -> Iterator[Source]:
    """The binary archives of a `.sources` file."""
    for fields in _stanzas(text):
        off = fields.get("enabled", "yes").lower() in ("no", "false", "0")
        if off or "deb" not in fields.get("types", "").split():
            continue
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                yield Source(uri.rstrip("/"), suite, fields.get("signed-by", ""))


def parse_one_line(text: str) -> Iterator[Source]:
    """The binary archives of a `.list` file."""
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)", line)
        if match:
            options = dict(o.split("=", 1) for o in shlex.split(match[1] or "") if "=" in o)
            yield Source(match[2].rstrip("/"), match[3], options.get("signed-by", ""))


def _files() -> Iterator[Path]:
    """The files that apt reads its sources from."""
    command = ["apt-config", "shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d"]
    try:
        shell = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotBuild(
            "kernels come as Debian packages, and this machine has no apt to fetch them"
        ) from error
    where = dict(word.split("=", 1) for word in shlex.split(shell))
    yield Path(where.get("LIST", "/etc/apt/sources.list"))
    parts = Path(where.get("PARTS", "/etc/apt/sources.list.d"))
    yield from sorted(parts.glob("*.sources")) + sorted(parts.glob("*.list"))


def _codename() -> str:
    text = Path("/etc/os-release").read_text(encoding="utf-8")
    match = re.search(r'^VERSION_CODENAME="?(\w+)', text, re.MULTILINE)
    return match[1] if match else "stable"


def debian() -> Source:
    """The archive that this host's own Debian release comes from."""
    names = {_codename(), "stable", "testing", "unstable", "sid", "oldstable"}
    for path in _files():
        if not path.is_file():
            continue
        parse = parse_deb822 if path.suffix == ".sources" else parse_one_line
        for source in parse(path.read_text(encoding="utf-8", errors="replace")):
            if source.suite in names and re.search(r"/debian$", source.uri):
                return Source(source.uri, source.suite, source.signed_by or DEBIAN_KEYRING)
    raise CannotBuild(f"none of this machine's package sources is a Debian archive with the suite {_codename()}")


def stanza(suites: list[str], architectures: str = "") -> str:
    """A `.sources` file for other suites of that archive."""
    source = debian()
    restriction = f"Architectures: {architectures}\n" if architectures else ""
    return (
        f"Types: deb\nURIs: {source.uri}\nSuites: {' '.join(suites)}\nComponents: main\n"
        f"{restriction}Signed-By: {source.signed_by}\n"
    )


def main() -> None:
    """Prints a `.sources` file for the host's release's backports, for `scripts/setup.sh`."""
    print(stanza([f"{_codename()}-backports"]), end="")


if __name__ == "__main__":
    main()
