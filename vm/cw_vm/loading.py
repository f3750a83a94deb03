# SPDX-License-Identifier: GPL-2.0-only
"""Whether a sched_ext scheduler loads on a kernel, runs and unloads: the guest's script, and the
verdict."""

import re

from . import packages, schedulers

_OPTION = "CONFIG_SCHED_CLASS_EXT"

ABSENT = "no sched_ext"
GOOD = "loads, runs, unloads"


def option(config: str) -> str:
    """The value of the option in a kernel's config."""
    if config.strip() == packages.NO_CONFIG:
        return "no config"
    match = re.search(rf"^{_OPTION}=(\w+)$", config, re.MULTILINE)
    return match[1] if match else "not set"


def script(command: str) -> str:
    """Loads a scheduler, runs hackbench under it and unloads it; each step's state is in /out/states."""
    return schedulers.PROLOGUE + "\n".join(
        [
            "scx_state > /out/states",
            "[ -d /sys/kernel/sched_ext ] || exit 0",
            f"scx_start {command} || {{ kill -9 $loader 2>/dev/null; exit 0; }}",
            "scx_state >> /out/states",
            "timeout 60 hackbench -g 2 -l 50 >/dev/null || exit 0",
            "scx_state >> /out/states",
            "scx_stop",
            "scx_state >> /out/states",
        ]
    )


def verdict(states: list[str], ops: str, said: str) -> str:
    """What the states of the four steps mean; `said` is the loader's output."""
    if states[0].startswith("absent"):
        return ABSENT
    steps = (("load", f"enabled 1 {ops}"), ("run", f"enabled 1 {ops}"), ("unload", "disabled 1"))
    for number, (step, wanted) in enumerate(steps, 1):
        if number >= len(states) or not states[number].startswith(wanted):
            errors = [line for line in said.splitlines() if line.startswith(("Error", "coreward"))]
            return f"does not {step}" + (f": {errors[0]}" if errors else "")
    return GOOD
