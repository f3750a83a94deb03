# SPDX-License-Identifier: GPL-2.0-only
"""What coreward's scheduler reports about itself in a guest: the guest's script, and the verdict on its
files, by comparison with what the kernel counts and dumps.

Every verdict is also applied to modified files, which it must reject.
"""

import json
import re
from collections import Counter
from typing import Any

from . import schedulers

MACHINE = "1n2l2c1t"
LOOPS = 500
"""Of hackbench, with one group of four senders and four receivers. Four of its messages fill a pipe, so that
it switches often under any scheduler."""

LEAST = 300
"""Placements, switches and the like that this makes at least."""

Files = dict[str, str]
"""What a guest wrote, by the files' names."""

# What is refused: the command, a part of the sentence, and the status. First without a scheduler.
_NOBODY = "/usr/bin/setpriv --reuid 65534 --clear-groups"
_LIVE = "coreward-live live"
_BEFORE = {
    "top": ("coreward-live top --once", "no `coreward live` runs", 1),
    "get": ("coreward-live get", "no `coreward live` runs", 1),
    "nobody": (f"{_NOBODY} {_LIVE}", "only root", 1),
    "name": (f"{_LIVE} --set no_such=1", "no_such", 2),
    "value": (f"{_LIVE} --set relax_domain_level=-2", "allowed are -1", 2),
    "level": (f"{_LIVE} --set relax_domain_level=9", "allowed are -1", 2),
    "feature": (f"{_LIVE} --sched-feat NO_SUCH", "SUCH", 2),
    "profile": (f"{_LIVE} --profile linux-2.4", "linux-2.4", 2),
    "btf": (f"hide /sys/kernel/btf {_LIVE}", "no BTF", 1),
    "config": (f"hide /boot {_LIVE}", "configured", 1),
}
_MEANWHILE = {
    "second": (_LIVE, "the sched_ext scheduler coreward.* runs already", 1),
    "set-name": ("coreward-live set no_such=1", "no_such", 2),
    "set-value": ("coreward-live set relax_domain_level=-2", "allowed are -1", 2),
    "set-feature": ("coreward-live set SIS_UTIL=2", "allowed are 0 and 1", 2),
    "get-name": ("coreward-live get no_such", "no_such", 2),
    "get-nobody": (f"{_NOBODY} coreward-live get", "only root", 1),
    "set-nobody": (f"{_NOBODY} coreward-live set SIS_UTIL=0", "only root", 1),
}
# Where anybody may connect: whoever asks is still asked for who that is.
_OPENED = {"set-peer": (f"{_NOBODY} coreward-live set SIS_UTIL=0", "only root and the user who started", 2)}
ABSENT = (_LIVE, "no sched_ext", 1)
"""On a kernel without sched_ext."""


def _refuse(refusals: dict[str, tuple[str, str, int]]) -> str:
    return "\n".join(f"refuse {name} {command}" for name, (command, _, _) in refusals.items())


