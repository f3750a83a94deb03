# SPDX-License-Identifier: GPL-2.0-only
"""What is measured on a machine or recorded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ._native import Error
from ._results import Calibration, Imported, Validation
from ._spec import Machine, MachineOf, PathOf, PolicyOf, Workload, WorkloadOf, policy_options
from ._words import answer, assignments, several


def calibrate(out: PathOf | None = None, passes: int = 5) -> Calibration:
    """Measures what things cost on this machine, as `coreward calibrate` does. It takes half a minute and no privilege.

    Args:
        out: a file ending in .toml to which this machine is written with the costs that were measured, for `Machine`.
        passes: how often everything is measured; the middle half counts.

    Raises:
        Error: the kernel refuses a measurement, or the file cannot be written.
    """
    return Calibration(answer("calibrate", {"out": out, "passes": passes, "json": True}))


def validate(
    workloads: WorkloadOf | Iterable[WorkloadOf] = (),
    *,
    machine: MachineOf = "sysfs",
    policy: PolicyOf = None,
    rounds: int = 5,
    task_group_depth: int | None = None,
    real: PathOf | Iterable[PathOf] = (),
    html: PathOf | None = None,
    strict: bool = False,
) -> Validation:
    """Runs benchmarks on this machine, simulates the same, and compares, as `coreward validate` does.

    Args:
        workloads: command lines of benchmarks, which have to be installed; otherwise twenty that take minutes.
        machine: this machine, as `calibrate()` wrote it.
        policy: a profile with features and tunables; None is this kernel, or the nearest older one.
        rounds: how often each benchmark is run, and simulated, 1 to 100; medians are compared.
        task_group_depth: how many task groups deep the benchmarks run, 0 to 16; None is as this process.
        real: files with what benchmarks did, written by `coreward validate --save-real`, instead of running them.
        html: a file to which the report is written as a page.
        strict: refuse a description that leaves something open, instead of assuming it.

    Returns:
        The comparison. `unmet` says which figures are further off than the guide allows, if some are.

    Raises:
        Error: a name or a value is refused, a benchmark fails, or a file cannot be used.
    """
    host = Machine.of(machine)
    run = policy_options(policy, assignments(host.costs))
    if run.pop("policy"):
        raise Error("policy: validate takes none of a directory")
    options = {
        "machine": host.spec,
        **run,
        "rounds": rounds if not several(real) else None,
        "task_group_depth": task_group_depth,
        "real": several(real),
        "html": html,
        "strict": strict,
        "json": True,
    }
    return Validation(answer("validate", options, *(Workload.of(line) for line in several(workloads))))


def import_trace(
    file: PathOf,
    output: PathOf | None = None,
    *,
    machine: MachineOf | None = None,
    only: str | Iterable[str] = (),
    without: str | Iterable[str] = (),
    open_loop: bool = False,
    any_cpu: bool = False,
    from_s: float = 0.0,
    to_s: float | None = None,
    force: bool = False,
) -> Imported:
    """Makes a workload of a recording of the scheduler, as `coreward import` does.

    Args:
        file: the recording (docs/import.md): of `coreward record --workload`, trace-cmd, perf, ftrace, Perfetto or wprof.
        output: the file to which the workload is written, for `Workload`; it ends in .cww, or in .cww.toml or .cww.json to be
            edited.
        machine: the machine that the recording was made on.
        only: names of tasks that are imported, where a * at the end stands for any ending; otherwise all.
        without: names of tasks that are left out.
        open_loop: interrupts come at the recorded times, however late the tasks are.
        any_cpu: tasks may run on any CPU, whatever affinity they had.
        from_s: import from so many seconds after the first event on, 0 to 1000000.
        to_s: import up to so many seconds after the first event; None is all.
        force: write the workload even if the recording does not say how most waits ended.

    Raises:
        Error: the recording cannot be read or does not suffice, or the file cannot be written.
    """
    host = None if machine is None else Machine.of(machine)
    if host and host.costs:
        raise Error(f"machine: {host}: an import takes the costs of the machine's file")
    options = {
        "output": output,
        "machine": host and host.spec,
        "only": several(only),
        "without": several(without),
        "open_loop": open_loop,
        "any_cpu": any_cpu,
        "from": from_s,
        "to": to_s,
        "force": force,
        "json": True,
    }
    return Imported(answer("import", options, Path(file)))
