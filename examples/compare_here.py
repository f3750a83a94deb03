# SPDX-License-Identifier: GPL-2.0-only
"""Would a shorter slice help on this machine?

The machine is what sysfs shows, with typical costs. `python compare_here.py here.toml` measures its costs first, which
takes half a minute of a quiet machine, and keeps them in that file.
"""

import sys

import coreward
from coreward import Machine

if len(sys.argv) > 1:
    calibration = coreward.calibrate(sys.argv[1])
    print(f"a switch takes {calibration.costs['switch_ns']['value']:.0f} ns here")
    machine = Machine(sys.argv[1])
else:
    machine = Machine.here()

found = coreward.compare("schbench -m 1 -t 4 -r 1", machine, "base_slice_ns=500us", scale=0.1, runs=5)
print(found.cases[0]["recipe"]["machine"])
for (side, metric), verdict in found.verdicts.items():
    print(f"{side}: {metric} {verdict}, a change of {found.delta_pct(metric, side):+.1f} %")
