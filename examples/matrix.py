# SPDX-License-Identifier: GPL-2.0-only
"""Whom does a change hurt? A feature on machines that I do not have, under workloads that I did not think of."""

import coreward

found = coreward.matrix(
    "WAKEUP_BIAS_PREV",
    machines=["2n2l2c2t", "1n4l2c1t"],
    workloads=["perf bench sched pipe -l 2000", "hackbench -g <cpus/4> -f 4 --pipe -l 200"],
    runs=4,
)
print({name: found.summary[name] for name in ("cells", "worse", "better", "not_shown", "same")})
for row in found.table("cells"):
    change = "from 0" if row["delta_pct"] is None else f"{row['delta_pct']:+.1f} %"
    print(f"{row['machine']:10} {row['workload']:54} {row['metric']:16} {change:>9} {row['verdict']}")
