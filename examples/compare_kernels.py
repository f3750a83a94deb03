# SPDX-License-Identifier: GPL-2.0-only
"""Is a newer kernel better for my workload? Linux 7.3 beside 6.12, each with the same ten seeds."""

import coreward

found = coreward.compare(
    "hackbench -g 2 -f 4 --pipe -l 500",
    "2n2l2c2t",
    "linux-7.3",
    baseline="linux-6.12",
    headline=["messages_per_s", "wakeup_latency_us_p99"],
    runs=10,
)
for (side, metric), verdict in found.verdicts.items():
    low, high = found.interval_pct(metric, side)
    print(f"{side}: {metric} {found.delta_pct(metric, side):+.1f} % (CI95 {low:+.1f} to {high:+.1f}): {verdict}")
print(found.cases[0]["recipe"]["command"])
