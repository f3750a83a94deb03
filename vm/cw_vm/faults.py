# SPDX-License-Identifier: GPL-2.0-only
"""What schedulers must survive in guests, and what the guests' files say about it.

Every verdict is also applied to modified files, which it must reject.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import schedulers
from .schedulers import Scheduler

FUNCTIONS = Path(__file__).with_name("faults.sh")

COMMAND_LINE = "transparent_hugepage=never"
"""For the guests' kernels. khugepaged copies 2 MB as an RCU reader, of nice 19: on one of eight emulated
CPUs that are busy with tasks of nice 0 it would take a minute, and RCU complains after 21 s, under any
scheduler that honours weights."""

Files = dict[str, str]
"""What a guest wrote, by the files' names."""

# What a kernel says when tasks do not run: sched_ext's end for any reason but the user's, the hung task
# detector, RCU, the lockup detectors; and its complaints about itself.
_COMPLAINTS = re.compile(
    r"sched_ext: .* disabled \((?!unregistered from user space).*"
    r"|.*runnable task stall.*|.*watchdog failed to check in.*|.*blocked for more than.*"
    r"|.*detected (?:expedited )?stalls?.*|.*self-detected stall.*|.*soft lockup.*|(?:WARNING|BUG|UBSAN): .*"
)
# What loaders say when the scheduler ended for any reason but the user's.
_EXIT = re.compile(r"^(?:EXIT: (?!unregistered from user space).*|.*runtime error.*)", re.MULTILINE)

# Linux's kernel/sched/core.c, sched_prio_to_weight: nice 0 over nice 5.
NICE_0_OVER_5 = 1024 / 335


@dataclass(frozen=True)
class Fault:
    """One way to mistreat a scheduler."""

    script: str
    """Shell with scx.sh and faults.sh; `{seconds}` and `{count}` are filled in."""
    seconds: tuple[int, int] = (0, 0)
    """How long, in the guest's seconds: whole, and when it is to be short."""
    count: tuple[int, int] = (0, 0)
    """How many, likewise."""
    repeated: bool = False
    """Whether `count` is how often something happens in `seconds`, so that it grows with them."""
    killed: bool = False
    """Whether the loader is killed, so that the kernel's scheduler runs in the end."""
    verdict: Callable[[Files, int], list[str]] = lambda _files, _count: []
    """What is wrong beside what all must hold; given `count`."""
    controls: tuple[tuple[str, str, str], ...] = ()
    """Changed files that the verdict must condemn: what, the file, its contents."""
    memory: int | None = None
    before: str = ""
    """Shell that is run before the scheduler starts."""
    arguments: str | None = None
    """For coreward's command: a test of what only coreward's loader does."""
    instruction_ns: int | None = None
    """The ns that an instruction takes, if not as many as in the other tests."""
    stall: bool = False
    """Whether emulated CPUs stand still now and then. Each then has a thread, and the clock is the local machine's."""


def _shares(ratio: float, tolerance: float) -> Callable[[Files, int], list[str]]:
    """The verdict on two spinners whose times are to have this ratio, give or take a share of it."""

    def verdict(files: Files, _count: int) -> list[str]:
        numbers = [int(word) for word in files.get("shares", "").split()]
        if len(numbers) != 4 or numbers[3] <= numbers[1]:
            return ["a spinner did not run"]
        found = (numbers[2] - numbers[0]) / (numbers[3] - numbers[1])
        if abs(found / ratio - 1) > tolerance:
            return [f"the spinners' times have the ratio {found:.3f}, not {ratio:.3f} within {tolerance:.0%}"]
        return []

    return verdict


# What a spinner may run at a time, ns: a request of 3 ms ends at one of the next two ticks of 4 ms.
_TURN_NS = 12_000_000


def _fair_turns(files: Files, count: int) -> list[str]:
    """The verdict on two spinners that are alike: equal times, in turns of about a request."""
    if wrong := _shares(1, 0.05)(files, count):
        return wrong
    before, _, after, _ = map(int, files["shares"].split())
    begun, ended = map(int, files.get("turns", "0 0").split())
    if (after - before) > _TURN_NS * (ended - begun):
        return [f"a spinner had {ended - begun} turns in {(after - before) / 1e9:.1f} s"]
    return []


def _at_least(name: str, what: str) -> Callable[[Files, int], list[str]]:
    """The verdict on a file with a number that must not be below `count`."""

    def verdict(files: Files, count: int) -> list[str]:
        found = int(files.get(name) or 0)
        return [] if found >= count else [f"{found} {what}, not {count} at least"]

    return verdict


