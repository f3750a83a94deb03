# SPDX-License-Identifier: GPL-2.0-only
"""A study as text and as a page."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from html import escape
from typing import Any

from .. import _html, __version__
from .._native import Page

_NONE = "No setting that was run at full length is better than another without a cell worse than 2 noise."
_SETS = {"searched": "search", "repeated": "other seeds", "held_out": "held out"}


def text(data: dict[str, Any]) -> str:
    """The study as tables of text."""
    lines = [f"coreward tune: {data['name']}, + is better than {_baseline(data)}, in %", ""]
    for title, columns, rows in tables(data):
        cells = [list(columns), *([_cell(value) for value in row] for row in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
        lines += [title, ""]
        lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
        lines.append("")
    if not _found(data):
        lines.append(_NONE)
    return "\n".join(lines).rstrip() + "\n"


def page(data: dict[str, Any]) -> str:
    """The study as a page that needs no other file."""
    made = Page(f"coreward tune: {data['name']}")
    held = data["held_out"]
    names = {
        "coreward": __version__,
        "baseline": _baseline(data),
        "machines": ", ".join(data["machines"]),
        "workloads": "; ".join(data["workloads"]),
        "held out": "; ".join([*held["machines"], *held["workloads"]]) or "nothing",
        "runs": f"{data['runs']} of each setting from seed {data['seed']}; of those of the table {held['runs']} more with other seeds",
        "objectives": ", ".join(data["metrics"]),
        "guarded": ", ".join(data["guard"]),
    }
    made.names(list(names.items()))
    made.text(_NONE if not _found(data) else "Changes are in %, + is better. An interval has 95 % confidence.")
    made.heading("The settings by their objectives")
    made.html(_plot(data))
    for metric in data["metrics"]:
        legend = "Change from the baseline in %, + is better, with seeds that the search has not seen; the line is the 95 % confidence interval."
        made.changes(f"The settings: {metric}", legend, [_change(i, one, metric) for i, one in enumerate(data["settings"])])
    for title, columns, rows in tables(data):
        made.heading(title)
        made.table(columns, [[_toned(*cell) for cell in zip(columns, row, strict=True)] for row in rows])
    if data["settings"]:
        _look(made, data["settings"][0])
    made.data(json.dumps(data, indent=2))
    return made.finish()


def _change(number: int, setting: dict[str, Any], metric: str) -> tuple[str, float, tuple[float, float], str]:
    mean = setting["repeated"]["metrics"][metric]
    verdict = "better" if mean["low"] > 0 else "worse" if mean["high"] < 0 else "not_shown"
    return f"{number + 1}: {setting['setting']}", mean["mean"], (mean["low"], mean["high"]), verdict


def _look(made: Page, setting: dict[str, Any]) -> None:
    """A run of the first setting and of the baseline in the cell where the setting is worst."""
    worst = setting["repeated"]["worst"]
    if worst is not None:
        made.heading(f"A closer look: {setting['setting']}, {worst['workload']} on {worst['machine']}")
        made.text(worst["command"])
        made.look(shlex.split(worst["command"])[1:])


def _toned(column: str, value: Any) -> tuple[str, str]:
    text = _cell(value)
    tone = "text" if column in ("setting", "worst cell") else "name" if column in ("found by", "runs", "search") else "plain"
    return text, tone


def _found(data: dict[str, Any]) -> bool:
    return any(setting["found_by"] for setting in data["settings"])


def tables(data: dict[str, Any]) -> Iterator[_html.Rows]:
    """The tables of a study: a title, the columns, and the rows."""
    columns = ["no.", "setting", "found by", "runs", *data["metrics"], "worst cell"]
    rows = []
    for i, setting in enumerate(data["settings"]):
        for kind, name in _SETS.items():
            if kind in setting:
                first = kind == "searched"
                means = [_interval(mean) for mean in setting[kind]["metrics"].values()]
                head = [i + 1, setting["setting"], setting["found_by"] or "list"] if first else ["", "", ""]
                rows.append([*head, name, *means, _worst(setting[kind])])
    yield "Pareto front, and the settings of the list", columns, rows
    columns = ["search", "trials", "different", "full length", "on its front", "dominated by the other", *data["metrics"]]
    keys = ("sampler", "trials", "different", "full_length", "front")
    rows = [
        [*(one[key] for key in keys), f"{100 * one['dominated_by_other']:.0f} %", *map(_pct, one["best"].values())]
        for one in data["searches"]
    ]
    yield "The search and random search beside it, with the best of each objective", columns, rows


def _baseline(data: dict[str, Any]) -> str:
    return ",".join(filter(None, (data["profile"], data["baseline"])))


def _interval(mean: dict[str, float]) -> str:
    return f"{mean['mean']:+.1f} [{mean['low']:+.1f}, {mean['high']:+.1f}]"


def _pct(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f}"


def _worst(scored: dict[str, Any]) -> str:
    worst = scored["worst"]
    if worst is None:
        return ""
    said = "" if scored["holds"] else "WORSE: "
    where = f"{worst['metric']}, {worst['workload']} on {worst['machine']}"
    return f"{said}{worst['delta_pct']:+.1f}, noise {worst['noise_pct']:.1f} ({where})"


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _plot(data: dict[str, Any]) -> str:
    """The settings by their first two objectives, or by the first one alone, with intervals."""
    names = data["metrics"][:2]
    points = [list(setting["repeated"]["metrics"].values())[:2] for setting in data["settings"]]
    tried = [trial["values"][:2] for trial in data["trials"] if trial["length"] == 1]
    ends = [[0.0] for _ in range(2)]
    for point in points:
        for axis, mean in enumerate(point):
            ends[axis] += [mean["low"], mean["high"]]
    for values in tried:
        for axis, value in enumerate(values):
            ends[axis].append(value)
    spans = [(min(values), max(values) - min(values) or 1.0) for values in ends]

    def x(value: float) -> float:
        return 90 + 490 * (value - spans[0][0]) / spans[0][1]

    def y(value: float) -> float:
        return 340 - 300 * (value - spans[1][0]) / spans[1][1]

    two = len(names) == 2
    out = ['<svg viewBox="0 0 640 400" width="640" role="img" aria-label="The settings by their objectives, as in the table below">']
    out.append(f'<line class="grid" x1="{x(0):.1f}" y1="20" x2="{x(0):.1f}" y2="340"/>')
    out.append(f'<line class="grid" x1="90" y1="{y(0):.1f}" x2="600" y2="{y(0):.1f}"/>')
    for values in tried:
        out.append(f'<circle cx="{x(values[0]):.1f}" cy="{y(values[1] if two else 0):.1f}" r="2" class="run"/>')
    for i, point in enumerate(points):
        at = (x(point[0]["mean"]), y(point[1]["mean"] if two else 0))
        bars = f"M{x(point[0]['low']):.1f} {at[1]:.1f}H{x(point[0]['high']):.1f}"
        bars += f"M{at[0]:.1f} {y(point[1]['low']):.1f}V{y(point[1]['high']):.1f}" if two else ""
        out.append(f'<path d="{bars}"/><circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="4">')
        title = "; ".join(f"{name} {_interval(mean)}" for name, mean in zip(names, point, strict=True))
        out.append(f"<title>{escape(data['settings'][i]['setting'])}: {escape(title)}</title></circle>")
        out.append(f'<text x="{at[0] + 6:.1f}" y="{at[1] - 6:.1f}">{i + 1}</text>')
    for value in (spans[0][0], sum(spans[0])):
        out.append(f'<text x="{x(value):.1f}" y="360" text-anchor="middle">{value:+.1f}</text>')
    for value in (spans[1][0], sum(spans[1])) if two else ():
        out.append(f'<text x="84" y="{y(value) + 4:.1f}" text-anchor="end">{value:+.1f}</text>')
    out.append(f'<text x="320" y="390" text-anchor="middle">{escape(names[0])}, %</text>')
    if two:
        out.append(f'<text transform="translate(14 180) rotate(-90)" text-anchor="middle">{escape(names[1])}, %</text>')
    return "".join([*out, "</svg>"])
