# SPDX-License-Identifier: GPL-2.0-only
"""Sweeps and matrices on a cluster, by Ray (docs/cluster.md)::

    from coreward import cluster

    found = cluster.sweep("placement.toml", state="placement.state", address="auto")
    cluster.matrix("NO_TTWU_QUEUE", state="matrix.state", address="auto")

    python -m coreward.cluster sweep placement.toml --state placement.state --ray auto
    python -m coreward.cluster matrix --with NO_TTWU_QUEUE --state matrix.state --ray auto

Workers make the runs of a sweep, or the cells of a matrix, as shards of the command, and this process keeps them in its
state file. Ray has to be installed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import hashlib
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from . import _comparisons, _native, _sweeps
from ._native import Error
from ._results import Matrix, Sweep
from ._spec import PathOf, Policy
from ._words import Progress, options_as_words, several

#: How often Ray makes a task again whose worker died.
RETRIES = 3
#: Tasks that wait or run for each CPU of the cluster: one runs, and the next one is there when it ends.
PER_CPU = 2
#: Seconds after which Ray is asked again how many CPUs it has.
LOOK_S = 2.0


def sweep(
    plan: PathOf | Mapping[str, object],
    *,
    state: PathOf,
    address: str | None = None,
    task_s: float = 5.0,
    merge: PathOf | Iterable[PathOf] = (),
    output: PathOf | Iterable[PathOf] = (),
    runs_table: bool = True,
    strict: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Tries many settings as `coreward.sweep()` does, with the same result to the byte, on the nodes of a Ray cluster.

    Args:
        state: a file here that keeps finished runs. A sweep that was killed continues with it.
        address: the cluster, as `ray.init` takes it. None is the one that `ray.init` was called for; if it was not, that
            of RAY_ADDRESS, or a Ray of this machine alone.
        task_s: seconds that a task shall take, from 0 on: as many runs are one task, and at least one. This is what is
            repeated if its worker dies.

    The other arguments are those of `coreward.sweep()`; what `progress` raises cancels the tasks.

    Raises:
        Error: as `coreward.sweep()`; Ray is missing or does not answer; a node has another build of coreward or other
            files; or a run's workers died again and again. What was finished is kept.
    """
    with _sweeps.file_of(plan) as file:
        work = Work("sweep", tuple(options_as_words({"strict": strict})), "", file)
        _make_all(work, Path(state), address, task_s, several(merge), progress)
        return _sweeps.sweep(file, state=state, output=output, runs_table=runs_table, strict=strict)


def matrix(
    change: Policy | str,
    *,
    state: PathOf,
    address: str | None = None,
    task_s: float = 5.0,
    suite: PathOf | None = None,
    merge: PathOf | Iterable[PathOf] = (),
    html: PathOf | None = None,
    output: PathOf | Iterable[PathOf] = (),
    progress: Progress | None = None,
    **what: Any,
) -> Matrix:
    """Shows what one change does as `coreward.matrix()` does, with the same result to the byte, on the nodes of a Ray cluster.

    Args:
        state, address, task_s: as in `sweep()`; what is kept, and repeated if its worker dies, is a cell with its runs.
        what: other arguments of `coreward.matrix()`, but not `jobs`.

    The other arguments are those of `coreward.matrix()`.

    Raises:
        Error: as `coreward.matrix()` and `sweep()`.
    """
    words = options_as_words(_comparisons.matrix_options(change, **what))
    work = Work("matrix", tuple(words), "--suite=", None if suite is None else Path(suite))
    _make_all(work, Path(state), address, task_s, several(merge), progress)
    return _comparisons.matrix(change, suite=suite, state=state, html=html, output=output, **what)


@dataclass(frozen=True)
class Work:
    """What a command is to make, in the words of its command line.

    Attributes:
        command: `sweep` or `matrix`.
        words: the options that decide the results.
        prefix: what stands before the file, as `--suite=`.
        file: a file that is sent to the nodes.
    """

    command: str
    words: tuple[str, ...]
    prefix: str
    file: Path | None

    def line(self, options: Mapping[str, object], file: Path | None = None) -> list[str]:
        """The command line with further options, and with a copy of the file."""
        file = file or self.file
        named = [] if file is None else [f"{self.prefix}{file}"]
        return [self.command, *options_as_words(options), *self.words, *(named if self.prefix else ["--", *named])]


