# SPDX-License-Identifier: GPL-2.0-only
"""What guests run while their kernel's decisions are recorded."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """A command, and how much of it is recorded."""

    command: str
    limit: int = 4000
    """Decisions to record. Enough for each rule to have been used, little enough for a file of some MB."""
    queue: bool = False
    """Record what becomes of each CPU's queue, not where tasks are placed."""
    seconds: int = 25
    """When it is ended if it has not by itself. What was recorded until then counts."""


# Asks for a slice of so many ns, and becomes the command that follows: chrt does so only since util-linux 2.41.
_SLICE = (
    'perl -e "syscall(-e q(/lib64/ld-linux-x86-64.so.2) ? 314 : 274, '
    '0, pack(q(LLQlLQQQ), 48, 0, 0, 0, 0, shift, 0, 0), 0); exec @ARGV"'
)


def _queue(command: str) -> Load:
    # steps come fast: these are a few seconds' even where the kernel is emulated
    return Load(command, 4000, queue=True, seconds=8)


LOADS = {
    # Pairs over pipes, threads of one process; more tasks than CPUs.
    "hackbench-pipe-threads": Load("hackbench --threads --pipe --groups 1 --loops 250"),
    # The same over sockets, each task a process.
    "hackbench-socket-processes": Load("hackbench --process --groups 1 --loops 250"),
    # Fewer tasks than CPUs: idle CPUs to choose from.
    "hackbench-few": Load("hackbench --process --pipe --groups 1 --fds 2 --loops 40000"),
    # Locks that threads sleep on.
    "sysbench-threads": Load("sysbench threads --threads=12 --thread-yields=50 --thread-locks=3 --time=4 run"),
    # Two tasks that take turns.
    "perf-pipe": Load("perf bench sched pipe --loop 1500", 3000),
    # Tasks that may not run everywhere, and change where they may.
    "affinity": Load(
        "sh -c 'stress-ng --quiet --affinity 3 --affinity-rand --timeout 5 & "
        "taskset 5 hackbench --process --pipe --groups 1 --fds 4 --loops 2000 & wait'",
    ),
    # Tasks of the idle class beside others.
    "idle-class": Load(
        "sh -c 'stress-ng --quiet --cpu 3 --cpu-method int64 --sched idle --timeout 5 & "
        "hackbench --process --pipe --groups 1 --fds 3 --loops 20000 & wait'",
    ),
    # Processes that come, start programs and go.
    "fork-storm": Load("stress-ng --quiet --fork 2 --exec 2 --timeout 8", 6000),
    # Mostly idle: threads that sleep on timers.
    "timers": Load("cyclictest --quiet --policy=other --threads=6 --interval=4000 --duration=5", 3000),
    # More work than CPUs, of unequal weight: the balancer has to choose.
    "spinners": Load(
        "sh -c 'for nice in 0 0 5 5 10 10 0 0 0 0 5; do "
        "nice -n $nice stress-ng --quiet --cpu 1 --cpu-method int64 --timeout 6 & done; wait'",
        2000,
    ),
    # Tasks that ask for a big CPU though they do little, and others that may do with a small one though they do much;
    # without clamps where the kernel has none.
    "clamps": Load(
        "sh -c 'boost=$(uclampset -m 700 true && echo uclampset -m 700); cap=$(uclampset -M 300 true && echo uclampset -M 300); "
        "$cap stress-ng --quiet --cpu 2 --cpu-method int64 --timeout 6 & "
        "$boost hackbench --process --pipe --groups 1 --fds 2 --loops 10000 & "
        "$cap hackbench --process --pipe --groups 1 --fds 2 --loops 10000 & "
        "$boost cyclictest --quiet --policy=other --threads=2 --interval=4000 --duration=5 & wait'",
    ),
    # Work that tasks hand to the kworker of each CPU and wait for: the kworker wakes them where they slept.
    "kthreads": Load(
        "sh -c 'for task in 1 2 3; do "
        "(for i in $(seq 4000); do read -r none </proc/sys/vm/stat_refresh; done) & done; "
        "hackbench --process --pipe --groups 1 --fds 1 --loops 4000 & wait'",
    ),
    # What follows is about the queue of a CPU. More tasks than CPUs, threads and processes.
    "queue-pipe-threads": _queue("hackbench --threads --pipe --groups 1 --loops 250"),
    "queue-socket-processes": _queue("hackbench --process --groups 1 --loops 250"),
    # Two that take turns, and spinners that they preempt.
    "queue-pipe-spinners": _queue(
        "sh -c 'stress-ng --quiet --cpu 8 --cpu-method int64 --timeout 3 & perf bench sched pipe --loop 4000; wait'"
    ),
    # Weights: nice values from one end to the other, all of them busy and sleeping.
    "queue-nice": _queue(
        "sh -c 'for nice in -20 -11 -5 -1 0 3 7 12 19; do "
        "nice -n $nice stress-ng --quiet --cpu 1 --cpu-method int64 --timeout 3 & "
        "nice -n $nice hackbench --process --pipe --groups 1 --fds 2 --loops 3000 & done; wait'"
    ),
    # Nice values that change while their tasks run, wait and sleep.
    "queue-renice": _queue(
        "sh -c 'renice -n -20 -p $$ >/dev/null; "
        "nice -n 20 stress-ng --quiet --cpu 4 --cpu-method int64 --nanosleep 2 --timeout 4 & sleep 0.7; "
        "tasks=$(pidof stress-ng stress-ng-cpu stress-ng-nanosleep); "
        "for i in $(seq 80); do renice -n $((i * 7 % 39 - 19)) -p $tasks; usleep 10000; done >/dev/null; wait'"
    ),
    # Policies: SCHED_IDLE and SCHED_BATCH beside the usual one.
    "queue-policies": _queue(
        "sh -c 'stress-ng --quiet --cpu 4 --cpu-method int64 --sched idle --timeout 3 & "
        "chrt -b 0 stress-ng --quiet --cpu 4 --cpu-method int64 --timeout 3 & "
        "chrt -i 0 hackbench --process --pipe --groups 1 --fds 2 --loops 4000 & "
        "chrt -b 0 hackbench --process --pipe --groups 1 --fds 2 --loops 4000 & "
        "hackbench --process --pipe --groups 1 --fds 2 --loops 8000 & wait'"
    ),
    # Turns that are given up.
    "queue-yield": _queue(
        "sh -c 'stress-ng --quiet --yield 6 --timeout 3 & "
        "sysbench threads --threads=12 --thread-yields=50 --thread-locks=3 --time=3 run & wait'"
    ),
    # Short and long sleeps beside work.
    "queue-sleeps": _queue(
        "sh -c 'cyclictest --quiet --policy=other --threads=8 --interval=700 --distance=900 --duration=3 & "
        "stress-ng --quiet --nanosleep 2 --cpu 6 --cpu-method int64 --timeout 3 & wait'"
    ),
    "queue-fork-storm": _queue("stress-ng --quiet --fork 3 --exec 2 --cpu 3 --cpu-method int64 --timeout 3"),
    # Tasks that are moved while they run and while they wait.
    "queue-affinity": _queue(
        "sh -c 'stress-ng --quiet --affinity 6 --affinity-rand --timeout 3 & "
        "taskset 5 hackbench --process --pipe --groups 1 --fds 4 --loops 4000 & wait'"
    ),
    # Slices that were asked for: shorter and longer than the usual one.
    "queue-slices": _queue(
        f"sh -c 'for slice in 100000 400000 1500000 9000000 60000000; do "
        f"{_SLICE} $slice stress-ng --quiet --cpu 1 --cpu-method int64 --timeout 3 & "
        f"{_SLICE} $slice hackbench --process --pipe --groups 1 --fds 2 --loops 4000 & done; "
        "hackbench --process --pipe --groups 1 --fds 2 --loops 8000 & wait'"
    ),
    # Groups with weights, one in another, and two idle ones.
    "queue-groups": _queue(
        "sh -c 'cd /sys/fs/cgroup; echo +cpu >cgroup.subtree_control; mkdir -p a b c e a/d; "
        "echo +cpu >a/cgroup.subtree_control; echo 30 >a/cpu.weight; echo 300 >b/cpu.weight; "
        "echo 1 >c/cpu.idle; echo 1 >e/cpu.idle; for group in a/d b c e; do (echo 0 >$group/cgroup.procs; exec hackbench --process --pipe --groups 1 --fds 3 --loops 4000) & "
        "(echo 0 >$group/cgroup.procs; exec stress-ng --quiet --cpu 3 --cpu-method int64 --timeout 3) & done; "
        "hackbench --process --pipe --groups 1 --fds 2 --loops 4000 & wait'"
    ),
}

