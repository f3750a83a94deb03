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
    delta, interval = found.delta_pct(metric, side), found.interval_pct(metric, side)
    # there is none if the baseline's mean is 0
    if delta is not None and interval is not None:
        print(f"{side}: {metric} {delta:+.1f} % (CI95 {interval[0]:+.1f} to {interval[1]:+.1f}): {verdict}")
print(found.cases[0]["recipe"]["command"])
