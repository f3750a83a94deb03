# SPDX-License-Identifier: GPL-2.0-only
"""Single runs, and what there is to run."""

from __future__ import annotations

from collections.abc import Iterable

from ._results import Decisions, Features, Machines, Run
from ._spec import Machine, MachineOf, PathOf, PolicyOf, Workload, WorkloadOf, policy_options
from ._words import answer, assignments, several


def simulate(
    workload: WorkloadOf,
    machine: MachineOf,
    policy: PolicyOf = None,
    *,
    seed: int = 1,
    scale: float = 1.0,
    task_group_depth: int = 3,
    relax_domain_level: int | None = None,
    partitions: Iterable[str] = (),
    events: Iterable[str] = (),
    time_limit_s: int = 1000,
    interval_s: float | None = None,
    skip_steady_pct: float | None = None,
    trace: PathOf | None = None,
    ftrace: PathOf | None = None,
    html: PathOf | None = None,
    output: PathOf | Iterable[PathOf] = (),
    strict: bool = False,
) -> Run:
    """Runs a workload on a machine under a policy, as `coreward run` does.

    Args:
        workload: what runs: a command line, or a `Workload`.
        machine: where: a preset, a file, a shorthand, or a `Machine`.
        policy: how: a text like `"linux-7.3,NO_SIS_UTIL"`, a `Policy`, or None for the machine's kernel or linux-6.12.
        seed: seed of all randomness, 0 to 2**64 - 1. Equal seeds give equal results.
        scale: a shorter benchmark: this fraction of its loops or of its time, 0.000001 to 1.
        task_group_depth: nesting depth of the workload's task group, 0 to 16; 3 is that of a login session.
        relax_domain_level: cpuset.sched_relax_domain_level, from -1 on: which domains newidle balance searches.
        partitions: CPUs with domains of their own, like `"0-3"` or `"0-3:1"` with a relax_domain_level. The workload runs
            in the first one.
        events: changes of the machine in the middle of the run, like `"1.5s offline 2-3"`.
        time_limit_s: simulated seconds after which the run is given up, 1 to 1000000.
        interval_s: length of the intervals in which the run is also measured, in simulated seconds, 0.000001 to 1000.
        skip_steady_pct: skip the steady middle of the run once its rates are known to this many per cent, 0.1 to 20.
        trace: a file to which a trace for Perfetto is written.
        ftrace: a file to which the scheduling events are written as the text of ftrace.
        html: a file to which the report is written as a page.
        output: files ending in .parquet, .csv or .jsonl to which every metric of every run is written (docs/tables.md).
        strict: refuse a description that leaves something open, instead of assuming it.

    Raises:
        Error: a name or a value is refused, the workload is stuck or does not end in time, or a file cannot be written.
    """
    host = Machine.of(machine)
    options = {
        "machine": host.spec,
        **policy_options(policy, assignments(host.costs)),
        "seed": seed,
        "scale": scale,
        "task_group_depth": task_group_depth,
        "relax_domain_level": relax_domain_level,
        "partition": several(partitions),
        "event": several(events),
        "time_limit": time_limit_s,
        "intervals": interval_s,
        "skip_steady": skip_steady_pct,
        "trace": trace,
        "ftrace": ftrace,
        "html": html,
        "output": several(output),
        "strict": strict,
        "json": True,
    }
    return Run(answer("run", options, Workload.of(workload), rows=True))


def explain(
    workload: WorkloadOf,
    machine: MachineOf,
    policy: PolicyOf = None,
    *,
    pid: int | None = None,
    cpu: int | None = None,
    first: int = 10,
    seed: int = 1,
    scale: float = 1.0,
    task_group_depth: int = 3,
    relax_domain_level: int | None = None,
    partitions: Iterable[str] = (),
    events: Iterable[str] = (),
    time_limit_s: int = 1000,
    strict: bool = False,
) -> Decisions:
    """The first decisions of a run, with the reason for each, as `coreward explain` prints them.

    Args:
        pid: only placements of this task, from 1 on.
        cpu: only decisions that this CPU made or that concern it.
        first: number of decisions, 1 to 1000000.

    The other arguments are those of `simulate()`.

    Raises:
        Error: a name or a value is refused, or the workload is stuck or does not end in time.
    """
    host = Machine.of(machine)
    options = {
        "machine": host.spec,
        **policy_options(policy, assignments(host.costs)),
        "pid": pid,
        "cpu": cpu,
        "first": first,
        "seed": seed,
        "scale": scale,
        "task_group_depth": task_group_depth,
        "relax_domain_level": relax_domain_level,
        "partition": several(partitions),
        "event": several(events),
        "time_limit": time_limit_s,
        "strict": strict,
        "json": True,
    }
    return Decisions(answer("explain", options, Workload.of(workload)))


def machines() -> Machines:
    """The machines that come with the program, as `coreward machines` lists them."""
    return Machines(answer("machines", {"json": True}))


def features(profile: str = "linux-6.12", *, directory: PathOf | None = None) -> Features:
    """The features and tunables of the policy with their values in a kernel, as `coreward features` lists them.

    Args:
        profile: the kernel.
        directory: a directory with a policy of your own.

    Raises:
        Error: there is no such profile, or the directory is refused.
    """
    return Features(answer("features", {"profile": profile, "policy": directory, "json": True}))
