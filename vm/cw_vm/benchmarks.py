# SPDX-License-Identifier: GPL-2.0-only
"""Benchmarks of schedulers in guests: what is run, and the figure in what it prints. Less is better
in each of them."""

import re
from collections.abc import Callable
from dataclasses import dataclass


def _number(pattern: str) -> Callable[[str], float | None]:
    """Reads the number that a pattern finds."""

    def read(text: str) -> float | None:
        match = re.search(pattern, text, re.MULTILINE)
        return float(match[1]) if match else None

    return read


# The share of wakeups that are not later than what counts as the latency.
_QUANTILE = 0.99


def percentile(text: str) -> float | None:
    """The 99th percentile of the wakeup latencies, in us, from the histogram that `cyclictest -h`
    prints: a line for each us, with a column for each thread. None if there is no such histogram, or if
    so many are beyond its end that the percentile is."""
    counts = {}
    for line in text.splitlines():
        if re.fullmatch(r"\d{6}(\s+\d{6,})+\s*", line):
            latency, *threads = map(int, line.split())
            counts[latency] = sum(threads)
    overflows = re.search(r"^# Histogram Overflows:(.*)$", text, re.MULTILINE)
    if not counts or not overflows:
        return None
    total = sum(counts.values()) + sum(map(int, overflows[1].split()))
    below = 0
    for latency, count in sorted(counts.items()):
        below += count
        if below >= _QUANTILE * total:
            return float(latency)
    return None


@dataclass(frozen=True)
class Benchmark:
    """One benchmark."""

    command: str
    unit: str
    read: Callable[[str], float | None]
    """The figure in its output; None if there is none."""


_HACKBENCH = _number(r"^Time: ([\d.]+)")
_LOAD = "hackbench --process --pipe --groups 1 --loops 1000000"

# Of sizes that take 0.3 s to 1 s at 1 ns an instruction.
BENCHMARKS = {
    # 40 threads over 400 pipes.
    "hackbench-pipe-threads": Benchmark("hackbench --threads --pipe --groups 1 --loops 200", "s", _HACKBENCH),
    # 40 processes over 400 pairs of sockets.
    "hackbench-socket-processes": Benchmark("hackbench --process --groups 1 --loops 150", "s", _HACKBENCH),
    # More threads than CPUs, which yield and sleep on four locks.
    "sysbench-threads": Benchmark(
        "sysbench threads --threads=16 --thread-yields=100 --thread-locks=4 --time=0 --events=2000 run",
        "s",
        _number(r"total time:\s+([\d.]+)s"),
    ),
    # Two tasks that take turns.
    "perf-pipe": Benchmark(
        "perf bench sched pipe --loop 4000", "s", _number(r"Total time: ([\d.]+) \[sec\]")
    ),
    # Threads that sleep on timers beside 40 busy tasks: the latencies of their wakeups. Debian has no
    # schbench.
    "wakeup-p99": Benchmark(
        f"{_LOAD} >/dev/null & load=$!; "
        "cyclictest --quiet --policy=other --threads=4 --interval=1000 --distance=500 --loops=2000 --histogram=50000; "
        "kill $load",
        "us",
        percentile,
    ),
}
