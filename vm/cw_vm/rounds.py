# SPDX-License-Identifier: GPL-2.0-only
"""Interleaved rounds of schedulers in one guest: the guest's script, and what is read from its files.

In each round each scheduler runs each benchmark once, and then one more load with BPF's statistics
switched on, so that no measured time includes their cost. Before and after each benchmark the guest writes
down which scheduler schedules.
"""

import json
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import schedulers
from .benchmarks import BENCHMARKS
from .schedulers import Scheduler

# Callbacks whose cost is told: those of every wakeup and every switch.
CALLBACKS = ("select_cpu", "enqueue", "dispatch")

# Of the guest's clock: ten times what the slowest benchmark takes with the kernel's scheduler.
_SECONDS = 15
_FUNCTIONS = f"""
benchmark=/sys/fs/cgroup/benchmark

# bounded COMMAND: ends it after {_SECONDS} s, and then whatever it began: what a scheduler starved must
# not be a load of the next benchmark.
bounded() {{
	mkdir -p $benchmark
	timeout {_SECONDS} sh -c 'echo $$ >$0/cgroup.procs; eval "$1"' $benchmark "$1"
	set -- $?
	echo 1 >$benchmark/cgroup.kill
	while grep -q "populated 1" $benchmark/cgroup.events; do sleep 0.1; done
	return $1
}}

# run DIRECTORY NAME COMMAND: a benchmark; its states, status and output.
run() {{
	{{
		scx_state
		bounded "$3" >"$1/$2" 2>&1
		echo $?
		scx_state
	}} >"$1/$2.check"
}}

# count DIRECTORY COMMAND: a load under the statistics of BPF.
count() {{
	echo 1 >/proc/sys/kernel/bpf_stats_enabled
	bounded "$2" >/dev/null 2>&1
	echo 0 >/proc/sys/kernel/bpf_stats_enabled
	bpftool --json prog show >"$1/programs"
}}
"""
_COUNTED = "hackbench --threads --pipe --groups 1 --loops 100"


def _turns(chosen: list[Scheduler], rounds: int) -> Iterator[tuple[int, Scheduler]]:
    """The order of turns: each round begins with another scheduler, so that none is always after the same."""
    for number in range(rounds):
        first = number % len(chosen)
        for scheduler in chosen[first:] + chosen[:first]:
            yield number, scheduler


def script(chosen: list[Scheduler], names: list[str], rounds: int) -> str:
    """The guest's script."""
    lines = [schedulers.PROLOGUE + _FUNCTIONS, "mkdir /tmp/warm", "echo warming up >&2"]
    # the first turn is slower than all others, whichever scheduler has it: it is not counted
    lines += [f"run /tmp/warm {name} '{BENCHMARKS[name].command}'" for name in names]
    for number, scheduler in _turns(chosen, rounds):
        directory = f"/out/{number}/{scheduler.name}"
        runs = [f"run {directory} {name} '{BENCHMARKS[name].command}'" for name in names]
        runs += [f"count {directory} '{_COUNTED}'"] if scheduler.ops else []
        lines += [
            f"mkdir -p {directory}",
            f"echo round {number + 1} of {rounds}: {scheduler.name} >&2",
            f"if {scheduler.start}; then",
            *(f"\t{run}" for run in runs),
            "fi",
            "scx_stop",
            f"dmesg -c | grep sched_ext: >{directory}/kernel",
            f"[ ! -e /out/loader ] || mv /out/loader {directory}",
        ]
    return "\n".join([*lines, "exit 0"])


@dataclass
class Results:
    """The results of a guest's rounds."""

    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """The figures of each benchmark and scheduler in the order of the rounds; only of rounds in which
    that scheduler was there from the beginning to the end."""
    callbacks: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """Of each scheduler and callback: calls, and ns in all."""
    faults: list[str] = field(default_factory=list)
    """What was not measured, and why."""


def _fault(check: str, scheduler: Scheduler) -> str:
    """Why a benchmark does not count; empty if it does. `check` has the state before, the benchmark's
    status, and the state after."""
    lines = check.splitlines()
    if len(lines) != 3:
        return "it did not end"
    before, status, after = lines
    if status != "0":
        return f"it ended with status {status}"
    if before != after:
        return f"the scheduler fell out: '{before}' became '{after}'"
    if scheduler.ops:
        state, _, name = (*before.split(), "", "")[:3]
        if state != "enabled" or not name.startswith(scheduler.ops):
            return f"the scheduler was not there: '{before}'"
    elif before.startswith("enabled"):
        return f"a scheduler was there: '{before}'"
    return ""


def _said(directory: Path) -> str:
    """What the kernel and the loader say about the end of a scheduler."""
    lines = []
    for name in ("kernel", "loader"):
        path = directory / name
        text = path.read_text("utf-8", "replace") if path.is_file() else ""
        lines += [line for line in text.splitlines() if "disabled (" in line or line.startswith("Error")]
    return "".join(f"; {line.strip()}" for line in lines if "unregistered from user space" not in line)


def read(out: Path, chosen: list[Scheduler], names: list[str], rounds: int) -> Results:
    """Reads the guest's files."""
    results = Results()
    for number, scheduler in _turns(chosen, rounds):
        directory = out / str(number) / scheduler.name
        where = f"{scheduler.name}, round {number + 1}"
        for name in names:
            check = directory / f"{name}.check"
            if not check.is_file():
                results.faults.append(f"{where}: it did not load{_said(directory)}")
                break
            fault = _fault(check.read_text("utf-8"), scheduler)
            value = BENCHMARKS[name].read((directory / name).read_text("utf-8", "replace"))
            if not fault and value is None:
                fault = "it printed no figure"
            if fault or value is None:
                results.faults.append(f"{where}, {name}: {fault}{_said(directory)}")
            else:
                results.values.setdefault((name, scheduler.name), []).append(value)
        if (directory / "programs").is_file():
            _count(results, scheduler, json.loads((directory / "programs").read_text("utf-8")))
    return results


# Callbacks are programs of sched_ext's structure of operations, with a prefix of the scheduler's.
_CALLBACK = re.compile(rf"[a-z0-9]+_({'|'.join(CALLBACKS)})")


def _count(results: Results, scheduler: Scheduler, programs: list[dict[str, object]]) -> None:
    """Adds BPF's statistics of the callbacks; those of other schedulers are not there."""
    for program in programs:
        match = _CALLBACK.fullmatch(str(program.get("name", "")))
        if match and program.get("type") == "struct_ops":
            calls, ns = results.callbacks.get((scheduler.name, match[1]), (0, 0))
            calls += int(str(program.get("run_cnt", 0)))
            ns += int(str(program.get("run_time_ns", 0)))
            results.callbacks[scheduler.name, match[1]] = (calls, ns)


def spread(values: list[float]) -> float:
    """How far apart the figures are: the largest less the smallest, over the median."""
    middle = statistics.median(values)
    return (max(values) - min(values)) / middle if middle else 0.0
