# SPDX-License-Identifier: GPL-2.0-only
"""The search: Optuna proposes settings, batch by batch, and each batch is thinned out while its runs get longer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import optuna

#: A setting: values by the names of what is varied.
Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Score:
    """What a setting came to.

    Attributes:
        values: its objectives, of which more is better.
        excess: how far its worst cell is beyond what is allowed; none is, if it is not above 0.
        detail: whatever a report says about it.
    """

    values: tuple[float, ...]
    excess: float = 0.0
    detail: Any = field(default=None, compare=False)

    @property
    def allowed(self) -> bool:
        return self.excess <= 0


#: Scores settings, of which this fraction of each run is made.
Evaluate = Callable[[Sequence[Setting], float], Sequence[Score]]


@dataclass(frozen=True)
class Range:
    """Whole numbers.

    Args:
        low: the least.
        high: the greatest.
        log: whether they are tried evenly by logarithm.
    """

    low: int
    high: int
    log: bool = False

    def of(self, trial: optuna.Trial, name: str) -> int:
        return trial.suggest_int(name, self.low, self.high, log=self.log)

    @property
    def ends(self) -> tuple[Any, ...]:
        return (self.low, self.high)


@dataclass(frozen=True)
class Choice:
    """Any values."""

    values: tuple[Any, ...]

    def of(self, trial: optuna.Trial, name: str) -> Any:
        return self.values[trial.suggest_categorical(name, range(len(self.values)))]

    @property
    def ends(self) -> tuple[Any, ...]:
        return self.values


@dataclass(frozen=True)
class Method:
    """How settings are searched for.

    Args:
        sampler: `tpe`, `nsga2` or `random`.
        trials: number of settings.
        batch: number of settings that are proposed at once. The result depends on it, but not on how many run at once.
        seed: of the sampler.
        lengths: fractions of a run, increasing up to 1. Of each batch, the best part goes on to the next length.
        keep: one setting in so many goes on.
    """

    sampler: str
    trials: int
    batch: int
    seed: int
    lengths: tuple[float, ...] = (1.0,)
    keep: int = 3


@dataclass(frozen=True)
class Trial:
    """A setting that was tried: its score at the greatest length that it reached."""

    setting: Setting
    length: float
    score: Score
    sampler: str


def search(space: Mapping[str, Range | Choice], evaluate: Evaluate, objectives: int, method: Method) -> list[Trial]:
    """Tries settings, in the order in which they are proposed.

    What a sampler learns about a setting is its score at the greatest length that the setting reached.
    """
    study = optuna.create_study(directions=["maximize"] * objectives, sampler=_sampler(method))
    tried: list[Trial] = []
    while len(tried) < method.trials:
        asked = [study.ask() for _ in range(min(method.batch, method.trials - len(tried)))]
        settings = [{name: values.of(trial, name) for name, values in space.items()} for trial in asked]
        for trial, (score, length), setting in zip(asked, _halve(settings, evaluate, method), settings, strict=True):
            trial.set_constraint("worst_cell", score.excess)
            study.tell(trial, score.values)
            tried.append(Trial(setting, length, score, method.sampler))
    return tried


def _sampler(method: Method) -> optuna.samplers.BaseSampler:
    if method.sampler == "random":
        return optuna.samplers.RandomSampler(seed=method.seed)
    if method.sampler == "nsga2":
        return optuna.samplers.NSGAIISampler(seed=method.seed, population_size=method.batch)
    # one name at a time: with all at once (multivariate), 200 trials are too few to be ahead of random search reliably
    # (docs/results/tuning.md)
    return optuna.samplers.TPESampler(seed=method.seed, n_startup_trials=method.batch, multivariate=False)


def _halve(settings: Sequence[Setting], evaluate: Evaluate, method: Method) -> list[tuple[Score, float]]:
    found: dict[int, tuple[Score, float]] = {}
    left = list(range(len(settings)))
    for length in method.lengths:
        scores = evaluate([settings[i] for i in left], length)
        found.update((i, (score, length)) for i, score in zip(left, scores, strict=True))
        ranked = ranks([found[i][0] for i in left])
        left = sorted(sorted(left, key=dict(zip(left, ranked, strict=True)).__getitem__)[: -(-len(left) // method.keep)])
    return [found[i] for i in range(len(settings))]


def ranks(scores: Sequence[Score]) -> list[tuple[int, float]]:
    """A key for each score, the least for the best: how many dominate it, then the sum of its objectives."""
    return [(sum(dominates(other, score) for other in scores), -sum(score.values)) for score in scores]


def dominates(a: Score, b: Score) -> bool:
    """Whether a is allowed and b is not, or both are and a is nowhere worse and somewhere better; or less beyond."""
    if not (a.allowed and b.allowed):
        return max(a.excess, 0.0) < max(b.excess, 0.0)
    return a.values != b.values and all(x >= y for x, y in zip(a.values, b.values, strict=True))


def front(trials: Sequence[Trial]) -> list[Trial]:
    """Of the trials that were run at full length and are allowed, those that none dominates, the best first objective first.

    Of equal ones, the first.
    """
    whole = [trial for trial in trials if trial.length == 1 and trial.score.allowed]
    best = [trial for trial in whole if not any(dominates(other.score, trial.score) for other in whole)]
    first = {trial.score.values: trial for trial in reversed(best)}
    return sorted(first.values(), key=lambda trial: trial.score.values, reverse=True)


def covered(trials: Sequence[Trial], by: Sequence[Trial]) -> float:
    """The share of a front that another one dominates, 0 to 1."""
    dominated = [any(dominates(other.score, trial.score) for other in by) for trial in trials]
    return sum(dominated) / len(dominated) if dominated else 0.0