def _make_all(
    work: Work, state: Path, address: str | None, task_s: float, merge: list[PathOf], progress: Progress | None = None
) -> None:
    """Has the cluster make what is left."""
    if not task_s >= 0:
        raise Error(f"task_s is {task_s}, allowed are numbers from 0 on")
    left = _left(work, state, merge)
    if not left:
        return
    ray = _ray(address)
    with open(state, "ab") as kept:
        try:
            fcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Error(f"{state} is in use by another coreward {work.command}") from None
        _Tasks(ray, work, kept, task_s).make(left, progress or (lambda done, total: None))
    missing = _left(work, state, [])
    if missing:
        raise Error(f"{len(missing)} runs have other files on the nodes than here, the first one {missing[0][1]}")


def _left(work: Work, state: Path, merge: list[PathOf]) -> list[tuple[str, str]]:
    """The runs or cells that are left, each as a shard of its own with what it is called."""
    # the report has the same remarks
    printed, *_ = _native.call(work.line({"left": True, "state": state, "merge": merge}), False)
    lines = printed.decode().splitlines()
    return [(shard, name) for shard, _, name in (line.partition(" ") for line in lines)]


def _ray(address: str | None) -> Any:
    """Ray, connected; the nodes get this package, unless the caller has set up their environment."""
    try:
        import ray
    except ImportError:
        raise Error("Ray is not installed: pip install 'ray[default]'") from None
    if ray.is_initialized():
        return ray
    package = str(Path(__file__).parent)
    try:
        # workers say nothing that the errors of their tasks do not
        quiet = {"log_to_driver": False, "logging_level": "warning"}
        ray.init(address=address, runtime_env={"py_modules": [package]}, **quiet)
    except (ConnectionError, ValueError) as error:
        raise Error(f"Ray at {address}: {error}") from None
    return ray


class _Tasks:
    """The tasks of a command: a bounded number of them, whose results are kept as they come."""

    def __init__(self, ray: Any, work: Work, kept: IO[bytes], task_s: float) -> None:
        self.ray = ray
        self.make_runs = ray.remote(num_cpus=1, max_retries=RETRIES)(_make_runs)
        self.common = ray.put((work, work.file and work.file.read_bytes(), _build()))
        self.kept = kept
        self.task_s = task_s
        #: Each task with its runs.
        self.running: dict[Any, list[tuple[str, str]]] = {}
        #: Runs that were made, and the seconds that it took their workers.
        self.made, self.worked_s = 0, 0.0
        #: Runs whose workers died.
        self.suspects: deque[tuple[str, str]] = deque()
        self.dead: list[str] = []
        self.cpus, self.nodes, self.looked = 1, 1, float("-inf")

    def make(self, left: list[tuple[str, str]], progress: Progress) -> None:
        waiting, total, began = deque(left), len(left), time.monotonic()
        try:
            while waiting or self.suspects or self.running:
                self._look()
                while (waiting or self.suspects) and len(self.running) < PER_CPU * self.cpus:
                    # by itself, so that a run which kills its workers costs no other
                    self._start([self.suspects.popleft()] if self.suspects else self._some(waiting))
                done, _ = self.ray.wait(list(self.running), timeout=LOOK_S)
                for task in done:
                    self._finish(task)
                _show(self, total, time.monotonic() - began)
                progress(self.made, total)
        finally:
            _clear()
            for task in self.running:
                self.ray.cancel(task, force=True)
        if self.dead:
            raise Error(f"{len(self.dead)} runs are missing, whose workers died {RETRIES + 1} times: {'; '.join(self.dead)}")

    def _look(self) -> None:
        """How large the cluster is now."""
        if time.monotonic() - self.looked > LOOK_S:
            self.looked = time.monotonic()
            self.cpus = max(1, int(self.ray.cluster_resources().get("CPU", 0)))
            self.nodes = sum(node["Alive"] for node in self.ray.nodes())

    def _some(self, waiting: deque[tuple[str, str]]) -> list[tuple[str, str]]:
        """The runs of a task: fewer towards the end, so that all CPUs end together."""
        fair = len(waiting) // (PER_CPU * self.cpus)
        asked = self.task_s * self.made / self.worked_s if self.made else 1
        return [waiting.popleft() for _ in range(int(max(1, min(asked, fair))))]

    def _start(self, runs: list[tuple[str, str]]) -> None:
        name = runs[0][1] if len(runs) == 1 else f"{runs[0][1]}, and {len(runs) - 1} more"
        task = self.make_runs.options(name=name).remote(self.common, [shard for shard, _ in runs])
        self.running[task] = runs

    def _finish(self, task: Any) -> None:
        runs = self.running.pop(task)
        try:
            worked_s, results = self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self.ray.exceptions.RayError:
            if len(runs) > 1:
                self.suspects.extend(runs)
            else:
                self.dead.append(runs[0][1])
            return
        # each state file begins with the same line
        self.kept.write(results[results.index(b"\n") + 1 :])
        self.kept.flush()
        os.fsync(self.kept.fileno())
        self.made += len(runs)
        self.worked_s += worked_s


