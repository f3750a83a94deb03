# SPDX-License-Identifier: GPL-2.0-only
"""For check-wheel.sh: `check-tuned.py export DIR` writes a setting by the package, `check-tuned.py apply NAME` has TuneD apply the profile
of that name, verify it, find a change, and take it back."""

import sys
import time
from pathlib import Path

SCHED = Path("/sys/kernel/debug/sched")


def export(directory):
    from coreward.tune._export import exports

    exports("check", "linux-6.12", "NO_TTWU_QUEUE,base_slice_ns=2ms,nr_migrate=8").write(Path(directory))


def state():
    return {name: (SCHED / name).read_text().strip() for name in ("features", "base_slice_ns", "nr_migrate")}


def apply(profile):
    import tuned.daemon
    from tuned.utils.global_config import GlobalConfig

    before = state()
    daemon = tuned.daemon.Application(profile, GlobalConfig())._daemon
    daemon.start()
    end = time.monotonic() + 30
    while state()["nr_migrate"] != "8" and time.monotonic() < end:
        time.sleep(0.05)
    # the last file is written, and the script ends
    time.sleep(1)
    applied = state()
    assert (applied["features"], applied["nr_migrate"]) == ("NO_TTWU_QUEUE", "8") and applied != before, applied
    assert daemon.verify_profile(False)
    (SCHED / "nr_migrate").write_text("5\n")
    assert not daemon.verify_profile(False), "another value is found"
    daemon.stop()
    # a plain file keeps only the last word that is written to it, where the kernel's has all features
    assert state() == {**before, "features": "TTWU_QUEUE"}, state()


{"export": export, "apply": apply}[sys.argv[1]](sys.argv[2])
