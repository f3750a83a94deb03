# SPDX-License-Identifier: GPL-2.0-only
"""Which of many settings suits both machines? A grid of features and slices, as a data frame of polars."""

import coreward
import polars

found = coreward.sweep(
    {
        "name": "slices",
        "machines": ["2n2l2c2t", "1n4l2c1t"],
        "workloads": ["hackbench -g <cpus/4> -f 4 --pipe -l 200"],
        "runs": 3,
        "grid": {"WAKEUP_BIAS_PREV": [True, False], "base_slice_ns": ["700us", "3ms"]},
    }
)
print(polars.DataFrame(found.table("settings")))

# every metric of every run, with the setting in the column `side`
runs = polars.DataFrame(found.table("runs"))
wide = runs.filter(polars.col("metric").is_in(["runtime_s", "cpu_migrations"])).pivot(
    on="metric", index=["machine", "side"], values="value", aggregate_function="mean"
)
print(wide.sort("machine", "runtime_s"))
