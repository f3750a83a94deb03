# SPDX-License-Identifier: GPL-2.0-only
"""Comparisons of policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from ._native import Error
from ._results import Comparison, Matrix
from ._spec import (
    Machine,
    MachineOf,
    PathOf,
    Policy,
    PolicyOf,
    Workload,
    WorkloadOf,
    baseline_options,
    changes_of,
)
from ._words import Progress, answer, assignments, several


def compare(
    workload: WorkloadOf,
    machine: MachineOf,
    changes: Policy | str | Iterable[Policy | str],
    *,
    baseline: PolicyOf = None,
    seed: int = 1,
    runs: int = 5,
    headline: str | Iterable[str] = (),
    precision_pct: float | None = None,
    budget_s: int | None = None,
    cost_points: int | None = None,
    jobs: int | None = None,
    scale: float = 1.0,
    skip_steady_pct: float | None = None,
    task_group_depth: int | None = None,
    html: PathOf | None = None,
    output: PathOf | Iterable[PathOf] = (),
    strict: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Compares variants of a policy with a baseline, as `coreward compare --with` does.

    Args:
        workload: what runs on all sides: a command line, or a `Workload`.
        machine: where: a preset, a file, a shorthand, or a `Machine`, whose costs hold for all sides.
        changes: a variant, or several: each a text like `"NO_TTWU_QUEUE,base_slice_ns=2ms"` or a `Policy`. It starts from
            the baseline. `seed=S` in a text is the seed of its first run.
        baseline: a text or a `Policy`; None is the machine's kernel, or linux-6.12.
        seed: seed of the first run of each side; each run has the next one.
        runs: number of runs of each side, 1 to 1000; the least if runs are added.
        headline: names of metrics that the verdict is about; otherwise the benchmark's result and `cpu_migrations`.
        precision_pct: add runs until the 95 % interval of the first headline metric is at most this many percentage points
            to either side, 0.01 to 100.
        budget_s: add runs for this time at most, 1 to 604800 s.
        cost_points: also vary all costs within their bounds, at so many points, 10 to 4096, with a run of each side.
        jobs: number of simultaneous runs, 1 to 1024, on which the result does not depend; None is the number of CPUs.
        scale: shorter benchmarks, 0.000001 to 1.
        skip_steady_pct: skip the steady middle of each run once its rates are known to this many per cent, 0.1 to 20.
        task_group_depth: nesting depth of the workload's task group, 0 to 16; None is 3.
        html: a file to which the report is written as a page.
        output: files ending in .parquet, .csv or .jsonl to which every metric of every run is written (docs/tables.md).
        strict: refuse a description that leaves something open, instead of assuming it.
        progress: called with the number of runs that are done and of all, in the thread of the caller, at most 50 times
            a second. Runs may be added. What it raises stops the comparison.

    Raises:
        Error: a name or a value is refused, a run does not end, or a file cannot be written.
    """
    host = Machine.of(machine)
    options = {
        "machine": host.spec,
        **baseline_options(baseline),
        "with": changes_of(changes),
        "seed": seed,
        "cost": assignments(host.costs),
        **_effort(runs, headline, precision_pct, budget_s, cost_points, jobs, scale, skip_steady_pct, task_group_depth),
        "html": html,
        "output": several(output),
        "strict": strict,
        "json": True,
    }
    return Comparison(answer("compare", options, Workload.of(workload), rows=True, progress=progress))


