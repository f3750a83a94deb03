# SPDX-License-Identifier: GPL-2.0-only
"""A setting in the forms in which machines take it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .. import Error, Policy, features
from .._native import Files

#: The features that kernels have in sched/features (kernel/sched/features.h of 5.4 to 7.3) and the policy, too.
_IN_KERNEL = frozenset(
    "CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO GENTLE_FAIR_SLEEPERS HRTICK LAST_BUDDY NEXT_BUDDY NI_RANDOM NI_RATE "
    "PICK_BUDDY PLACE_DEADLINE_INITIAL PLACE_LAG PLACE_REL_DEADLINE PREEMPT_SHORT RUN_TO_PARITY SCHED_CACHE SIS_PROP "
    "SIS_UTIL START_DEBIT TTWU_QUEUE UTIL_EST WAKEUP_PREEMPTION WA_BIAS WA_IDLE WA_WEIGHT".split()
)

_UNITS = {"": 1, "ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}

_SCRIPT = r"""#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Sets what `coreward tune` found in the kernel's own scheduler: sched.sh start, stop or verify.
# It needs root and debugfs. stop puts back what start found.
set -eu
sched=${SCHED:-/sys/kernel/debug/sched}
saved=${SAVED:-/run/coreward-tune}
cpus=${CPUS:-$(nproc --all)}
# the kernel has slices multiplied by 1 + log2(min(CPUs, 8))
factor=$((1 + (cpus >= 2) + (cpus >= 4) + (cpus >= 8)))
case ${1-} in start | stop | verify) action=$1 ;; *) echo "usage: sched.sh start|stop|verify" >&2; exit 2 ;; esac

put() { # file, what is there, what is wanted
	old=$saved/$(echo "$1" | tr / _)${4-}
	case $action in
	start) mkdir -p "$saved"; [ -e "$old" ] || echo "$2" >"$old"; echo "$3" >"$sched/$1" ;;
	stop) [ ! -e "$old" ] || { cat "$old" >"$sched/$1"; rm "$old"; } ;;
	verify) [ "$2" = "$3" ] || { echo "$1: $2 instead of $3" >&2; exit 1; } ;;
	esac
}
tunable() { put "$1" "$(cat "$sched/$1")" "$2"; }
feature() {
	name=${1#NO_}
	put features "$(tr ' ' '\n' <"$sched/features" | grep -x "$name\|NO_$name")" "$1" ".$name"
}

"""


@dataclass(frozen=True)
class Exports:
    """A setting for use.

    Attributes:
        live: options of `coreward live`.
        script: a shell script that sets the kernel's own scheduler through debugfs.
        tuned: a profile of TuneD, which runs the script beside it.
        drop_in: a drop-in for coreward.service, which runs `coreward live`.
        not_in_kernel: what the script cannot set, because kernels have no such file.
    """

    live: str
    script: str
    tuned: str
    drop_in: str
    not_in_kernel: tuple[str, ...]

    def write(self, directory: Path) -> None:
        """Writes each of them into a directory.

        Raises:
            Error: one cannot be written.
        """
        script = directory / "sched.sh"
        forms = {
            directory / "live.options": self.live + "\n",
            script: self.script,
            directory / "tuned.conf": self.tuned,
            directory / "coreward.service.d" / "tune.conf": self.drop_in,
        }
        files = Files([])
        try:
            (directory / "coreward.service.d").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Error(f"cannot write {error.filename}: {error.strerror}") from None
        for file in forms:
            files.open("--export", file)
        files.finish(list(forms.values()))
        script.chmod(0o755)


def exports(name: str, profile: str, *changes: str | None) -> Exports:
    """What a setting is in each form, the baseline's changes before its own.

    Raises:
        Error: the profile is unknown.
    """
    known = {feature["name"]: feature for feature in features(profile)}
    policy = Policy.parse(",".join(filter(None, changes)))
    switched = {feature.removeprefix("NO_"): feature for feature in policy.features}
    words = [f"--profile={profile}"]
    words += [f"--sched-feat={feature}" for feature in switched.values()]
    words += [f"--set={tunable}={value}" for tunable, value in policy.tunables.items()]
    lines, missing = [], []
    for base, feature in switched.items():
        lines.append(f"feature {feature}") if base in _IN_KERNEL else missing.append(feature)
    for tunable, value in policy.tunables.items():
        meaning = str(known[tunable]["help"])
        file = re.search(r"\(sched/([a-z_/]+)\)", meaning)
        if file is None:
            missing.append(f"{tunable}={value}")
        elif "scaling" in meaning:
            lines.append(f"tunable {file[1]} $(({_ns(value)} * factor))")
        else:
            lines.append(f"tunable {file[1]} {_ns(value)}")
    lines += [f"# no kernel has a file for {what}" for what in missing]
    live = " ".join(words)
    # in files that root reads, a name must be neither a line of its own nor something to be expanded
    name = re.sub(r"[^\w .,:;+()/=-]+", " ", name)
    return Exports(
        live=live,
        script=_SCRIPT + "\n".join(lines) + "\n",
        tuned=f"[main]\nsummary=coreward tune: {name}\n\n[script]\nscript=${{i:PROFILE_DIR}}/sched.sh\n",
        drop_in=(
            f'# coreward tune: {name}\n[Service]\n# the file would replace OPTIONS\nEnvironmentFile=\nEnvironment="OPTIONS={live}"\n'
        ),
        not_in_kernel=tuple(missing),
    )


def _ns(value: object) -> int:
    number, unit = re.fullmatch(r"(-?\d+)([a-z]*)", str(value)).groups()  # type: ignore[union-attr]
    return int(number) * _UNITS[unit]