def _make_runs(common: tuple[Work, bytes | None, str], shards: list[str]) -> tuple[float, bytes]:
    """In a worker: makes runs or cells, and returns the seconds that it took and the state file."""
    began = time.monotonic()
    work, content, build = common
    if build != _build():
        raise Error("a node has another build of coreward, whose results may differ")
    with tempfile.TemporaryDirectory(prefix="coreward-") as directory:
        state, file = Path(directory, "state"), None
        if content is not None:
            file = Path(directory, "file.toml")
            file.write_bytes(content)
        _native.call(work.line({"jobs": 1, "state": state, "shard": shards}, file), False)
        return time.monotonic() - began, state.read_bytes()


@functools.cache
def _build() -> str:
    return hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()


def _show(tasks: _Tasks, total: int, took_s: float) -> None:
    """On standard error, and only if that is a terminal."""
    if not sys.stderr.isatty():
        return
    left = f"{took_s * (total - tasks.made) / tasks.made:.0f} s left" if tasks.made else "the first ones are running"
    size = f"{len(tasks.running)} tasks, {tasks.cpus} CPUs, {tasks.nodes} nodes"
    sys.stderr.write(f"\r\x1b[K{tasks.made} of {total} runs, {size}, {left}")
    sys.stderr.flush()


def _clear() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")


#: Options of the commands that have no meaning here.
_NOT_HERE = ("--jobs", "--shard", "--left")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m coreward.cluster", description="Makes sweeps and matrices on a Ray cluster.")
    commands = parser.add_subparsers(required=True, dest="command")
    for name in ("sweep", "matrix"):
        what = f"coreward {name}, with its options but {', '.join(_NOT_HERE)}, on a cluster"
        command = commands.add_parser(name, help=what, description=what, allow_abbrev=False)
        command.add_argument("--ray", metavar="ADDRESS", help="the cluster, as ray.init takes it [default: RAY_ADDRESS, or Ray on this machine]")
        command.add_argument("--task-s", metavar="S", type=float, default=5.0, help="seconds that a task shall take [default: 5]")
        command.add_argument("--state", metavar="FILE", type=Path, required=True, help="keeps what is finished")
        command.add_argument("--merge", metavar="FILE", action="append", default=[], help="also take what is finished from this file")
        for option in ("--json", "--text", "--html", "--output"):
            command.add_argument(option, metavar="F", action="append", help=argparse.SUPPRESS)
        for option in ("--all", "--check", "--fail-if-worse", "--quiet"):
            command.add_argument(option, action="store_true", help=argparse.SUPPRESS)
        if name == "sweep":
            command.add_argument("file", metavar="SWEEP.toml", type=Path)
        else:
            command.add_argument("--suite", metavar="F.toml", type=Path, dest="file", help=argparse.SUPPRESS)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """The command line; its report is that of the command. Returns the exit status."""
    # a file of these comes after a =
    given = sys.argv[1:] if arguments is None else arguments
    given = [f"{word}=-" if word in ("--json", "--text") else word for word in given]
    args, words = _parser().parse_known_args(given)
    report = {name: getattr(args, name) for name in ("json", "text", "html", "output", "all", "check", "fail_if_worse", "quiet")}
    try:
        if refused := [option for option in (word.partition("=")[0] for word in words) if option in _NOT_HERE]:
            raise Error(f"{refused[0]} has no meaning on a cluster")
        work = Work(args.command, tuple(words), "" if args.command == "sweep" else "--suite=", args.file)
        # what Ray remarks is no part of the report
        with contextlib.redirect_stdout(sys.stderr):
            _make_all(work, args.state, args.ray, args.task_s, args.merge)
            printed, remarks, unmet, _ = _native.call(work.line({"state": args.state, **report}), False)
    except Error as error:
        print(f"coreward.cluster: {error}", file=sys.stderr)
        return 2
    for remark in remarks:
        print(f"coreward.cluster: {remark}", file=sys.stderr)
    sys.stdout.write(printed.decode())
    if unmet:
        print(f"coreward.cluster: {unmet}", file=sys.stderr)
    return 1 if unmet else 0


if __name__ == "__main__":
    # tasks name functions by their module
    from coreward import cluster

    sys.exit(cluster.main())
