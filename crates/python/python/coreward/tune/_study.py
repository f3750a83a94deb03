# SPDX-License-Identifier: GPL-2.0-only
"""Carrying out a study: the search, random search beside it, and the front on what was held out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import Error, Sweep, sweep
from .._words import Progress
from . import _plan, _scores
from ._search import Score, Setting, Trial, covered, front, search


@dataclass(frozen=True)
class Cells:
    """Machines and workloads, all with all, and how they are run."""

    machines: tuple[str, ...]
    workloads: tuple[str, ...]
    seed: int
    runs: int


class Simulator:
    """Scores settings by sweeps, of which finished runs are kept in a file."""

    def __init__(self, plan: _plan.Plan, state: Path, jobs: int | None) -> None:
        self._plan, self._state, self._jobs = plan, state, jobs

    def score(self, settings: Iterable[str], cells: Iterable[Cells], length: float = 1.0) -> list[Score]:
        """The score of each setting over all cells, in the order of the settings."""
        settings = list(settings)
        unique = list(dict.fromkeys(settings))
        sweeps = [self._sweep(unique, one, length) for one in cells]
        scores = dict(zip(unique, _scores.scores(sweeps, unique, self._plan.metrics, self._plan.guard), strict=True))
        return [scores[setting] for setting in settings]

    def _sweep(self, settings: list[str], cells: Cells, length: float) -> Sweep:
        plan = self._plan
        keys = {
            "name": plan.name,
            "machines": cells.machines,
            "workloads": cells.workloads,
            "profile": plan.profile,
            "baseline": plan.baseline,
            "runs": cells.runs,
            "seed": cells.seed,
            "scale": None if length == 1 else length,
            "list": settings,
        }
        given = {key: value for key, value in keys.items() if value is not None}
        return sweep(given, state=self._state, jobs=self._jobs)


def study(
    plan: _plan.Plan, *, state: Path | None, jobs: int | None, progress: Progress | None = None
) -> dict[str, Any]:
    """Carries out a study, and says what it found as the JSON describes it (docs/tuning.md).

    Raises:
        Error: a name or value in the plan is refused, or a run does not end.
    """
    with tempfile.TemporaryDirectory(prefix="coreward-") as directory:
        simulator = Simulator(plan, state or Path(directory, "state"), jobs)
        searched = Cells(plan.machines, plan.workloads, plan.seed, plan.runs)
        again = replace(searched, seed=plan.seed + plan.runs, runs=plan.held_runs)
        held = _held(plan, again)
        _look_up(plan, simulator, [searched, *held])

        begun = 0

        def evaluate(settings: Sequence[Setting], length: float) -> list[Score]:
            nonlocal begun
            if progress is not None and length == plan.method.lengths[0]:
                begun += len(settings)
                progress(begun, 2 * plan.method.trials)
            return simulator.score(map(_scores.changes, settings), [searched], length)

        methods = (plan.method, replace(plan.method, sampler="random"))
        searches = [search(plan.space, evaluate, len(plan.metrics), method) for method in methods]
        best = {_text(trial): trial.sampler for trial in front([trial for tried in searches for trial in tried])}
        found_by = {**dict.fromkeys(plan.known), **best}
        settings = [*best, *(setting for setting in plan.known if setting not in best)]
        sets = {"searched": [searched], "repeated": [again], "held_out": held}
        scores = {name: simulator.score(settings, cells) for name, cells in sets.items() if cells and settings}
    shown = [
        {
            "setting": setting,
            "found_by": found_by[setting],
            **{name: _described(plan, scores[name][i]) for name in scores},
        }
        for i, setting in enumerate(settings)
    ]
    return {
        "name": plan.name,
        "profile": plan.profile,
        "baseline": plan.baseline,
        "machines": plan.machines,
        "workloads": plan.workloads,
        "held_out": {"machines": plan.held_machines, "workloads": plan.held_workloads, "runs": plan.held_runs},
        "runs": plan.runs,
        "seed": plan.seed,
        "metrics": plan.metrics,
        "guard": plan.guard,
        "lengths": plan.method.lengths,
        "searches": [_search(plan, tried, searches[1 - i]) for i, tried in enumerate(searches)],
        "settings": shown,
        "trials": [_trial(trial) for tried in searches for trial in tried],
    }


def _held(plan: _plan.Plan, again: Cells) -> list[Cells]:
    """What was held out: all machines with the workloads held out, and the machines held out with the others."""
    held = []
    if plan.held_workloads:
        held.append(replace(again, machines=plan.machines + plan.held_machines, workloads=plan.held_workloads))
    if plan.held_machines:
        held.append(replace(again, machines=plan.held_machines))
    return held


def _look_up(plan: _plan.Plan, simulator: Simulator, cells: Iterable[Cells]) -> None:
    """Has everything in a plan refused that would be refused later, by runs that are as short as can be."""
    ends = [_scores.changes({name: end}) for name, values in plan.space.items() for end in values.ends]
    for one in cells:
        try:
            simulator.score([*ends, *plan.known], [replace(one, runs=2)], 1e-6)
        except Error as error:
            # so short a run may lack what a metric is computed from
            if not str(error).startswith("metrics: no run has "):
                raise


def _text(trial: Trial) -> str:
    return _scores.changes(trial.setting)


def _described(plan: _plan.Plan, score: Score) -> dict[str, Any]:
    means, worst = score.detail
    return {
        "metrics": {name: vars(mean) for name, mean in zip(plan.metrics, means, strict=True)},
        "worst": None if worst is None else vars(worst),
        "holds": score.allowed,
    }


def _search(plan: _plan.Plan, tried: list[Trial], other: list[Trial]) -> dict[str, Any]:
    own = front(tried)
    best = [max((trial.score.values[i] for trial in own), default=None) for i in range(len(plan.metrics))]
    return {
        "sampler": tried[0].sampler,
        "trials": len(tried),
        "different": len({_text(trial) for trial in tried}),
        "full_length": sum(trial.length == 1 for trial in tried),
        "front": len(own),
        "best": dict(zip(plan.metrics, best, strict=True)),
        "dominated_by_other": covered(own, front(other)),
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "sampler": trial.sampler,
        "setting": _text(trial),
        "length": trial.length,
        "values": trial.score.values,
        "excess": trial.score.excess,
    }
