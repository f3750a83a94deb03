# SPDX-License-Identifier: GPL-2.0-only
"""How long do wakeups wait under hackbench on a machine with two nodes, and what takes the CPUs' time?"""

import coreward

run = coreward.simulate("hackbench -g 2 -f 4 --pipe -l 500", "2n2l2c2t")
print(f"{run.workload} on {run.machine} under {run.profile}")
for name in ("runtime_s", "cpu_migrations", "wakeup_latency_us_p50", "wakeup_latency_us_p99"):
    print(f"{name:24} {run.metrics[name]:12.6g}")

total = sum(run.cpu_time_s.values())
for part, seconds in sorted(run.cpu_time_s.items(), key=lambda part: -part[1])[:5]:
    print(f"{part:24} {100 * seconds / total:10.1f} %")
