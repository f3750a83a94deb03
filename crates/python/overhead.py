# SPDX-License-Identifier: GPL-2.0-only
"""What a run costs in Python beside the command: `python overhead.py target/release/coreward`.

Both are called in turn, so that what else the machine does meets both. The time of a pair's calls is compared, and the
median of the ratios does not depend on how busy the machine is.
"""

import json
import resource
import statistics
import subprocess
import sys
import time

import coreward

WORKLOADS = {
    "no work": "hackbench -g 1 -f 1 -l 1 --pipe",
    "0.1 s": "hackbench -g 2 -f 10 -l 2000 --pipe",
}
PAIRS = 40


def cpu_s(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def timed(call, whose: int) -> tuple[float, float]:
    """Wall time and CPU time of a call, in s."""
    wall, cpu = time.perf_counter(), cpu_s(whose)
    call()
    return time.perf_counter() - wall, cpu_s(whose) - cpu


def pair(program: str, workload: str, seed: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """The command, whose output is read as Python's is, and the function."""

    def command() -> None:
        words = [program, "run", workload, "--machine", "8c", "--seed", str(seed), "--json"]
        json.loads(subprocess.run(words, capture_output=True, check=True).stdout)

    def function() -> None:
        assert coreward.simulate(workload, "8c", seed=seed).metrics

    return timed(command, resource.RUSAGE_CHILDREN), timed(function, resource.RUSAGE_SELF)


def main() -> None:
    program = sys.argv[1]
    print("| run | command, ms | Python, ms | wall time | CPU time |\n|---|---|---|---|---|")
    for name, workload in WORKLOADS.items():
        pair(program, workload, 0)
        pairs = [pair(program, workload, seed) for seed in range(1, PAIRS + 1)]
        commands, functions = zip(*pairs, strict=True)
        wall, cpu = (
            statistics.median(100 * (function[i] / command[i] - 1) for command, function in pairs) for i in (0, 1)
        )
        medians = (1e3 * statistics.median(one[0] for one in side) for side in (commands, functions))
        print(f"| {name} | {next(medians):.1f} | {next(medians):.1f} | {wall:+.1f} % | {cpu:+.1f} % |")


if __name__ == "__main__":
    main()