def _storm(files: Files, _count: int) -> list[str]:
    """The verdict on forks up to the limit."""
    words = files.get("tasks", "").split()
    return [] if len(words) == 2 and int(words[1]) > 0 else ["the limit of tasks was never met"]


# What a worker of the kernel's may wait, ns. Each CPU of coreward's runs one every 100 ms (bpf/live/crowd.bpf.h);
# where they waited with all others it was 11.5 s.
_WORKER_WAIT_NS = 3_000_000_000


def _longest_wait(samples: str) -> float:
    """The longest wait of a worker, ns: the mean of those that ended between two samples of it."""
    last: dict[str, tuple[int, int]] = {}
    longest = 0.0
    for worker, *numbers in map(str.split, samples.splitlines()):
        waited, runs = map(int, numbers)
        before, ran = last.get(worker, (waited, runs))
        if runs > ran:
            longest = max(longest, (waited - before) / (runs - ran))
        last[worker] = waited, runs
    return longest


def _crowd(files: Files, count: int) -> list[str]:
    """The verdict on many tasks at once."""
    words = files.get("tasks", "").split() or ["0"]
    wrong = [] if int(words[0]) >= count else [f"{words[0]} tasks at once, not {count}"]
    samples = files.get("kworkers", "")
    if not samples:
        wrong.append("no worker of the kernel's was watched")
    if (longest := _longest_wait(samples)) > _WORKER_WAIT_NS:
        wrong.append(f"a worker of the kernel's waited for {longest / 1e9:.1f} s")
    return wrong


def _killed_for_memory(files: Files, _count: int) -> list[str]:
    """The verdict on a loader that the kernel is to kill for want of memory."""
    return [] if "Out of memory: Killed process" in files.get("kernel", "") else ["nothing was killed for want of memory"]


def _refused(name: str, what: str, words: str) -> Callable[[Files, int], list[str]]:
    """The verdict on a command that coreward has to refuse in one sentence with these words, and status 1."""

    def verdict(files: Files, _count: int) -> list[str]:
        said = files.get(name, "")
        refused = re.fullmatch(rf"coreward: [^\n]*{words}[^\n]*\n1\n", said)
        return [] if refused else [f"{what} is not refused in one sentence: {said!r}"]

    return verdict


def _full(files: Files, _count: int) -> list[str]:
    """The verdict on a full /run."""
    wrong = []
    if "No space left on device" not in files.get("full", ""):
        wrong.append("/run was never full")
    if len(re.findall(r"^coreward: --metrics: .*; it will be tried again$", files.get("loader", ""), re.MULTILINE)) != 1:
        wrong.append("the loader does not say once that it cannot write the metrics")
    if files.get("asked", "") != "1\n0\n":
        wrong.append(f"the loader does not answer while /run is full: {files.get('asked', '')!r}")
    if files.get("metrics") != "renewed\n":
        wrong.append("the metrics are not written again when there is room")
    return wrong


# How long the longest wait of a task with the highest priority is at least, us, if CPUs stand still for 2 s.
_STALL_US = 1_500_000


def _stood_still(files: Files, _count: int) -> list[str]:
    """The verdict on CPUs that stand still: the tasks that wait for their timers saw it."""
    longest = max(map(int, re.findall(r"Max: *(\d+)", files.get("waits", ""))), default=0)
    return [] if longest >= _STALL_US else [f"no CPU stood still: the longest wait is {longest} us"]


def _all(*verdicts: Callable[[Files, int], list[str]]) -> Callable[[Files, int], list[str]]:
    """All of these verdicts."""
    return lambda files, count: [wrong for verdict in verdicts for wrong in verdict(files, count)]


_MIXED = (
    "begin stress-ng --quiet --cpu $cpus --cpu-method int64 --fork 2 --switch 2 --pipe 2 --futex 1 "
    "--yield 2 --timeout {seconds}"
)

