# SPDX-License-Identifier: GPL-2.0-only
"""How many runs does it take to see a change of 5 %? The spread over seeds, run by all CPUs at once."""

import statistics
from concurrent.futures import ThreadPoolExecutor

import coreward


def runtime_s(seed: int) -> float:
    return coreward.simulate("hackbench -g 2 -f 4 --pipe -l 200", "2n2l2c2t", seed=seed).metrics["runtime_s"]


# a simulation lets other threads of Python run
with ThreadPoolExecutor() as pool:
    times = list(pool.map(runtime_s, range(1, 25)))
spread = statistics.stdev(times) / statistics.mean(times)
# of two sides, for a power of 80 % at a level of 5 %
needed = 2 * ((1.96 + 0.84) * spread / 0.05) ** 2
print(f"runtime {statistics.mean(times):.4f} s, standard deviation {100 * spread:.1f} %")
print(f"{max(2, round(needed))} runs a side show a change of 5 %")
