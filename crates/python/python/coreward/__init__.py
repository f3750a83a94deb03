# SPDX-License-Identifier: GPL-2.0-only
"""coreward: where should a task run when it wakes, forks, or when a CPU goes idle?

A laboratory for CPU placement on Linux. A workload, a machine and a policy are given in the words of the command line,
and each function does what the command of that name does, with the same result to the byte::

    import coreward

    run = coreward.simulate("hackbench -g 4 --pipe", "2n4l8c2t")
    run.metrics["wakeup_latency_us_p99"]

    found = coreward.compare("hackbench -g 4 --pipe", "2n4l8c2t", "WAKEUP_BIAS_PREV", runs=10)
    found.verdicts

Errors are `coreward.Error`, with the message of the command line. What a command line remarks on standard error is a
warning of the class `coreward.Remark`. Ctrl-C stops whatever runs, and other threads of Python run meanwhile.
"""

from ._comparisons import compare, compare_experiment, matrix
from ._measurements import calibrate, import_trace, validate
from ._native import Error, __version__
from ._results import (
    Calibration,
    Comparison,
    Decisions,
    Features,
    Imported,
    Machines,
    Matrix,
    Result,
    Run,
    Sweep,
    Validation,
)
from ._runs import explain, features, machines, simulate
from ._spec import Machine, Policy, Workload
from ._sweeps import sweep
from ._table import Table
from ._words import Remark

__all__ = [
    "Calibration",
    "Comparison",
    "Decisions",
    "Error",
    "Features",
    "Imported",
    "Machine",
    "Machines",
    "Matrix",
    "Policy",
    "Remark",
    "Result",
    "Run",
    "Sweep",
    "Table",
    "Validation",
    "Workload",
    "__version__",
    "calibrate",
    "compare",
    "compare_experiment",
    "explain",
    "features",
    "import_trace",
    "machines",
    "matrix",
    "simulate",
    "sweep",
    "validate",
]