FAULTS = {
    # The loader dies; the kernel must go on by itself.
    "kill": Fault(
        "begin hackbench --process --pipe --groups 2 --loops {count}\nsleep 1\nkill -9 $loader\nscx_wait disabled",
        count=(400, 100),
        killed=True,
    ),
    "hotplug": Fault(
        f"{_MIXED}\ntoggle {{seconds}} {{count}}",
        (120, 10),
        (60, 5),
        repeated=True,
        verdict=_at_least("toggled", "times a CPU went off or on"),
        controls=(("no CPU goes off", "toggled", "0"),),
    ),
    "fork-storm": Fault(
        "storm {count} {seconds}\ntasks",
        (60, 5),
        (1000, 200),
        verdict=_storm,
        controls=(("the limit is not met", "tasks", "100 0"),),
        memory=3072,
    ),
    "affinity": Fault(
        f"{_MIXED} --affinity 2 --affinity-rand\nscatter {{seconds}} {{count}}",
        (60, 10),
        (100, 15),
        repeated=True,
        verdict=_at_least("scattered", "changes of affinity"),
        controls=(("no affinity changes", "scattered", "0"),),
    ),
    # Longer than sched_ext's watchdog waits, which is 30 s at most.
    "realtime": Fault(
        f"{_MIXED}\n"
        "for cpu in $(seq 0 $((cpus - 1))); do\n"
        "\tbegin taskset $(printf %x $((1 << cpu))) chrt -f 50 "
        "stress-ng --quiet --cpu 1 --cpu-method int64 --timeout {seconds}\n"
        "done",
        (40, 5),
    ),
    "tasks": Fault(
        "watch_kworkers 'chrt -f 50'\nbegin hackbench --threads --groups $(({count} / 40)) --loops 5\nfinish 600\ntasks\n"
        "kill $watching",
        count=(10000, 2000),
        verdict=_crowd,
        controls=(
            ("fewer tasks", "tasks", "1000 0"),
            ("a worker waits", "kworkers", "/proc/9 1000000000 7\n/proc/9 5000000000 8\n"),
            ("workers are not watched", "kworkers", ""),
        ),
        memory=3072,
    ),
    # Longer than the watchdog waits. To the SCHED_IDLE task EEVDF owes 3 ms of each minute.
    "starve": Fault(
        "begin taskset 2 stress-ng --quiet --cpu {count} --cpu-method int64 --timeout {seconds}\n"
        "begin taskset 2 chrt -i 0 stress-ng --quiet --cpu 1 --cpu-method int64 --timeout {seconds}",
        (60, 45),
        (60, 60),
    ),
    "stress": Fault(
        f"{_MIXED} --mutex 2 --sem 2 --nanosleep 2 --vfork 1 --exec 1 --affinity 1",
        (600, 20),
    ),
    # As a kernel without memory does: the loader is the process that it is to kill first.
    "oom": Fault(
        "begin hackbench --process --pipe --groups 2 --loops {count}\nsleep 1\n"
        "echo 1000 >/proc/$loader/oom_score_adj\necho f >/proc/sysrq-trigger\nscx_wait disabled",
        count=(400, 100),
        killed=True,
        verdict=_killed_for_memory,
        controls=(("nothing is killed for want of memory", "kernel", ""),),
    ),
    # For longer than the watchdog waits.
    "stop": Fault(
        f"{_MIXED}\nkill -STOP $loader\n"
        "ask stopped coreward-live get WAKEUP_BIAS_PREV\nsleep {seconds}\nkill -CONT $loader",
        (40, 5),
        verdict=_refused("stopped", "a request to a loader that is stopped", "does not answer"),
        controls=(("a request gets no answer", "stopped", "137\n"),),
        arguments="",
    ),
    "run-full": Fault(
        f"{_MIXED}\nsleep 2\ndd if=/dev/zero of=/run/full 2>/out/full\nsleep {{seconds}}\n"
        "cp /run/m.prom /tmp/old\nask asked coreward-live get SIS_UTIL\nrm /run/full\nsleep 3\n"
        "cmp -s /run/m.prom /tmp/old || echo renewed >/out/metrics",
        (20, 5),
        verdict=_full,
        controls=(
            ("/run is not full", "full", ""),
            ("the loader says nothing", "loader", ""),
            ("the loader does not answer", "asked", "137\n"),
            ("the metrics remain old", "metrics", ""),
        ),
        before="mount -t tmpfs -o size=512k none /run",
        arguments="--metrics /run/m.prom --metrics-interval 1",
    ),
    "freeze": Fault(
        f"{_MIXED}\nfreeze {{seconds}} {{count}}",
        (60, 10),
        (30, 5),
        repeated=True,
        verdict=_at_least("frozen", "times the load was frozen"),
        controls=(("the load is never frozen", "frozen", "0"),),
    ),
    "partitions": Fault(
        f"{_MIXED}\npartition {{seconds}} {{count}}",
        (60, 10),
        (30, 5),
        repeated=True,
        verdict=_at_least("partitions", "partitions were made"),
        controls=(("there is no partition", "partitions", "0"),),
    ),
    # An instruction takes less time, so that emulated CPUs come to so many. It cannot take less than 1 ns.
    "execs": Fault(
        "execs {seconds}",
        (20, 3),
        (800, 800),
        verdict=_at_least("execs", "programs a second were started"),
        controls=(("programs start slowly", "execs", "700"),),
        instruction_ns=1,
    ),
    # The load takes as long as it takes, by no clock.
    "clock": Fault(
        "begin hackbench --process --pipe --groups 1 --loops $(({count} * 30))\nclocks {seconds} {count}",
        (40, 5),
        (60, 8),
        repeated=True,
        verdict=_at_least("stepped", "steps of the clock"),
        controls=(("the clock is not set", "stepped", "0"),),
    ),
    "stall": Fault(
        f"{_MIXED}\n"
        "cyclictest --quiet --threads --affinity --priority=90 --interval=100000 --duration={seconds} >/out/waits",
        (60, 30),
        verdict=_stood_still,
        controls=(("no CPU stands still", "waits", "T: 0 ( 9) P:90 I:100000 C: 9 Min: 9 Act: 9 Avg: 9 Max: 9000\n"),),
        stall=True,
    ),
    # The second one of them finds no scheduler, and the kernel refuses it.
    "rival": Fault(
        f"{_MIXED}\nsleep 1\nask second coreward-live live\nask_unseen rival coreward-live live",
        (10, 5),
        verdict=_all(
            _refused("second", "a second scheduler", "the sched_ext scheduler coreward.* runs already"),
            _refused("rival", "a scheduler that finds none", "another sched_ext scheduler, coreward.*, was loaded meanwhile"),
        ),
        controls=(
            ("a second scheduler has no words for it", "second", "coreward: Operation not permitted\n1\n"),
            ("a scheduler that finds none is loaded", "rival", "coreward schedules CPUs 0-3\n0\n"),
        ),
        arguments="",
    ),
    # Nearly all of this at once.
    "mix": Fault(
        f"{_MIXED} --mutex 2 --sem 2 --nanosleep 2 --vfork 1 --exec 1 --affinity 2 --affinity-rand\n"
        "at_once 'toggle {seconds} {count}' 'scatter {seconds} {count}' 'freeze {seconds} {count}' "
        "'partition {seconds} {count}' 'clocks {seconds} {count}' 'pause {seconds} {count}'",
        (600, 30),
        (60, 3),
        repeated=True,
        verdict=_all(
            _at_least("toggled", "times a CPU went off or on"),
            _at_least("scattered", "changes of affinity"),
            _at_least("frozen", "times the load was frozen"),
            _at_least("partitions", "partitions were made"),
            _at_least("stepped", "steps of the clock"),
            _at_least("paused", "times the loader was stopped"),
        ),
        controls=(
            ("no CPU goes off", "toggled", "0"),
            ("no affinity changes", "scattered", "0"),
            ("the load is never frozen", "frozen", "0"),
            ("there is no partition", "partitions", "0"),
            ("the clock is not set", "stepped", "0"),
            ("the loader is never stopped", "paused", "0"),
        ),
        memory=3072,
    ),
    "fairness": Fault(
        "shares 'nice -n 0' 'nice -n 0' {seconds}",
        (20, 5),
        verdict=_fair_turns,
        controls=(
            ("one spinner gets 10 % more", "shares", "0 0 1100 1000"),
            ("a spinner is never switched away", "turns", "7 7"),
            ("one does not run", "shares", "0 0 1 0"),
        ),
    ),
    "weights": Fault(
        "shares 'nice -n 0' 'nice -n 5' {seconds}",
        (20, 5),
        verdict=_shares(NICE_0_OVER_5, 0.15),
        controls=(
            ("weights are ignored", "shares", "0 0 1000 1000"),
            ("a weight of nice 4", "shares", "0 0 1024 423"),
        ),
    ),
}