# util-linux's setpriv, not busybox's, takes away what contrib/coreward.service takes away. 144 and 7 are
# sched_setscheduler() and SCHED_EXT, which no program here knows by name yet.
SCRIPT = f"""{schedulers.PROLOGUE}
refuse() {{ name=refused.$1; shift; "$@" >/out/$name 2>&1; echo $? >>/out/$name; }}
hide() {{ mount -t tmpfs none $1; at=$1; shift; "$@"; status=$?; umount $at; return $status; }}
started() {{ timeout 120 sh -c 'until grep -q "$0" /out/loader; do sleep 0.1; done' "schedules CPUs $1$"; }}
metrics() {{ rm /run/m.prom; until [ -e /run/m.prom ]; do sleep 0.1; done; cp /run/m.prom /out/metrics.$1; }}
count() {{ metrics $1; cat /proc/schedstat >/out/schedstat.$1; }}
cpu() {{ echo $2 >/sys/devices/system/cpu/cpu$1/online; }}
load() {{ hackbench --pipe --groups 1 --fds 4 --datasize 16384 --loops {LOOPS} >/dev/null; }}
class() {{ sed -n 's/^ext.enabled *: *//p' /proc/$1/sched; }}
ext() {{ exec perl -e '$zero = pack("i", 0); syscall(144, 0, 7, $zero) == 0 or die $!; exec @ARGV' "$@"; }}
spin() {{ exec "$@" sh -c 'while :; do :; done'; }}
live() {{
	scx_start /usr/bin/setpriv --bounding-set -all,+bpf,+perfmon --no-new-privs \\
		coreward-live live --metrics /run/m.prom --metrics-interval 1 "$@" || exit 1
}}
echo 1 >/proc/sys/kernel/sched_schedstats
{_refuse(_BEFORE)}

cpu 3 0
live --stats 1
started 0-2 || exit 1
scx_state >/out/states
{_refuse(_MEANWHILE)}
chmod 755 /run/scx /run/scx/root
chmod 666 /run/scx/root/settings
{_refuse(_OPENED)}
coreward-live get SIS_UTIL >/out/kept
coreward-live set SIS_UTIL=0
coreward-live get SIS_UTIL >>/out/kept
coreward-live set SIS_UTIL=1
coreward-live top --json --interval 3 >/out/idle
count 0
load
count 1
coreward-live top --json --interval 8 >/out/busy &
top=$!
sleep 1
cpu 1 0
coreward-live set WAKEUP_BIAS_PREV=1
cpu 1 1
load
wait $top
coreward-live get >/out/settings
coreward-live get WAKEUP_BIAS_PREV >/out/setting
scx_state >>/out/states

cpu 3 1
started 0-3 || exit 1
scx_state >>/out/states
coreward-live get WAKEUP_BIAS_PREV >>/out/setting
spin taskset 8 & first=$!
spin taskset 8 nice -n 5 & second=$!
sleep 1
class $first >/out/classes
coreward-live top --once >/out/table
echo 1 >/sys/kernel/tracing/events/sched_ext/sched_ext_dump/enable
echo D >/proc/sysrq-trigger
sleep 0.1
cat /sys/kernel/tracing/trace >/out/dump
kill $first $second
scx_stop
{{ [ -e /run/m.prom ] && echo there || echo removed; }} >/out/afterwards
scx_state >>/out/states

live --partial
started 0-3
scx_state >>/out/states
spin taskset 1 & first=$!
ext taskset 2 sh -c 'while :; do :; done' & second=$!
sleep 1
class $first >>/out/classes
class $second >>/out/classes
kill $first $second
metrics 2
load
metrics 3
(ext hackbench --pipe --groups 1 --fds 4 --datasize 16384 --loops {LOOPS} >/dev/null)
metrics 4
scx_stop
"""


def _refusal(text: str, refusal: tuple[str, str, int]) -> bool:
    """Is that one sentence with this in it, and the status?"""
    _, words, status = refusal
    return bool(re.fullmatch(rf"coreward: [^\n]*{words}[^\n]*\n{status}\n", text))


def absent(text: str) -> bool:
    """Does a kernel without sched_ext get its sentence?"""
    return _refusal(text, ABSENT)


def _refusals(files: Files) -> list[str]:
    """Each in one sentence."""
    return [
        f"`{refusal[0]}` is not refused in one sentence: {files.get(f'refused.{name}', '')!r}"
        for name, refusal in (_BEFORE | _MEANWHILE | _OPENED).items()
        if not _refusal(files.get(f"refused.{name}", ""), refusal)
    ]


def _states(files: Files) -> list[str]:
    """A CPU that comes back changes nothing; one that was offline at the start makes it start anew."""
    found = [" ".join(line.split()[:2]) for line in files["states"].splitlines()]
    wanted = ["enabled 1", "enabled 1", "enabled 2", "disabled 2", "enabled 3"]
    return [] if found == wanted else [f"the states are {found}, not {wanted}"]


def _metrics(text: str) -> Counter[str]:
    """Prometheus' text: each family's sum, and each CPU's switches."""
    sums: Counter[str] = Counter()
    for name, labels, value in re.findall(r"^(coreward_\w+_(?:total|count))(\{.*\})? (\d+)$", text, re.MULTILINE):
        sums[name] += int(value)
        if name == "coreward_switches_total" and (cpu := re.search(r'cpu="(\d+)"', labels)):
            sums[f"cpu{cpu[1]}"] += int(value)
    return sums


def _schedstat(text: str) -> dict[str, tuple[int, int]]:
    """Of each CPU in /proc/schedstat the wakeups that it made and the tasks that it switched to."""
    lines = [line.split() for line in text.splitlines() if line.startswith("cpu")]
    return {words[0]: (int(words[5]), int(words[9])) for words in lines}


