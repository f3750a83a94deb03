# SPDX-License-Identifier: GPL-2.0-only
"""The functions of `coreward.tune`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna

from .._words import Progress
from . import _plan, _report, _study
from ._export import Exports, exports
from ._search import Choice, Method, Range, Score, Trial, covered, dominates, front, search

__all__ = [
    "Choice",
    "Exports",
    "Method",
    "Range",
    "Score",
    "Trial",
    "Tuned",
    "covered",
    "dominates",
    "front",
    "search",
    "tune",
]

# it tells each trial otherwise
optuna.logging.set_verbosity(optuna.logging.WARNING)


class Tuned:
    """What a study found.

    Attributes:
        data: all of it as dictionaries and lists.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def json(self) -> str:
        """All of it as JSON."""
        return json.dumps(self.data, indent=2) + "\n"

    @property
    def settings(self) -> list[dict[str, Any]]:
        """The Pareto front, and after it the other settings of the list."""
        return self.data["settings"]

    def exports(self, number: int) -> Exports:
        """A setting for use.

        Args:
            number: which, from 1 on, as the text numbers them.
        """
        setting = self.settings[number - 1]["setting"]
        return exports(self.data["name"], self.data["profile"], self.data["baseline"], setting)

    def html(self) -> str:
        """All of it as a page that needs no other file."""
        return _report.page(self.data)

    def __str__(self) -> str:
        return _report.text(self.data)


def tune(
    plan: str | os.PathLike[str] | Mapping[str, Any],
    *,
    state: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """Carries out a study.

    The result depends on the plan alone. A study that was stopped continues with `state`: it proposes the same settings
    again, and makes only the runs that are missing.

    Args:
        plan: a file, or what stands in it, as a mapping.
        state: a file that keeps finished runs.
        jobs: number of simultaneous runs, on which the result does not depend; None is the number of CPUs.
        progress: called with the number of trials that were begun and of all, those of random search included.

    Raises:
        Error: the plan is refused, a run does not end, or a file cannot be used.
    """
    loaded = _plan.of(plan) if isinstance(plan, Mapping) else _plan.load(Path(plan))
    return Tuned(_study.study(loaded, state=None if state is None else Path(state), jobs=jobs, progress=progress))
