# SPDX-License-Identifier: GPL-2.0-only
"""What features and tunables of coreward's policy must do to migrations on a running kernel: the
guest's script, and the verdict on what it counted."""

import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from . import migrations, schedulers
from .machine import Machine

# Every migration, and those that leave the LLC.
ALL = migrations.DISTANCES
FAR = ("node", "across")


@dataclass(frozen=True)
class Effect:
    """Two settings of the scheduler, of which the second must migrate less."""

    machine: str
    load: str
    more: str
    """Arguments of `coreward live` with which there are more migrations."""
    fewer: str
    """Arguments with which there are fewer."""
    distances: tuple[str, ...]
    """Which migrations the policy says it of."""


EFFECTS = {
    # With it a woken task stays on the CPU that it ran on if that has spare capacity, or nothing idles.
    "wakeup-bias-prev": Effect(
        "1n2l4c1t",
        "hackbench --process --pipe --groups 2 --fds 4 --loops 1500",
        "--sched-feat NO_WAKEUP_BIAS_PREV",
        "--sched-feat WAKEUP_BIAS_PREV",
        ALL,
    ),
    # At level 0 a CPU that runs out of work pulls from no domain, above the top level from all. Woken
    # tasks stay where they ran, so that most migrations are pulls.
    "relax-domain-level": Effect(
        "1n2l4c1t",
        "hackbench --process --pipe --groups 2 --fds 4 --loops 1500",
        "--sched-feat WAKEUP_BIAS_PREV --set relax_domain_level=3",
        "--sched-feat WAKEUP_BIAS_PREV --set relax_domain_level=0",
        ALL,
    ),
    # Two processes whose threads share data: each is to keep to one of the two LLCs. They run for many times
    # the 10 ms after which a process looks for one (llc_epoch_period).
    "cache-aware": Effect(
        "1n2l4c1t",
        "hackbench --threads --pipe --groups 1 --fds 3 --loops 12000 & "
        "hackbench --threads --pipe --groups 1 --fds 3 --loops 12000 & wait",
        "--sched-feat NO_SCHED_CACHE --sched-feat NO_CACHE_AWARE_WAKEUP",
        "--sched-feat SCHED_CACHE --sched-feat CACHE_AWARE_WAKEUP",
        FAR,
    ),
}


def script(effect: Effect, command: str, rounds: int) -> str:
    """The guest's script: in each round the load under both settings."""
    lines = [schedulers.PROLOGUE, f"count() {{ {migrations.STOP}; }}"]
    for number in range(rounds):
        for side, arguments in (("more", effect.more), ("fewer", effect.fewer)):
            name = f"/out/{number}.{side}"
            lines += [
                f"echo round {number + 1} of {rounds}: {arguments} >&2",
                f"scx_start {command} {arguments} || exit 0",
                f"scx_state >{name}.states",
                migrations.START,
                f"timeout 120 sh -c '{effect.load}' >{name}.output 2>&1 && scx_state >>{name}.states",
                f"count {name}",
                "scx_stop",
            ]
    return "\n".join([*lines, "exit 0"])


def read(out: Path, machine: Machine, side: str, rounds: int) -> list[Counter[str]]:
    """Migrations by distance in each round under one of the settings. Raises ValueError if the
    scheduler or the load did not last."""
    counts = []
    for number in range(rounds):
        name = out / f"{number}.{side}"
        path = name.with_name(f"{name.name}.states")
        states = path.read_text("utf-8").splitlines() if path.is_file() else []
        if len(states) != 2 or states[0] != states[1] or not states[0].startswith("enabled"):
            loader = (out / "loader").read_text("utf-8") if (out / "loader").is_file() else ""
            raise ValueError(
                f"round {number + 1}, {side}: the load did not run to its end under the scheduler: {loader}"
            )
        counts.append(migrations.read(name.read_text("utf-8"), machine))
    return counts


def median(counts: list[Counter[str]], distances: tuple[str, ...]) -> float:
    """The median over the rounds of all migrations of some distances."""
    return statistics.median(sum(count[distance] for distance in distances) for count in counts)