def _counters(files: Files) -> list[str]:
    """While hackbench ran, coreward counted what the kernel counted."""
    before, after = (_metrics(files[f"metrics.{n}"]) for n in (0, 1))
    then, now = (_schedstat(files[f"schedstat.{n}"]) for n in (0, 1))
    if not before or not after or not then or set(then) != set(now):
        return ["there are no counters"]
    found = []
    for cpu, (_, switches) in now.items():
        kernel, own = switches - then[cpu][1], after[cpu] - before[cpu]
        if kernel < LEAST or abs(own - kernel) > 0.1 * kernel:
            found.append(f"{cpu} switched to {own} tasks, but the kernel counts {kernel}")
    wakeups = sum(now[cpu][0] - then[cpu][0] for cpu in now)
    placed = after["coreward_placements_total"] - before["coreward_placements_total"]
    if wakeups < LEAST or abs(placed - wakeups) > 0.1 * wakeups:
        found.append(f"{placed} tasks were placed, but the kernel counts {wakeups} wakeups")
    waited = "coreward_wakeup_latency_seconds_count"
    if abs(after[waited] - before[waited] - placed) > 0.1 * placed:
        found.append(f"{after[waited] - before[waited]} latencies of {placed} placements")
    return found


def _looks(files: Files) -> list[str]:
    """`coreward top --json` in an idle and in a busy guest."""
    try:
        idle, busy = (json.loads(files[name])["metrics"] for name in ("idle", "busy"))
    except (json.JSONDecodeError, KeyError) as error:
        return [f"coreward top --json does not print its JSON: {error}"]

    def biased(metrics: dict[str, Any]) -> int:
        return sum(reason["placements"] for name, reason in metrics["reasons"].items() if "BIAS" in name)

    found = []
    for name in ("placements", "enqueued", "switches", "waited_ns"):
        if busy[name] < LEAST or busy[name] < 5 * idle[name]:
            found.append(f"{name} is {busy[name]} with hackbench and {idle[name]} without")
    for metrics in (idle, busy):
        if metrics["direct"] + metrics["enqueued"] < metrics["placements"]:
            found.append("tasks were placed that neither waited nor went straight to a CPU")
        if sum(reason["placements"] for reason in metrics["reasons"].values()) != metrics["placements"]:
            found.append("the reasons are not those of all placements")
    if biased(idle) or not biased(busy):
        found.append(f"setting WAKEUP_BIAS_PREV moves its placements from {biased(idle)} to {biased(busy)}")
    return found


def _settings(files: Files) -> list[str]:
    """`coreward get` after a `coreward set`, also one of another user, and after the start anew."""
    found = []
    if files["kept"] != "1\n0\n":
        found.append(f"SIS_UTIL was set by another user, or not by root: {files['kept']!r}")
    if files["setting"] != "1\n1\n" or "WAKEUP_BIAS_PREV=1\n" not in files["settings"]:
        found.append(f"what was set is not what is got: {files['setting']!r}")
    if not re.search(r"^relax_domain_level=-1$", files["settings"], re.MULTILINE):
        found.append("coreward get does not print all settings")
    return found


def _table(files: Files) -> list[str]:
    """`coreward top --once` while two spinners share CPU 3, which was offline at the start."""
    found = re.findall(r"^    CPU (\d) +(\d+) % \S+ +(\d+) ", files["table"], re.MULTILINE)
    cpus = {int(cpu): (int(util), int(tasks)) for cpu, util, tasks in found}
    if set(cpus) != {0, 1, 2, 3} or cpus[3][0] < 90 or cpus[3][1] < 2 or cpus[0][0] > 50:
        return [f"coreward top --once does not show what each CPU does: {cpus}"]
    return []


def _dump(files: Files) -> list[str]:
    """The dump while they do so: of the one that waits, the deadline is what the kernel sorts it by."""
    text = re.sub(r"^.*sched_ext_dump: ", "", files["dump"], flags=re.MULTILINE)
    found = []
    if not re.search(r"^cpus=4 llcs=2 features=0x[0-9a-f]+(?:,0x[0-9a-f]+)* ", text, re.MULTILINE):
        found.append("the dump does not tell of the machine")
    cpu = re.search(r"^CPU 3 .*?(?=^CPU |\Z)", text, re.MULTILINE | re.DOTALL)
    if not cpu:
        return [*found, "the dump does not tell of CPU 3"]
    waiting = re.search(r"queued=(\d+) waiting_weight=(\d+) V=-?\d+", cpu[0])
    running = re.search(r"curr_weight=(\d+) curr_vruntime=-?\d+ curr_deadline=-?\d+", cpu[0])
    weights = sorted(int(match[n]) for match, n in ((waiting, 2), (running, 1)) if match)
    if weights != [335, 1024] or not waiting or waiting[1] != "1":
        found.append(f"of spinners of nice 0 and 5 the dump has the weights {weights}")
    if not re.search(r"nr_running=2 .* offline=0$", cpu[0], re.MULTILINE):
        found.append("the dump does not tell of the state of CPU 3")
    if not re.search(r"balance_due=\d exec=\d push_to=-?\d+ next_balance=\d+", cpu[0]):
        found.append("the dump does not tell of balancing")
    tasks = re.findall(
        r"dsq_vtime=(\d+).*?deadline=(-?\d+) lag=(-?\d+) .*?queue=(-?\d+) .*? allowed=(\d+)$",
        cpu[0],
        re.MULTILINE | re.DOTALL,
    )
    if [task[4] for task in tasks] != ["1", "1"]:
        found.append("the dump does not tell of both tasks")
    queued = [task for task in tasks if task[3] == "3"]
    if len(queued) != 1 or int(queued[0][1]) % (1 << 64) != int(queued[0][0]):
        found.append(f"the dump has other deadlines than the kernel sorts by: {queued}")
    return found


