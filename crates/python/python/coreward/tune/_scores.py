# SPDX-License-Identifier: GPL-2.0-only
"""Scores of settings: what a sweep's runs say about each objective."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any

from scipy.stats import t

from .. import Error, Sweep
from ._search import Score

#: Stands for the figure that each benchmark itself reports.
RESULT = "result"

#: A cell is worse if its mean change is below minus so many standard deviations of a run.
NOISES = 2.0


@dataclass(frozen=True)
class Mean:
    """A change from the baseline over cells, in %; + is better.

    Attributes:
        mean: the mean over the cells, of the mean over the runs.
        low: lower end of its 95 % confidence interval (Student's t over the runs, which are paired by their seeds).
        high: upper end.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Worst:
    """The cell whose loss is greatest beyond the allowed one: its change and the noise, in %, and the command of its runs."""

    machine: str
    workload: str
    metric: str
    delta_pct: float
    noise_pct: float
    command: str

    @property
    def excess(self) -> float:
        return -self.delta_pct - NOISES * self.noise_pct


#: Changes of the runs of a cell in %, and its noise.
_Cell = tuple[list[float], float]


def scores(sweeps: Iterable[Sweep], settings: Sequence[str], metrics: Sequence[str], guard: Iterable[str]) -> list[Score]:
    """The score of each setting over the cells of all sweeps, which have the same seeds.

    Raises:
        Error: no cell has a metric, or neither direction of it is better.
    """
    sweeps, guard = list(sweeps), set(guard)
    cells = {key: cell for sweep in sweeps for key, cell in _cells(sweep, {*metrics, *guard}).items()}
    commands = {(cell["setting"], cell["machine"], cell["workload"]): cell["command"] for sweep in sweeps for cell in sweep.cells}
    found = []
    for setting in settings:
        means, worst = [], None
        for metric in metrics:
            own = [runs for (side, *_, name), (runs, _) in cells.items() if (side, name) == (setting, metric)]
            if not own:
                raise Error(f"metrics: no run has {metric}, or it is 0 in all runs of the baseline")
            means.append(_mean([fmean(run) for run in zip(*own, strict=True)]))
        for (side, machine, workload, name), (runs, noise) in cells.items():
            if side == setting and name in guard:
                cell = Worst(machine, workload, name, fmean(runs), noise, commands[side, machine, workload])
                worst = cell if worst is None or cell.excess > worst.excess else worst
        values = tuple(mean.mean for mean in means)
        found.append(Score(values, worst.excess if worst else 0.0, (means, worst)))
    return found


def _cells(sweep: Sweep, metrics: set[str]) -> dict[tuple[str, str, str, str], _Cell]:
    """Each metric of each cell, by setting, machine, workload and metric."""
    own = {(cell["machine"], cell["workload"]): cell["figures"][0]["metric"] for cell in sweep.cells if cell["figures"]}
    runs: dict[tuple[str, str, str, str], list[float]] = {}
    better = {}
    table = sweep.table("runs").to_dict()
    columns = (table[name] for name in ("role", "side", "machine", "workload", "metric", "value", "better"))
    for role, side, machine, workload, metric, value, direction in zip(*columns, strict=True):
        names = [metric] if metric in metrics else []
        if RESULT in metrics and own.get((machine, workload)) == metric:
            names.append(RESULT)
        for name in names:
            better[name, metric] = direction
            key = (side if role == "variant" else "", machine, workload, name)
            runs.setdefault(key, []).append(value if direction == "higher" else -value)
    for (name, _), direction in better.items():
        if direction == "neutral":
            raise Error(f"metrics: neither direction of {name} is better")
    found = {}
    for key, values in runs.items():
        baseline = runs.get(("", *key[1:]))
        # a metric that not every run has cannot be paired
        if key[0] and baseline and len(baseline) == len(values) and fmean(baseline):
            unit = abs(fmean(baseline)) / 100
            noise = math.sqrt((variance(baseline) + variance(values)) / 2) / unit
            found[key] = ([(a - b) / unit for a, b in zip(values, baseline, strict=True)], noise)
    return found


def _mean(runs: Sequence[float]) -> Mean:
    mean = fmean(runs)
    half = float(t.ppf(0.975, len(runs) - 1)) * math.sqrt(variance(runs) / len(runs))
    return Mean(mean, mean - half, mean + half)


def changes(setting: Mapping[str, Any]) -> str:
    """A setting in the form of a sweep's `list`."""
    return ",".join(_change(name, value) for name, value in setting.items())


def _change(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else f"NO_{name}"
    return f"{name}={value}"
