# SPDX-License-Identifier: GPL-2.0-only
"""How do wakeup latencies grow with the load? A plot in latencies.html, drawn by Altair."""

import sys

import coreward
from coreward import plot

runs = [coreward.simulate(f"hackbench -g {groups} -f 4 --pipe -l 200", "2n2l2c2t") for groups in (1, 2, 4)]
for run in runs:
    p50, p99 = (run.metrics[f"wakeup_latency_us_{name}"] for name in ("p50", "p99"))
    print(f"{run.workload}: p50 {p50:.1f} us, p99 {p99:.1f} us")

page = sys.argv[1] if len(sys.argv) > 1 else "latencies.html"
plot.latencies(runs, by="workload").save(page)
print(f"{page} is written")