# Tasks that may be there each time that coreward's loader reads how many it counts in an idle guest:
# itself, and the program that asks it.
_IDLE_TASKS = 2


def concerns(fault: Fault, scheduler: str) -> bool:
    """Whether a scheduler can be tested so: the kernel's own has no loader, and some tests are of coreward's."""
    if fault.arguments is not None:
        return scheduler == schedulers.COREWARD
    return scheduler != schedulers.KERNEL or not fault.killed


def _counts(fault: Fault, scheduler: Scheduler) -> bool:
    """Whether the scheduler is there in the end to say how many tasks it counts on each CPU."""
    return scheduler.name == schedulers.COREWARD and not fault.killed


def _count(fault: Fault, short: bool, seconds: int | None) -> int:
    """How many, if the load lasts for so many seconds instead of as long as usual."""
    usual = fault.count[short]
    return max(1, usual * seconds // fault.seconds[short]) if fault.repeated and seconds else usual


def script(fault: Fault, scheduler: Scheduler, short: bool, seconds: int | None = None) -> str:
    """The guest's script; `seconds`: for how long, if not for as long as usual."""
    count = _count(fault, short, seconds)
    seconds = seconds or fault.seconds[short]
    scenario = fault.script.replace("{seconds}", str(seconds)).replace("{count}", str(count))
    return "\n".join(
        [
            f"{schedulers.PROLOGUE}. /usr/lib/faults.sh",
            *([fault.before] if fault.before else []),
            f"{scheduler.start} || exit 0",
            "scx_state >/out/states",
            scenario,
            # what lasts so long by itself may end a while later on busy CPUs
            f"finish {seconds + 180}",
            *(["coreward-live top --json --interval 0.1 >>/out/counted"] * 30 if _counts(fault, scheduler) else []),
            "scx_state >>/out/states",
            # whatever schedules by now must still do so
            "begin hackbench --process --pipe --groups 1 --loops 20",
            "finish 60",
            "scx_stop",
            "scx_state >>/out/states",
            "dmesg >/out/kernel",
            "exit 0",
        ]
    )


def _common(fault: Fault, scheduler: Scheduler, files: Files) -> list[str]:
    """What is wrong of what all tests must hold."""
    states = files.get("states", "").splitlines()
    if len(states) != 3:
        return ["the scheduler did not load" if not states else "the guest's script did not come to its end"]
    wrong = []
    if not states[0].startswith(f"enabled 1 {scheduler.ops}" if scheduler.ops else "disabled 0"):
        wrong.append(f"in the beginning the state is '{states[0]}'")
    if fault.killed and not states[1].startswith("disabled 1"):
        wrong.append(f"after the loader was killed the state is '{states[1]}'")
    if not fault.killed and states[1] != states[0]:
        wrong.append(f"the state '{states[0]}' became '{states[1]}'")
    if not states[2].startswith("disabled"):
        wrong.append(f"in the end the state is '{states[2]}'")
    wrong += [
        match[0].strip() for line in files["kernel"].splitlines() if (match := _COMPLAINTS.search(line))
    ]
    wrong += [match[0].strip() for match in _EXIT.finditer(files.get("loader", ""))]
    wrong += [f"a process did not end: {line}" for line in files["left"].splitlines()]
    statuses = files["statuses"].split()
    wrong += [f"a part of the load ended with status {status}" for status in statuses if status != "0"]
    if not statuses:
        wrong.append("no load was run")
    return wrong + (_counted(files["counted"]) if _counts(fault, scheduler) else [])


def _counted(statistics: str) -> list[str]:
    """Whether the scheduler still counts tasks of the load after it has ended, or has lost count."""
    counts = [
        {cpu: found["nr_running"] for cpu, found in json.loads(line)["metrics"]["cpus"].items()}
        for line in statistics.splitlines()
    ]
    if not counts:
        return ["it does not tell how many tasks it counts"]
    # others come and go
    stay = {cpu: least for cpu in counts[0] if (least := min(count[cpu] for count in counts))}
    return [f"of no load it counts {stay}, by CPU"] if sum(stay.values()) > _IDLE_TASKS else []


def verdict(name: str, scheduler: Scheduler, files: Files, short: bool, seconds: int | None = None) -> list[str]:
    """What is wrong, from a guest's files; `seconds`: as for `script()`."""
    fault = FAULTS[name]
    count = _count(fault, short, seconds)
    return list(dict.fromkeys(_common(fault, scheduler, files) + fault.verdict(files, count)))


def controls(name: str, files: Files) -> list[tuple[str, Files]]:
    """Changed files of a guest, and what was changed. Each must be condemned for it."""
    states = files["states"].splitlines()
    stall = "[   99.0] sched_ext: BPF scheduler disabled (runnable task stall)\n"
    changes = [
        ("a stall", "kernel", files["kernel"] + stall),
        ("the loader tells an exit", "loader", files.get("loader", "") + "\nEXIT: runnable task stall\n"),
        ("a task is lost", "left", files["left"] + "123 hackbench R\n"),
        ("a part of the load fails", "statuses", files["statuses"] + "1\n"),
        ("the scheduler was enabled again", "states", "\n".join([states[0], "enabled 2 other", *states[2:]])),
        ("the scheduler stays", "states", "\n".join([*states[:2], "enabled 1 other"])),
        *FAULTS[name].controls,
    ]
    if "counted" in files:
        changed = []
        for line in files["counted"].splitlines():
            counts = json.loads(line)
            counts["metrics"]["cpus"]["1"]["nr_running"] += _IDLE_TASKS + 1
            changed.append(json.dumps(counts))
        changes.append(("tasks that have ended are counted", "counted", "\n".join(changed)))
    return [(what, {**files, file: text}) for what, file, text in changes]
