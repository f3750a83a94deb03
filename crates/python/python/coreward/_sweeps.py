# SPDX-License-Identifier: GPL-2.0-only
"""Many settings at once."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ._native import Error
from ._results import Sweep
from ._spec import Machine, PathOf, Policy, Workload
from ._words import Progress, answer, several


def sweep(
    plan: PathOf | Mapping[str, object],
    *,
    jobs: int | None = None,
    state: PathOf | None = None,
    merge: PathOf | Iterable[PathOf] = (),
    output: PathOf | Iterable[PathOf] = (),
    runs_table: bool = True,
    strict: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Tries many settings on many machines under many workloads, as `coreward sweep` does.

    Args:
        plan: a file, or what stands in it (docs/sweep.md), as a mapping: `name`, `machines`, `workloads`, and `list`, `grid`
            or `latin_hypercube`; perhaps `profile`, `baseline`, `runs`, `seed` and `metrics`.
        jobs: number of simultaneous runs, on which the result does not depend; None is the number of CPUs.
        state: a file that keeps finished runs, which are not made again.
        merge: files of that kind, of which finished runs are taken, too.
        output: files ending in .parquet, .csv or .jsonl to which every metric of every run is written (docs/tables.md).
        runs_table: keep every metric of every run for `table("runs")`, which takes some 10 KiB a run.
        progress: called with the number of runs that are done and of all that are left, as in `compare()`.
        strict: refuse a description that leaves something open, instead of assuming it.

    Raises:
        Error: the plan is refused, with its line if it is a file; a run does not end; or a file cannot be used.
    """
    options = {"jobs": jobs, "state": state, "merge": several(merge), "output": several(output), "strict": strict, "json": True}
    with file_of(plan) as file:
        return Sweep(answer("sweep", options, file, rows=runs_table, progress=progress))


@contextmanager
def file_of(plan: PathOf | Mapping[str, object]) -> Iterator[Path]:
    """A plan as a file, which errors do not name if it is none of the caller's."""
    if not isinstance(plan, Mapping):
        yield Path(plan)
        return
    with tempfile.TemporaryDirectory(prefix="coreward-") as directory:
        file = Path(directory, "plan.toml")
        file.write_text("".join(f"{_toml_key(key)} = {_toml(value)}\n" for key, value in plan.items()), "utf-8")
        try:
            yield file
        except Error as error:
            raise Error(str(error).replace(str(file), "plan")) from None


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml_key(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, (Machine, Workload, Policy)):
        value = str(value)
    elif isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(_toml(inner) for inner in value) + "]"
    # what is left is written the same way in JSON
    return json.dumps(value, ensure_ascii=False)


def _toml_key(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)