PACKAGES = ("linux-perf", "perl-base", "rt-tests", "stress-ng", "sysbench", "util-linux")
"""Debian's packages that their programs are from."""

SHORT = ("hackbench-few", "fork-storm", "queue-policies")
"""The loads of a quick check: wakeups with idle CPUs, forks, programs started, balancing, queues."""


def script(names: list[str]) -> str:
    """A shell script that runs loads under the recorder, each for a bounded time."""
    lines = ["status=0"]
    for name in names:
        load = LOADS[name]
        what = "--queue " if load.queue else ""
        record = f"coreward-record -o /out/{name}.cwc {what}--limit {load.limit}"
        lines += [
            f"{record} -- timeout {load.seconds} {load.command} >/tmp/{name} 2>&1",
            f"tail -n 1 /tmp/{name}",
            f"[ -e /out/{name}.cwc ] || {{ cat /tmp/{name}; status=1; }}",
        ]
    return "\n".join([*lines, "exit $status"])


# Agreement on stable decisions, in per cent, below which a comparison fails: of each class on each kernel, and of
# its paths. Execs are too few for one in a thousand. The kernel reads the CPUs a second time to choose a queue, and a
# few of a thousand change in between: 99.83 % of the newidle queues of 7.3 and 6.18 agree, 99.60 % of those of 5.10.
_REQUIRED = (
    "wakeup=99.9",
    "fork=99.9",
    "exec=99",
    "balance=99.9",
    "newidle: queue=99.5",
    "idle: queue=99.5",
    "busy: queue=99.5",
)
_REQUIRED_OF_QUEUES = ("queue=99.9",)


def required(names: Iterable[str]) -> str:
    """What captures of these loads have to reach (`coreward parity --require`): of each class of which they record
    decisions."""
    queues = {LOADS[name].queue for name in names}
    return ",".join((*(_REQUIRED if False in queues else ()), *(_REQUIRED_OF_QUEUES if True in queues else ())))
