# SPDX-License-Identifier: GPL-2.0-only
"""The command: python -m coreward.tune."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from .. import Error


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m coreward.tune",
        description="Search for the settings of the policy that serve workloads on machines best (docs/tuning.md).",
    )
    parser.add_argument("file", type=Path, metavar="FILE.toml", help="the study")
    parser.add_argument("--state", type=Path, metavar="F", help="keep finished runs in F, and do not make them again")
    parser.add_argument("--jobs", type=int, metavar="N", help="number of simultaneous runs [default: number of CPUs]")
    parser.add_argument("--json", type=Path, metavar="F", help="write the result to F as JSON")
    parser.add_argument("--html", type=Path, metavar="F", help="write the result to F as a page")
    parser.add_argument("--export", type=Path, metavar="DIR", help="write each setting of the table for use, into DIR/NUMBER")
    args = parser.parse_args()
    try:
        from ._api import tune
    except ModuleNotFoundError as error:
        return _refuse(f"tune needs the Python package {error.name}: pip install 'coreward[tune]'")
    try:
        found = tune(args.file, state=args.state, jobs=args.jobs)
        if args.json:
            _write(args.json, found.json)
        if args.html:
            _write(args.html, found.html())
        if args.export:
            for number in range(1, 1 + len(found.settings)):
                found.exports(number).write(args.export / str(number))
    except Error as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"cannot write {error.filename}: {error.strerror}")
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(str(found))
    return 0


def _refuse(what: str) -> int:
    sys.stderr.write(f"coreward: {what}\n")
    return 2


def _write(path: Path, text: str) -> None:
    """Writes a file as a whole, or leaves what was there."""
    directory = path.parent
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=directory, prefix=".coreward-", delete=False) as file:
        file.write(text)
    try:
        os.chmod(file.name, 0o644)
        os.replace(file.name, path)
    except OSError:
        os.unlink(file.name)
        raise


if __name__ == "__main__":
    sys.exit(main())
