# SPDX-License-Identifier: GPL-2.0-only
"""The command: coreward tune, or python -m coreward.tune."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .._native import Error, Files, shown

if TYPE_CHECKING:
    from ._api import Tuned


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="coreward tune",
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
        return _refuse(f"tune needs the Python package {error.name}: pip install 'optuna>=5,<6' scipy")
    try:
        files = Files([file for file in (args.file, args.state) if file])
        forms: list[tuple[str, Path | None, Callable[[Tuned], str]]] = [
            ("--json", args.json, lambda tuned: tuned.json),
            ("--html", args.html, lambda tuned: tuned.html()),
        ]
        wanted = [(option, file, form) for option, file, form in forms if file]
        for option, file, _ in wanted:
            files.open(option, file)
        found = tune(args.file, state=args.state, jobs=args.jobs)
        files.finish([form(found) for _, _, form in wanted])
        if args.export:
            for number in range(1, 1 + len(found.settings)):
                found.exports(number).write(args.export / str(number))
    except Error as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return 130
    sys.stdout.write(shown(str(found)))
    return 0


def _refuse(what: str) -> int:
    sys.stderr.write(f"coreward: {shown(what)}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
