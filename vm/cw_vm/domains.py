# SPDX-License-Identifier: GPL-2.0-only
"""Compares the sched domains of a guest with those that `coreward domains` prints.

Both sides become facts, which have a name and a value: `cpu3/domain1/flags` as debugfs shows it,
`cpu3/domain1/span` from /proc/schedstat, `cpu3/core_cpus_list` and the like from sysfs. They
must be equal, fact by fact; a fact that only one side has is a difference.
"""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from . import packages
from .errors import CannotBuild
from .machine import Machine, ask, load

Facts = dict[str, str]

# Files of a domain in debugfs that `coreward domains` prints.
_PRINTED = ("name", "level", "flags", "groups_flags")
# Others, and what they are called in `coreward domains --json`.
_NUMBERS = {
    "min_interval": "min_interval_ms",
    "max_interval": "max_interval_ms",
    "busy_factor": "busy_factor",
    "imbalance_pct": "imbalance_pct",
    "cache_nice_tries": "cache_nice_tries",
}

DUMP = f"""
cd /sys/kernel/debug/sched/domains || exit
for file in {' '.join((*_PRINTED, *_NUMBERS))}; do grep . cpu*/*/$file; done
grep -E '^(cpu|domain)' /proc/schedstat | sed 's/ 0 .*//'
cd /sys/devices/system
grep . cpu/cpu*/topology/core_cpus_list cpu/cpu*/topology/package_cpus_list
if [ "$(uname -m)" = aarch64 ]; then grep . cpu/cpu*/cpu_capacity; fi
grep . node/node*/cpulist node/node*/distance
"""
"""Prints all facts of a guest."""


@dataclass(frozen=True)
class Case:
    """A guest whose domains are compared: its kernel and whether that was built with
    CONFIG_SCHED_CLUSTER, its machine, and `relax_domain_level`."""

    series: str
    sched_cluster: bool
    machine: str
    relax: int


def of_guest(text: str) -> Facts:
    """The facts that `DUMP` printed."""
    facts: Facts = {}
    cpu = ""
    for line in text.splitlines():
        if match := re.match(r"(cpu\d+/domain\d+/\w+):(.*)$", line):
            facts[match[1]] = match[2]
        elif match := re.match(r"cpu/(cpu\d+)/(?:topology/)?(\w+):(.*)$", line):
            facts[f"{match[1]}/{match[2]}"] = match[3]
        elif match := re.match(r"node/(node\d+/\w+):(.*)$", line):
            facts[match[1]] = match[2].strip()
        elif match := re.match(r"(cpu\d+)\b", line):
            cpu = match[1]
        elif match := re.match(r"(domain\d+) (?:[A-Z]+ )?([0-9a-f,]+)", line):
            facts[f"{cpu}/{match[1]}/span"] = match[2]
    return facts


def _words(series: str, machine: str, sched_cluster: bool) -> list[str]:
    """How `coreward` is asked for the domains of a machine under a kernel."""
    words = ["domains", machine, "--profile", f"linux-{series}"]
    return words if sched_cluster else [*words, "--no-sched-cluster"]


def _of_cpu(case: Case, cpu: int) -> Facts:
    """What `coreward domains` says of one CPU."""
    words = [*_words(case.series, case.machine, case.sched_cluster), "--cpu", str(cpu)]
    words.append(f"--relax-domain-level={case.relax}")
    facts = of_guest(f"cpu{cpu}\n" + ask(*words, "--schedstat"))
    for index, domain in enumerate(json.loads(ask(*words, "--json"))["domains"]):
        for file, key in _NUMBERS.items():
            facts[f"cpu{cpu}/domain{index}/{file}"] = str(domain[key])
    return facts


def _cpu_list(cpus: list[int]) -> str:
    """CPUs as sysfs lists them: `0-3,8`."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def _placement(machine: Machine, has_capacity: bool) -> Facts:
    """Where the CPUs are, as sysfs shows it."""
    facts: Facts = {}
    numbered = list(enumerate(machine.cpus))
    for number, cpu in numbered:
        facts[f"cpu{number}/core_cpus_list"] = _cpu_list(
            [n for n, other in numbered if other.core == cpu.core]
        )
        facts[f"cpu{number}/package_cpus_list"] = _cpu_list(
            [n for n, other in numbered if other.package == cpu.package]
        )
        if has_capacity:
            facts[f"cpu{number}/cpu_capacity"] = str(cpu.capacity)
    for node, row in enumerate(machine.distances):
        facts[f"node{node}/cpulist"] = _cpu_list([n for n, cpu in numbered if cpu.node == node])
        facts[f"node{node}/distance"] = " ".join(map(str, row))
    return facts


def of_coreward(case: Case) -> Facts:
    """The facts that a guest must have. On x86 all CPUs are of one capacity, which is not shown."""
    machine = load(case.machine)
    with ThreadPoolExecutor(2) as pool:
        by_cpu = pool.map(lambda cpu: _of_cpu(case, cpu), range(len(machine.cpus)))
        facts = {name: content for part in by_cpu for name, content in part.items()}
    return facts | _placement(machine, machine.arch == "arm64")


def _level_max(words: list[str]) -> int:
    """The level of the machine's top domain, which coreward names as it refuses a request."""
    try:
        ask(*words, "--relax-domain-level=1000")
    except CannotBuild as error:
        if match := re.search(r"top level is (\d+)", str(error)):
            return int(match[1])
        raise
    raise CannotBuild("coreward refuses no relax_domain_level: is it the right program?")


def cases(series: str, machine: str, arch: str | None) -> Iterator[Case]:
    """A case for every `relax_domain_level` that the machine has under a kernel."""
    arch = arch or ("arm64" if load(machine).arch == "arm64" else "amd64")
    config = packages.kernel(series, arch).config.read_text(encoding="utf-8")
    sched_cluster = "CONFIG_SCHED_CLUSTER=y" in config
    for relax in range(-1, _level_max(_words(series, machine, sched_cluster)) + 2):
        yield Case(series, sched_cluster, machine, relax)


def differences(guest: Facts, coreward: Facts) -> list[str]:
    """What differs, one line each."""
    none = "(absent)"
    names = sorted(
        guest.keys() | coreward.keys(),
        key=lambda name: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)],
    )
    return [
        f"{name}: guest '{guest.get(name, none)}', coreward '{coreward.get(name, none)}'"
        for name in names
        if guest.get(name) != coreward.get(name)
    ]


def controls(facts: Facts) -> list[tuple[str, Facts]]:
    """Changed expectations, each of which a comparison must catch."""
    changed = []
    for file in ("span", "flags", "groups_flags", "level", *_NUMBERS):
        name = next((name for name in sorted(facts) if name.endswith("/" + file)), None)
        if name:
            content = facts[name]
            other = (
                re.sub(r"SD_\w+ ", "", content, count=1)
                if "flags" in file
                else content[:-1] + ("1" if content[-1] != "1" else "2")
            )
            changed.append((f"{name} '{other}'", {**facts, name: other}))
    without = dict(facts)
    name = max(without)
    del without[name]
    changed.append((f"no {name}", without))
    return changed
