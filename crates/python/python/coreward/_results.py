# SPDX-License-Identifier: GPL-2.0-only
"""What commands found. Results are plain data: they can be pickled, and kept without this package."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from . import _html
from ._words import Answer


class Result:
    """What a command found.

    Attributes:
        json: the output of the command line with `--json`, to the byte.
        remarks: what was assumed, or is not as it was asked for.
        unmet: the requirement that the result does not meet; None if there is none.
    """

    def __init__(self, answer: Answer) -> None:
        self._words = answer.words
        self.json = answer.json
        self.remarks = answer.remarks
        self.unmet = answer.unmet

    @cached_property
    def data(self) -> Any:
        """All of it as dictionaries and lists."""
        return json.loads(self.json)

    @property
    def command(self) -> str:
        """The command line that gives the same."""
        return shlex.join(["coreward", *self._words])

    def __reduce__(self):
        return type(self), (Answer(self._words, self.json, self.remarks, self.unmet),)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.json == other.json

    def __hash__(self) -> int:
        return hash(self.json)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.command}>"

    def _repr_html_(self) -> str:
        return _html.page(type(self).__name__, self.command, self.remarks, self._tables())

    def _tables(self) -> Iterator[_html.Table]:
        """The tables that a notebook shows: a title, the columns, and the rows."""
        return iter(())


class Run(Result):
    """A run, as `simulate()` made it."""

    @property
    def machine(self) -> str:
        """Name of the machine."""
        return self.data["machine"]

    @property
    def workload(self) -> str:
        """Command line of the workload, with its defaults."""
        return self.data["workload"]

    @property
    def profile(self) -> str:
        """The kernel that the policy stands for."""
        return self.data["profile"]

    @property
    def seed(self) -> int:
        """Seed of all randomness."""
        return self.data["seed"]

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics by name; a name has its unit: `_s`, `_us`, `_pct`, `_per_s`, otherwise a count."""
        return self.data["metrics"]

    @property
    def cpu_time_s(self) -> dict[str, float]:
        """What the CPUs' time was spent on, in s."""
        return self.data["cpu_time_s"]

    @property
    def reasons(self) -> dict[str, int]:
        """How often each reason decided a placement or a balance."""
        return self.data["reasons"]

    @property
    def violations(self) -> list[dict[str, Any]]:
        """The invariants that were broken: `invariant`, `at_s`, `what`. It should be empty."""
        return self.data["checks"]["violations"]

    @property
    def intervals(self) -> list[dict[str, Any]]:
        """Metrics of each interval, if `interval_s` was given."""
        return self.data.get("intervals", [])

    @property
    def notes(self) -> list[str]:
        """What a reader of the figures has to know."""
        return self.data["notes"]

    def _tables(self) -> Iterator[_html.Table]:
        yield "metrics", ("metric", "value"), list(self.metrics.items())
        time = {part: seconds for part, seconds in self.cpu_time_s.items() if seconds}
        yield "CPU time, s", ("part", "s"), list(time.items())
        yield "decisions", ("reason", "count"), list(self.reasons.items())


class Comparison(Result):
    """Sides of a comparison, as `compare()` or `compare_experiment()` ran them."""

    @cached_property
    def cases(self) -> list[dict[str, Any]]:
        """The comparison of each case; one without a label if there are no cases."""
        return self.data["cases"] if "cases" in self.data else [self.data]

    @property
    def verdicts(self) -> dict[tuple[str, str], str]:
        """For each variant and headline metric: better, worse, different, not_shown, or untested.

        Raises:
            ValueError: there are several cases, which have their own (`cases`).
        """
        return {
            (variant["label"], metric): verdict
            for variant in self._only()["variants"]
            for metric, verdict in variant["verdict"].items()
        }

    def delta_pct(self, metric: str, variant: str | None = None) -> float | None:
        """How far a metric's mean changes from the baseline's, in %; + is better, or more if neither direction is.

        Args:
            metric: its name.
            variant: the label of the variant; None is the first one.

        Returns:
            None if the baseline has no mean but 0.

        Raises:
            KeyError: there is no such metric or variant.
            ValueError: there are several cases, which have their own (`cases`).
        """
        return self._variant(variant)["delta_pct"][metric]

    def interval_pct(self, metric: str, variant: str | None = None) -> tuple[float, float] | None:
        """The 95 % confidence interval of `delta_pct()`, or None if there is none. It takes and raises the same."""
        interval = self._variant(variant)["interval_pct"][metric]
        return None if interval is None else (interval[0], interval[1])

    def values(self, metric: str, side: str | None = None) -> list[float | None]:
        """The values of a metric in each run of a side, by its label; None is the baseline. It raises the same."""
        found = self._only()["baseline"] if side is None else self._variant(side)
        return found["values"][metric]

    def _only(self) -> dict[str, Any]:
        if len(self.cases) != 1:
            raise ValueError(f"there are {len(self.cases)} cases: see cases")
        return self.cases[0]

    def _variant(self, label: str | None) -> dict[str, Any]:
        variants = self._only()["variants"]
        if label is None:
            return variants[0]
        return {variant["label"]: variant for variant in variants}[label]

    def _tables(self) -> Iterator[_html.Table]:
        columns = ("metric", "baseline", "variant", "mean", "change, %", "CI95, %", "verdict")
        for case in self.cases:
            rows = [
                (
                    metric,
                    case["baseline"]["metrics"][metric]["mean"],
                    variant["label"],
                    variant["metrics"][metric]["mean"],
                    variant["delta_pct"][metric],
                    variant["interval_pct"][metric],
                    variant["verdict"][metric],
                )
                for variant in case["variants"]
                for metric in case["headline"]
            ]
            yield case.get("case") or case["experiment"], columns, rows


