# SPDX-License-Identifier: GPL-2.0-only
"""Migrations between CPUs in guests, counted by the kernel: a histogram on the tracepoint
sched:sched_migrate_task (Documentation/trace/histogram.rst), and how far each migration went."""

import re
from collections import Counter

from .machine import Machine

_EVENT = "/sys/kernel/tracing/events/sched/sched_migrate_task"
START = f"echo hist:keys=orig_cpu,dest_cpu:size=65536 >{_EVENT}/trigger"
"""Begins to count."""
STOP = f"cat {_EVENT}/hist >$1; echo '!hist:keys=orig_cpu,dest_cpu:size=65536' >{_EVENT}/trigger"
"""Writes the counts to the file $1 and counts no more."""

DISTANCES = ("core", "LLC", "node", "across")
"""How far: within the core, else the LLC, else the node, else to another node."""

_ENTRY = re.compile(r"\{ orig_cpu:\s*(\d+), dest_cpu:\s*(\d+) \} hitcount:\s*(\d+)")
_DROPPED = re.compile(r"Dropped: (\d+)")


def _distance(machine: Machine, source: int, target: int) -> str:
    a, b = machine.cpus[source], machine.cpus[target]
    if a.core == b.core:
        return "core"
    if a.llc == b.llc:
        return "LLC"
    return "node" if a.node == b.node else "across"


def read(text: str, machine: Machine) -> Counter[str]:
    """Migrations by distance from the kernel's histogram. Raises ValueError if it is not whole."""
    dropped = _DROPPED.search(text)
    if not dropped or dropped[1] != "0":
        raise ValueError("the histogram of migrations is not whole")
    counts: Counter[str] = Counter()
    for source, target, count in _ENTRY.findall(text):
        counts[_distance(machine, int(source), int(target))] += int(count)
    return counts
