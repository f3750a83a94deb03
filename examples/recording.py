# SPDX-License-Identifier: GPL-2.0-only
"""How would my server run on another machine? A recording of Redis on two CPUs, on machines with more."""

import warnings
from pathlib import Path

import coreward
from coreward import Machine, Workload

gallery = Path(__file__).parent.parent / "gallery"
# what a recording lacks is remarked, and was read once
warnings.simplefilter("ignore", coreward.Remark)

redis = Workload(gallery / "redis-2.cww")
for machine in (Machine(gallery / "here.toml"), Machine.regular(cores=4), Machine.regular(llcs=2, cores=2)):
    run = coreward.simulate(redis, machine)
    print(
        f"{run.machine:10} {1e3 * run.metrics['runtime_s']:6.1f} ms, {run.metrics['cpu_migrations']:6.0f} migrations, "
        f"{run.metrics['wakeup_latency_us_p99']:8.1f} us p99 of wakeup latencies"
    )
