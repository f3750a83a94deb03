# SPDX-License-Identifier: GPL-2.0-only
"""Sweeps on a cluster, by Ray (docs/cluster.md)::

    from coreward import cluster

    found = cluster.sweep("placement.toml", state="placement.state", address="auto")

    python -m coreward.cluster sweep placement.toml --state placement.state --ray auto

Workers make runs as shards of `coreward sweep`, and this process keeps them in its state file. Ray has to be installed.
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
import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from . import _native, _sweeps
from ._native import Error
from ._results import Sweep
from ._spec import PathOf
from ._words import Remark, answer, several

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
) -> Sweep:
    """Tries many settings as `coreward.sweep()` does, with the same result to the byte, on the nodes of a Ray cluster.

    Args:
        state: a file here that keeps finished runs. A sweep that was killed continues with it.
        address: the cluster, as `ray.init` takes it. None is the one that `ray.init` was called for; if it was not, that
            of RAY_ADDRESS, or a Ray of this machine alone.
        task_s: seconds that a task shall take, from 0 on: as many runs are one task, and at least one. This is what is
            repeated if its worker dies.

    The other arguments are those of `coreward.sweep()`.

    Raises:
        Error: as `coreward.sweep()`; Ray is missing or does not answer; a node has another build of coreward or other
            files; or a run's workers died again and again. What was finished is kept.
    """
    with _sweeps.file_of(plan) as file:
        _make_all(file, Path(state), address, task_s, several(merge), strict)
        return _sweeps.sweep(file, state=state, output=output, runs_table=runs_table, strict=strict)


def _make_all(plan: Path, state: Path, address: str | None, task_s: float, merge: list, strict: bool) -> None:
    """Has the cluster make what is left of a plan."""
    if not task_s >= 0:
        raise Error(f"task_s is {task_s}, allowed are numbers from 0 on")
    left = _left(plan, state, merge, strict)
    if not left:
        return
    ray = _ray(address)
    with open(state, "ab") as kept:
        try:
            fcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Error(f"{state} is in use by another coreward sweep") from None
        _Tasks(ray, plan, kept, task_s, strict).make(left)
    missing = _left(plan, state, [], strict)
    if missing:
        raise Error(f"{len(missing)} runs have other files on the nodes than here, the first one {missing[0][1]}")


def _left(plan: Path, state: Path, merge: list, strict: bool) -> list[tuple[str, str]]:
    """The runs that are left, each as a shard of its own with what it is called."""
    with warnings.catch_warnings():
        # the report has the same remarks
        warnings.simplefilter("ignore", Remark)
        options = {"left": True, "state": state, "merge": merge, "strict": strict}
        lines = answer("sweep", options, plan).json.splitlines()
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
    """The tasks of a sweep: a bounded number of them, whose results are kept as they come."""

    def __init__(self, ray: Any, plan: Path, kept: IO[bytes], task_s: float, strict: bool) -> None:
        self.ray = ray
        self.make_runs = ray.remote(num_cpus=1, max_retries=RETRIES)(_make_runs)
        self.common = ray.put((plan.read_bytes(), strict, _build()))
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

    def make(self, left: list[tuple[str, str]]) -> None:
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
                _progress(self, total, time.monotonic() - began)
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


def _make_runs(common: tuple[bytes, bool, str], shards: list[str]) -> tuple[float, bytes]:
    """In a worker: makes runs, and returns the seconds that it took and the state file."""
    began = time.monotonic()
    plan, strict, build = common
    if build != _build():
        raise Error("a node has another build of coreward, whose results may differ")
    with tempfile.TemporaryDirectory(prefix="coreward-") as directory:
        file, state = Path(directory, "plan.toml"), Path(directory, "state")
        file.write_bytes(plan)
        words = ["sweep", "--jobs=1", f"--state={state}", *(f"--shard={shard}" for shard in shards)]
        _native.call([*words, *(["--strict"] if strict else []), "--", str(file)], False)
        return time.monotonic() - began, state.read_bytes()


@functools.cache
def _build() -> str:
    return hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()


def _progress(tasks: _Tasks, total: int, took_s: float) -> None:
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


def main(arguments: list[str] | None = None) -> int:
    """The command line; its report is that of `coreward sweep`. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m coreward.cluster", description="Makes sweeps on a Ray cluster.")
    command = parser.add_subparsers(required=True).add_parser("sweep", help="coreward sweep, with its options, on a cluster")
    command.add_argument("file", metavar="SWEEP.toml", type=Path)
    command.add_argument("--ray", metavar="ADDRESS", help="the cluster, as ray.init takes it [default: RAY_ADDRESS, or Ray on this machine]")
    command.add_argument("--task-s", metavar="S", type=float, default=5.0, help="seconds that a task shall take [default: 5]")
    command.add_argument("--state", metavar="FILE", type=Path, required=True, help="keeps finished runs")
    command.add_argument("--merge", metavar="FILE", action="append", default=[], help="also take finished runs from this file")
    command.add_argument("--output", metavar="FILE", action="append", default=[], help="write all metrics as a table")
    command.add_argument("--json", metavar="F", nargs="?", const=True, help="print JSON instead of text, or with =F write it to a file")
    for flag, what in [
        ("--all", "print every cell"),
        ("--check", "exit with 1 if a run broke an invariant"),
        ("--fail-if-worse", "exit with 1 if a cell is worse beyond noise"),
        ("--strict", "assume nothing"),
    ]:
        command.add_argument(flag, action="store_true", help=what)
    args = parser.parse_args(arguments)
    try:
        # what Ray remarks is no part of the report
        with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore", Remark)
            _make_all(args.file, args.state, args.ray, args.task_s, args.merge, args.strict)
            options = {name: getattr(args, name) for name in ("state", "json", "output", "all", "check", "fail_if_worse", "strict")}
            report = answer("sweep", options, args.file)
    except Error as error:
        print(f"coreward.cluster: {error}", file=sys.stderr)
        return 2
    for remark in report.remarks:
        print(f"coreward.cluster: {remark}", file=sys.stderr)
    sys.stdout.write(report.json)
    if report.unmet:
        print(f"coreward.cluster: {report.unmet}", file=sys.stderr)
    return 1 if report.unmet else 0


if __name__ == "__main__":
    # tasks name functions by their module
    from coreward import cluster

    sys.exit(cluster.main())
