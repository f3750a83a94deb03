# SPDX-License-Identifier: GPL-2.0-only
"""What guests run while their kernel's decisions are recorded."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """A command, and how much of it is recorded."""

    command: str
    limit: int = 4000
    """Placements to record. Enough for each rule to have been used, little enough for a file of some MB."""


LOADS = {
    # Pairs over pipes, threads of one process; more tasks than CPUs.
    "hackbench-pipe-threads": Load("hackbench --threads --pipe --groups 1 --loops 250"),
    # The same over sockets, each task a process.
    "hackbench-socket-processes": Load("hackbench --process --groups 1 --loops 250"),
    # Fewer tasks than CPUs: idle CPUs to choose from.
    "hackbench-few": Load("hackbench --process --pipe --groups 1 --fds 2 --loops 40000"),
    # Locks that threads sleep on.
    "sysbench-threads": Load("sysbench threads --threads=12 --thread-yields=50 --thread-locks=3 --time=4 run"),
    # Two tasks that take turns.
    "perf-pipe": Load("perf bench sched pipe --loop 1500", 3000),
    # Tasks that may not run everywhere, and change where they may.
    "affinity": Load(
        "sh -c 'stress-ng --quiet --affinity 3 --affinity-rand --timeout 5 & "
        "taskset 5 hackbench --process --pipe --groups 1 --fds 4 --loops 2000 & wait'",
    ),
    # Tasks of the idle class beside others.
    "idle-class": Load(
        "sh -c 'stress-ng --quiet --cpu 3 --cpu-method int64 --sched idle --timeout 5 & "
        "hackbench --process --pipe --groups 1 --fds 3 --loops 20000 & wait'",
    ),
    # Processes that come, start programs and go.
    "fork-storm": Load("stress-ng --quiet --fork 2 --exec 2 --timeout 8", 6000),
    # Mostly idle: threads that sleep on timers.
    "timers": Load("cyclictest --quiet --policy=other --threads=6 --interval=4000 --duration=5", 3000),
    # More work than CPUs, of unequal weight: the balancer has to choose.
    "spinners": Load(
        "sh -c 'for nice in 0 0 5 5 10 10 0 0 0 0 5; do "
        "nice -n $nice stress-ng --quiet --cpu 1 --cpu-method int64 --timeout 6 & done; wait'",
        2000,
    ),
}

PACKAGES = ("linux-perf", "rt-tests", "stress-ng", "sysbench")
"""Debian's packages that their programs are from."""

SHORT = ("hackbench-few", "fork-storm")
"""The loads of a quick check: wakeups with idle CPUs, forks, programs started, balancing."""


def script(names: list[str], seconds: int) -> str:
    """A shell script that runs loads under the recorder, each for a bounded time. A load that is cut
    off has been recorded all the same."""
    lines = ["status=0"]
    for name in names:
        load = LOADS[name]
        record = f"coreward-record -o /out/{name}.cwc --limit {load.limit}"
        lines += [
            f"{record} -- timeout {seconds} {load.command} >/tmp/{name} 2>&1",
            f"tail -n 1 /tmp/{name}",
            f"[ -e /out/{name}.cwc ] || {{ cat /tmp/{name}; status=1; }}",
        ]
    return "\n".join([*lines, "exit $status"])
