# SPDX-License-Identifier: GPL-2.0-only
"""What differs beyond the headline? All metrics of all runs in SQL, by DuckDB, which takes a table as it is."""

import coreward
import duckdb

runs = coreward.compare("hackbench -g 2 -f 4 --pipe -l 500", "2n2l2c2t", "WAKEUP_BIAS_PREV", runs=5).table("runs")
print(
    duckdb.sql("""
        SELECT DISTINCT metric, delta_pct, unit, p_value
        FROM runs
        WHERE role = 'variant' AND p_value < 0.01 AND better <> 'neutral'
        ORDER BY abs(delta_pct) DESC
        LIMIT 8
    """)
)