def _partial(files: Files) -> list[str]:
    """In which class tasks are: SCHED_OTHER in full, SCHED_OTHER and SCHED_EXT in partial mode; and what
    coreward counts of hackbench in each class."""
    found = []
    if files["classes"].split() != ["1", "0", "1"]:
        found.append(f"the tasks in sched_ext's class are {files['classes'].split()}, not 1 0 1")
    placed = [_metrics(files[f"metrics.{n}"])["coreward_placements_total"] for n in (2, 3, 4)]
    other, ext = placed[1] - placed[0], placed[2] - placed[1]
    if other or ext < LEAST:
        found.append(f"in partial mode {other} placements of SCHED_OTHER, and {ext} of SCHED_EXT")
    return found


def _rest(files: Files) -> list[str]:
    """What --metrics and --stats write."""
    found = []
    if not re.search(r"^coreward_wakeup_latency_seconds_count \d+\n\Z", files["metrics.4"], re.MULTILINE):
        found.append("the metrics do not end")
    if files["afterwards"] != "removed\n":
        found.append("the file of metrics is still there when the scheduler has ended")
    lines = re.findall(r"^placed (\d+), ", files["loader"], re.MULTILINE)
    # also from before the start anew to after it
    if not lines or any(int(placed) > 1e6 for placed in lines):
        found.append(f"--stats prints lines of {lines} placements")
    return found


_NAMES = (
    *(f"refused.{name}" for name in (*_BEFORE, *_MEANWHILE, *_OPENED)),
    *("states", "kept", "idle", "busy", "settings", "setting", "classes", "table", "dump", "afterwards", "loader"),
    *(f"metrics.{n}" for n in range(5)),
    *(f"schedstat.{n}" for n in range(2)),
)


def verdict(files: Files) -> list[str]:
    """What is wrong with a guest's files."""
    if missing := [name for name in _NAMES if name not in files]:
        return [f"the guest did not write {', '.join(missing)}"]
    checks = (_refusals, _states, _counters, _looks, _settings, _table, _dump, _partial, _rest)
    return [wrong for check in checks for wrong in check(files)]


def controls(files: Files) -> list[tuple[str, Files]]:
    """Changed files of a guest, and what was changed. Each must be condemned for it."""
    changes = [(f"{name} is empty", name, "") for name in _NAMES if name != "metrics.0"]
    changes += [
        ("a refusal is two lines", "refused.top", "coreward: one\n" + files["refused.top"]),
        ("it is status 1 that a wrong name gets", "refused.name", files["refused.name"].replace("\n2\n", "\n1\n")),
        ("the idle guest is busy", "idle", files["busy"]),
        ("the busy guest is idle", "busy", files["idle"]),
        ("coreward counts nothing", "metrics.1", files["metrics.0"]),
        ("the kernel counts nothing", "schedstat.1", files["schedstat.0"]),
        ("another user sets", "kept", "0\n0\n"),
        ("the setting is lost", "setting", "1\n0\n"),
        ("a CPU that comes back ends it", "states", files["states"].replace("enabled 1", "enabled 2")),
        ("CPU 3 idles", "table", files["table"].replace("CPU 3", "CPU 9")),
        ("counters fall", "loader", files["loader"] + "placed 18446744073709551615, direct 0\n"),
        ("nice 5 is not heard", "dump", files["dump"].replace("weight=335", "weight=1024")),
        ("the deadline is another", "dump", files["dump"].replace(" deadline=", " deadline=1")),
        ("partial schedules SCHED_OTHER", "classes", "1\n1\n1\n"),
        ("partial does not schedule SCHED_EXT", "classes", "1\n0\n0\n"),
        ("partial places SCHED_OTHER", "metrics.3", files["metrics.4"]),
        ("partial places no SCHED_EXT", "metrics.4", files["metrics.3"]),
    ]
    return [(what, {**files, name: text}) for what, name, text in changes]
