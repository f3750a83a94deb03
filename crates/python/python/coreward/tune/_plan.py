# SPDX-License-Identifier: GPL-2.0-only
"""What a study is: its file, which has the words of a sweep's (docs/tuning.md)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import Error, features
from .._native import read
from ._scores import RESULT
from ._search import Choice, Method, Range

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SAMPLERS = ("tpe", "nsga2")

#: The largest file of a study.
MAX_KIB = 1024


@dataclass(frozen=True)
class Plan:
    """A study. Names of machines, workloads, metrics and settings are as in a sweep.

    Attributes:
        metrics: the objectives, the most important first.
        guard: metrics in which no cell may be worse.
        known: settings that are shown beside the front, in the form of a sweep's `list`.
        held_machines: machines that only the front is tried on.
        held_workloads: workloads that only the front is tried with.
        held_runs: runs of each cell once the front is known, with seeds of their own.
    """

    name: str
    machines: tuple[str, ...]
    workloads: tuple[str, ...]
    profile: str
    space: Mapping[str, Range | Choice]
    method: Method
    baseline: str | None
    runs: int
    seed: int
    metrics: tuple[str, ...]
    guard: tuple[str, ...]
    known: tuple[str, ...]
    held_machines: tuple[str, ...]
    held_workloads: tuple[str, ...]
    held_runs: int


def load(file: Path) -> Plan:
    """Reads a study.

    Raises:
        Error: the file cannot be read, or a key in it is unknown, missing, or has a value that is not allowed.
    """
    text = read(file, MAX_KIB)
    try:
        return of(tomllib.loads(text))
    except RecursionError:
        raise Error(f"{file}: it is nested too deeply") from None
    except (tomllib.TOMLDecodeError, Error) as error:
        raise Error(f"{file}: {error}") from None


def of(raw: Mapping[str, Any]) -> Plan:
    """The study that a mapping describes.

    Raises:
        Error: as `load()`.
    """
    top = _Keys(raw, "")
    search = _Keys(top.get("search", dict, {}), "search.")
    holdout = _Keys(top.get("holdout", dict, {}), "holdout.")
    runs = top.number("runs", 5, 2, 1000)
    metrics = top.texts("metrics", (RESULT,))
    sampler = search.get("sampler", str, "tpe")
    if sampler not in SAMPLERS:
        raise Error(f"search.sampler is {sampler}, allowed are {' and '.join(SAMPLERS)}")
    plan = Plan(
        name=top.get("name", str),
        machines=top.texts("machines"),
        workloads=top.texts("workloads"),
        profile=top.get("profile", str),
        space=_space(top.get("vary", dict)),
        method=Method(
            sampler=sampler,
            trials=search.number("trials", 100, 1, 100_000),
            batch=search.number("batch", 10, 1, 1000),
            seed=search.number("seed", 1, 0, 2**32 - 1),
            lengths=_lengths(search.get("lengths", list, [1])),
            keep=search.number("keep", 3, 1, 1000),
        ),
        baseline=top.get("baseline", str, None),
        runs=runs,
        seed=top.number("seed", 1, 0, 2**62),
        metrics=metrics,
        guard=top.texts("guard", metrics),
        known=top.texts("list", ()),
        held_machines=holdout.texts("machines", ()),
        held_workloads=holdout.texts("workloads", ()),
        held_runs=holdout.number("runs", min(2 * runs, 1000), 2, 1000),
    )
    for keys in (top, search, holdout):
        keys.refuse_others()
    return plan


class _Keys:
    """The keys of a table, of which each has to be one that is asked for."""

    def __init__(self, raw: Mapping[str, Any], place: str) -> None:
        self._left, self._place = dict(raw), place

    def get(self, key: str, kind: type, *default: Any) -> Any:
        if key not in self._left and default:
            return default[0]
        if key not in self._left:
            raise Error(f"{self._place}{key} is missing")
        value = self._left.pop(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            kinds = {str: "a text", int: "a whole number", list: "a list", dict: "a table"}
            raise Error(f"{self._place}{key} is {value!r}, allowed is {kinds[kind]}")
        return value

    def number(self, key: str, default: int, low: int, high: int) -> int:
        value = self.get(key, int, default)
        if not low <= value <= high:
            raise Error(f"{self._place}{key} is {value}, allowed are {low} to {high}")
        return value

    def texts(self, key: str, *default: tuple[str, ...]) -> tuple[str, ...]:
        value = self.get(key, list, *map(list, default))
        if not all(isinstance(text, str) for text in value) or not (value or default):
            raise Error(f"{self._place}{key} is {value!r}, allowed is a list of texts")
        return tuple(value)

    def refuse_others(self) -> None:
        for key in self._left:
            raise Error(f"unknown key {self._place}{key}")


def _lengths(raw: list[Any]) -> tuple[float, ...]:
    numbers = all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in raw)
    if not numbers or not raw or raw[-1] != 1 or raw[0] < 1e-6 or any(a >= b for a, b in zip(raw, raw[1:])):
        raise Error(f"search.lengths is {raw}, allowed are increasing fractions of a run from 0.000001 on, the last one 1")
    return tuple(float(one) for one in raw)


def _space(raw: Mapping[str, Any]) -> dict[str, Range | Choice]:
    known = {feature["name"] for feature in features()}
    if not raw:
        raise Error("vary: nothing is varied")
    for name in raw:
        if name not in known:
            raise Error(f"vary.{name}: no feature or tunable is called so (see coreward features)")
    return {name: _values(f"vary.{name}", values) for name, values in raw.items()}


def _values(place: str, raw: Any) -> Range | Choice:
    if isinstance(raw, list) and raw and all(isinstance(value, (bool, int, str)) for value in raw):
        return Choice(tuple(raw))
    if isinstance(raw, dict) and raw.keys() <= {"from", "to", "log"}:
        low, high, log = raw.get("from"), raw.get("to"), raw.get("log", False)
        if type(low) is int and type(high) is int and type(log) is bool and int(log) <= low < high:
            return Range(low, high, log)
    raise Error(
        f"{place}: allowed are a list of values and {{ from = NUMBER, to = NUMBER, log = true or false }}, "
        "0 <= from < to, and 1 <= from with log"
    )
