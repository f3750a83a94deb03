# SPDX-License-Identifier: GPL-2.0-only
"""Why did task 4 run there? Its first placements, with the reason for each, under two policies."""

import coreward

for policy in ("linux-6.12", "linux-6.12,WAKEUP_BIAS_PREV"):
    decisions = coreward.explain("hackbench -g 1 -f 4 --pipe -l 200", "2n2l2c2t", policy, pid=4, first=6)
    print(policy)
    for decision in decisions:
        print(
            f"  {decision['at_ns'] / 1e6:10.4f} ms {decision['event']:11} from CPU {decision['prev_cpu']} "
            f"to CPU {decision['cpu']}: {decision['reason']} {', '.join(decision['notes'])}"
        )
