# SPDX-License-Identifier: GPL-2.0-only
"""What commands found. Results are plain data: they can be pickled, and kept without this package."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from . import _html
from ._table import Table
from ._words import Answer


#: How a figure differs from the baseline's, as columns.
_CHANGE = ("delta_pct", "ci95_low_pct", "ci95_high_pct", "verdict")


def _change(delta_pct: float | None, interval_pct: list[float] | None, verdict: str) -> tuple[Any, ...]:
    return (delta_pct, *(interval_pct or (None, None)), verdict)


#: A figure of a cell, as columns.
_FIGURE = ("metric", "baseline_mean", "mean", *_CHANGE)


def _figures(cells: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """A row for each figure of each cell, which begins with what the cell has under these names."""
    return [
        (
            *(cell[name] for name in names),
            figure["metric"],
            figure["baseline"],
            figure["changed"],
            *_change(figure["delta_pct"], figure["interval_pct"], figure["verdict"]),
        )
        for cell in cells
        for figure in cell["figures"]
    ]


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
        self._runs = answer.rows

    @cached_property
    def data(self) -> Any:
        """All of it as dictionaries and lists."""
        return json.loads(self.json)

    @property
    def command(self) -> str:
        """The command line that gives the same."""
        return shlex.join(["coreward", *self._words])

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables, for `table()`."""
        runs = () if self._runs is None else ("runs",)
        return runs + tuple(name for name, _, _ in self._tables())

    def table(self, name: str | None = None) -> Table:
        """One of its tables, which pandas, polars, DuckDB and others take.

        Args:
            name: which of `tables`; None is the first one. `runs` has every metric of every run, in the columns that
                `--output` writes on the command line (docs/tables.md).

        Raises:
            KeyError: there is no such table.
        """
        if self._runs is not None and name in (None, "runs"):
            return Table(self._runs)
        found = {title: (columns, rows) for title, columns, rows in self._tables()}
        return Table.of_rows(*found[next(iter(found)) if name is None else name])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table().__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (Answer(self._words, self.json, self.remarks, self.unmet, self._runs),)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.json == other.json

    def __hash__(self) -> int:
        return hash(self.json)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.command}>"

    def _repr_html_(self) -> str:
        return _html.page(type(self).__name__, self.command, self.remarks, self._tables())

    def _tables(self) -> Iterator[_html.Rows]:
        """Its tables but that of the runs, the most important one first: a name, the columns, and the rows."""
        raise NotImplementedError


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

    def _tables(self) -> Iterator[_html.Rows]:
        yield "metrics", ("metric", "value"), list(self.metrics.items())
        yield "cpu_time", ("part", "time_s"), list(self.cpu_time_s.items())
        yield "reasons", ("reason", "decisions"), list(self.reasons.items())


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

    def _tables(self) -> Iterator[_html.Rows]:
        columns = ("case", "metric", "side", "baseline_mean", "mean", *_CHANGE)
        rows = [
            (
                case.get("case"),
                metric,
                variant["label"],
                case["baseline"]["metrics"][metric]["mean"],
                variant["metrics"][metric]["mean"],
                *_change(variant["delta_pct"][metric], variant["interval_pct"][metric], variant["verdict"][metric]),
            )
            for case in self.cases
            for variant in case["variants"]
            for metric in case["headline"]
        ]
        yield "changes", columns, rows


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

    def _tables(self) -> Iterator[_html.Rows]:
        columns = ("machine", "case", "workload", *_FIGURE)
        yield "cells", columns, _figures(self.cells, "machine", "name", "workload")


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

    def _tables(self) -> Iterator[_html.Rows]:
        columns = ("setting", "mean_delta_pct", "worst_delta_pct", "better", "worse")
        rows = [[setting[column] for column in columns] for setting in self.settings]
        yield "settings", columns, rows
        of_cells = ("machine", "case", "workload", "side", *_FIGURE)
        yield "cells", of_cells, _figures(self.cells, "machine", "name", "workload", "setting")


class _Rows(Result):
    """A result that is a list."""

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.data[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.data)

    def _tables(self) -> Iterator[_html.Rows]:
        columns = list(self.data[0]) if self.data else []
        yield type(self).__name__.lower(), columns, [[row[column] for column in columns] for row in self.data]


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

    def _tables(self) -> Iterator[_html.Rows]:
        keys = ("value", "spread", "how", "not_used")
        rows = [[name, *(cost[key] for key in keys)] for name, cost in self.costs.items()]
        yield "costs", ("cost", "value_ns", "spread_ns", "how", "not_used"), rows


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

    def _tables(self) -> Iterator[_html.Rows]:
        columns = ("figure", "real", "simulated", "off_pct", "within")
        rows = [
            [benchmark["benchmark"], *(figure[column] for column in columns)]
            for benchmark in self.benchmarks
            for figure in benchmark["compared"]
        ]
        yield "benchmarks", ("benchmark", *columns), rows


class Imported(Result):
    """What a recording tells, as `import_trace()` read it."""

    @property
    def classes(self) -> list[dict[str, Any]]:
        """The classes of tasks: their time, and what their waits ended by."""
        return self.data["classes"]

    def _tables(self) -> Iterator[_html.Rows]:
        columns = ("name", "tasks", "cpu_s", "queued_s", "blocked_s", "explained_pct")
        yield "classes", columns, [[row[column] for column in columns] for row in self.classes]