class Matrix(Result):
    """What one change does to many workloads on many machines, as `matrix()` ran them."""

    @property
    def summary(self) -> dict[str, Any]:
        """How many cells are worse, better, show no change, or are the same."""
        return self.data["summary"]

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells, the worst one first."""
        return self.data["cells"]

    def _tables(self) -> Iterator[_html.Table]:
        yield "cells, the worst first", ("machine", "workload", *_html.FIGURE), _html.figures(self.cells, ["machine", "name"])


class Sweep(Result):
    """Many settings on many machines under many workloads, as `sweep()` ran them."""

    @property
    def summary(self) -> dict[str, Any]:
        """How many cells are worse, better, show no change, or are the same, and the SHA-256 of all results."""
        return self.data["summary"]

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The settings, the best one first."""
        return self.data["settings"]

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Each setting on each machine under each workload."""
        return self.data["cells"]

    def _tables(self) -> Iterator[_html.Table]:
        columns = ("setting", "mean_delta_pct", "worst_delta_pct", "better", "worse")
        rows = [[setting[column] for column in columns] for setting in self.settings]
        yield "settings, the best first", ("setting", "mean change, %", "worst, %", "better", "worse"), rows


class _Rows(Result, Sequence):
    """A result that is a list."""

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index):
        return self.data[index]

    def _tables(self) -> Iterator[_html.Table]:
        columns = list(self.data[0]) if self.data else []
        yield "", columns, [[row[column] for column in columns] for row in self.data]


class Decisions(_Rows):
    """Decisions of the policy, as `explain()` found them, each a dictionary."""


class Machines(_Rows):
    """Machines that come with the program, each a dictionary with `name` and `description`."""


class Features(_Rows):
    """Features and tunables, each a dictionary with `name`, `value`, `default`, `unit`, `seed` and `help`."""


class Calibration(Result):
    """What things cost on this machine, as `calibrate()` measured it."""

    @property
    def costs(self) -> dict[str, dict[str, Any]]:
        """Each cost: its `value` and `spread` in ns, `how` it was measured, and why it is `not_used`."""
        return self.data["costs"]

    def _tables(self) -> Iterator[_html.Table]:
        columns = ("value", "spread", "how", "not_used")
        rows = [[name, *(cost[column] for column in columns)] for name, cost in self.costs.items()]
        yield "costs, ns", ("cost", *columns), rows


class Validation(Result):
    """Benchmarks on this machine beside their simulation, as `validate()` ran them."""

    @property
    def benchmarks(self) -> list[dict[str, Any]]:
        """Each benchmark with its `real` and `simulated` figures, and `compared`, in which each figure is judged."""
        return self.data["benchmarks"]

    @property
    def scores(self) -> list[dict[str, Any]]:
        """For each figure, how far the simulation is off over all benchmarks, in %."""
        return self.data["scores"]

    def _tables(self) -> Iterator[_html.Table]:
        columns = ("figure", "real", "simulated", "off_pct", "within")
        rows = [
            [benchmark["benchmark"], *(figure[column] for column in columns)]
            for benchmark in self.benchmarks
            for figure in benchmark["compared"]
        ]
        yield "real and simulated", ("benchmark", *columns), rows


class Imported(Result):
    """What a recording tells, as `import_trace()` read it."""

    @property
    def classes(self) -> list[dict[str, Any]]:
        """The classes of tasks: their time, and what their waits ended by."""
        return self.data["classes"]

    def _tables(self) -> Iterator[_html.Table]:
        columns = ("name", "tasks", "cpu_s", "queued_s", "blocked_s", "explained_pct")
        yield "classes of tasks", columns, [[row[column] for column in columns] for row in self.classes]