def compare_experiment(
    file: PathOf,
    *,
    cases: str | Iterable[str] = (),
    runs: int | None = None,
    headline: str | Iterable[str] = (),
    precision_pct: float | None = None,
    budget_s: int | None = None,
    cost_points: int | None = None,
    ablations: bool = False,
    jobs: int | None = None,
    scale: float = 1.0,
    skip_steady_pct: float | None = None,
    task_group_depth: int | None = None,
    html: PathOf | None = None,
    output: PathOf | Iterable[PathOf] = (),
    strict: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Compares the sides of an experiment file, as `coreward compare FILE.toml` does.

    Args:
        file: the file (`coreward experiment init` writes one to start from).
        cases: labels of the cases that are run; otherwise all.
        runs: number of runs of each side; None is that of the file, or 5.
        ablations: also run the experiment's ablations.

    The other arguments are those of `compare()`; None is what the file says.

    Raises:
        Error: the file is refused, with its line, or a run does not end, or a file cannot be written.
    """
    options = {
        "case": several(cases),
        **_effort(runs, headline, precision_pct, budget_s, cost_points, jobs, scale, skip_steady_pct, task_group_depth),
        "ablations": ablations,
        "html": html,
        "output": several(output),
        "strict": strict,
        "json": True,
    }
    return Comparison(answer("compare", options, Path(file), rows=True, progress=progress))


def _effort(
    runs: int | None,
    headline: str | Iterable[str],
    precision_pct: float | None,
    budget_s: int | None,
    cost_points: int | None,
    jobs: int | None,
    scale: float,
    skip_steady_pct: float | None,
    task_group_depth: int | None,
) -> dict[str, object]:
    return {
        "runs": runs,
        "headline": several(headline),
        "precision": precision_pct,
        "budget": budget_s,
        "intervals": cost_points,
        "jobs": jobs,
        "scale": scale if scale != 1 else None,
        "skip_steady": skip_steady_pct,
        "task_group_depth": task_group_depth,
    }


def matrix(
    change: Policy | str,
    *,
    baseline: PolicyOf = None,
    machines: MachineOf | Iterable[MachineOf] = (),
    workloads: str | Iterable[str] = (),
    suite: PathOf | None = None,
    costs: Mapping[str, object] | None = None,
    seed: int = 1,
    runs: int = 8,
    jobs: int | None = None,
    task_group_depth: int | None = None,
    state: PathOf | None = None,
    merge: PathOf | Iterable[PathOf] = (),
    html: PathOf | None = None,
    output: PathOf | Iterable[PathOf] = (),
    strict: bool = False,
    progress: Progress | None = None,
) -> Matrix:
    """Shows what one change does to many workloads on many machines, the worst first, as `coreward matrix` does.

    Args:
        change: a text like `"NO_TTWU_QUEUE,base_slice_ns=2ms"`, or a `Policy`. It starts from the baseline.
        baseline: a text or a `Policy`; None is each machine's kernel, or linux-6.12.
        machines: one or several; otherwise all presets. A machine's own `costs` are refused: see `costs`.
        workloads: rows of the suite by their names, names of benchmarks, or command lines; otherwise all rows.
        suite: a file with other workloads.
        costs: costs of all machines, by name.
        seed: seed of the first run of each side.
        runs: number of runs of each side of a cell, 2 to 1000.
        jobs: number of cells that are run at once; None is the number of CPUs.
        task_group_depth: nesting depth of the workloads' task group, 0 to 16; None is 3.
        state: a file that keeps finished cells, which are not run again.
        merge: files of that kind, of which finished cells are taken, too.
        html: a file to which the report is written as a page.
        output: files ending in .parquet, .csv or .jsonl to which every metric of every run is written (docs/tables.md).
        strict: refuse a description that leaves something open, instead of assuming it.
        progress: called with the number of cells that are done and of all that are left, as in `compare()`.

    Raises:
        Error: a name or a value is refused, a run does not end, or a file cannot be written.
    """
    what = matrix_options(
        change,
        baseline=baseline,
        machines=machines,
        workloads=workloads,
        costs=costs,
        seed=seed,
        runs=runs,
        task_group_depth=task_group_depth,
        strict=strict,
    )
    files = {"suite": suite, "state": state, "merge": several(merge), "html": html, "output": several(output)}
    return Matrix(answer("matrix", {**what, **files, "jobs": jobs, "json": True}, rows=True, progress=progress))


def matrix_options(
    change: Policy | str,
    *,
    baseline: PolicyOf = None,
    machines: MachineOf | Iterable[MachineOf] = (),
    workloads: str | Iterable[str] = (),
    costs: Mapping[str, object] | None = None,
    seed: int = 1,
    runs: int = 8,
    task_group_depth: int | None = None,
    strict: bool = False,
) -> dict[str, object]:
    """The options that say what `coreward matrix` runs; the arguments are those of `matrix()`."""
    hosts = [Machine.of(machine) for machine in several(machines)]
    if own := next((host for host in hosts if host.costs), None):
        raise Error(f"machines: {own}: the costs of a matrix are the same on all machines, see costs")
    return {
        "with": changes_of(change)[0],
        **baseline_options(baseline),
        "machine": [host.spec for host in hosts],
        "workload": several(workloads),
        "cost": assignments(costs or {}),
        "seed": seed,
        "runs": runs,
        "task_group_depth": task_group_depth,
        "strict": strict,
    }
