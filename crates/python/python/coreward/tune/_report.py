# SPDX-License-Identifier: GPL-2.0-only
"""A study as text and as a page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from .. import _html, __version__

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
    if not any(setting["found_by"] for setting in data["settings"]):
        lines.append("No setting that was run at full length is better than another without a cell worse than 2 noise.")
    return "\n".join(lines).rstrip() + "\n"


def page(data: dict[str, Any]) -> str:
    """The study as a page that needs no other file."""
    parts = [_html.table(*rows) for rows in tables(data)]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>coreward tune: {escape(data['name'])}</title><style>:root{{color-scheme:light dark}}body{{font-family:"
        "sans-serif;max-width:70em;margin:auto;padding:1em}table{border-collapse:collapse;margin:1em 0}caption{text-align:"
        "left;font-weight:bold}td,th{padding:.2em .6em;border-bottom:1px solid #8884}svg{width:100%;max-width:50em}</style>"
        f"<h1>coreward tune: {escape(data['name'])}</h1><p>Changes from {escape(_baseline(data))} in %, + is better, by coreward "
        f"{__version__}. An interval has 95 % confidence.</p>{_plot(data)}{''.join(parts)}</html>\n"
    )


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
        return 60 + 520 * (value - spans[0][0]) / spans[0][1]

    def y(value: float) -> float:
        return 340 - 300 * (value - spans[1][0]) / spans[1][1]

    two = len(names) == 2
    out = ['<svg viewBox="0 0 640 400" role="img" aria-label="The settings by their objectives" fill="currentColor">']
    out.append(f'<path d="M{x(0):.1f} 20V340M60 {y(0):.1f}H600" stroke="#888" stroke-dasharray="3" />')
    for values in tried:
        out.append(f'<circle cx="{x(values[0]):.1f}" cy="{y(values[1] if two else 0):.1f}" r="2" fill="#888" />')
    for i, point in enumerate(points):
        at = (x(point[0]["mean"]), y(point[1]["mean"] if two else 0))
        bars = f"M{x(point[0]['low']):.1f} {at[1]:.1f}H{x(point[0]['high']):.1f}"
        bars += f"M{at[0]:.1f} {y(point[1]['low']):.1f}V{y(point[1]['high']):.1f}" if two else ""
        out.append(f'<path d="{bars}" stroke="#2471a3" /><circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="4" fill="#2471a3">')
        title = "; ".join(f"{name} {_interval(mean)}" for name, mean in zip(names, point, strict=True))
        out.append(f"<title>{escape(data['settings'][i]['setting'])}: {escape(title)}</title></circle>")
        out.append(f'<text x="{at[0] + 6:.1f}" y="{at[1] - 6:.1f}" font-size="12">{i + 1}</text>')
    out.append(f'<text x="320" y="380" text-anchor="middle" font-size="13">{escape(names[0])}, %</text>')
    if two:
        out.append(f'<text transform="translate(20 180) rotate(-90)" text-anchor="middle" font-size="13">{escape(names[1])}, %</text>')
    return "".join([*out, "</svg>"])
