# SPDX-License-Identifier: GPL-2.0-only
"""Who computed and who woke whom? A recording of `perf sched record` becomes a workload, which then runs elsewhere."""

import sys
import tempfile
import warnings
from pathlib import Path

import coreward
from coreward import Workload

# what a recording lacks is printed below
warnings.simplefilter("ignore", coreward.Remark)

data = Path(__file__).parent.parent / "crates/trace/tests/data/perf.data.gz"
recording = sys.argv[1] if len(sys.argv) > 1 else data
with tempfile.TemporaryDirectory() as directory:
    file = Path(directory, "mine.cww")
    imported = coreward.import_trace(recording, file, machine="2c")
    for row in imported.table("classes"):
        print(f"{row['name']:16} {row['tasks']:3} tasks, {row['cpu_s']:.4f} s, {row['explained_pct']:.0f} % of waits explained")
    run = coreward.simulate(Workload(file), "2c")
    for remark in run.remarks:
        print(f"note: {remark.rsplit(': ', 1)[-1]}")
    print(f"simulated: {run.metrics['runtime_s']:.4f} s, {run.metrics['wakeups']:.0f} wakeups")
