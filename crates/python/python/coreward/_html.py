# SPDX-License-Identifier: GPL-2.0-only
"""Results in notebooks: tables of HTML without a style of their own, so that they follow the notebook's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, TypeAlias

Table: TypeAlias = "tuple[str, Sequence[str], Sequence[Sequence[Any]]]"

#: The most rows of a table that are shown.
ROWS = 50

#: The columns that `figures()` fills after those of the cell.
FIGURE = ("metric", "baseline", "changed", "change, %", "CI95, %", "verdict")


def figures(cells: Iterable[dict[str, Any]], names: Sequence[str]) -> list[list[Any]]:
    """A row for each figure of each cell, which begins with what the cell has under these names."""
    columns = ("metric", "baseline", "changed", "delta_pct", "interval_pct", "verdict")
    return [
        [*(cell[name] for name in names), *(figure[column] for column in columns)]
        for cell in cells
        for figure in cell["figures"]
    ]


def page(kind: str, command: str, remarks: Iterable[str], tables: Iterable[Table]) -> str:
    """A result: how it was made, what was remarked, and its tables."""
    parts = [f"<p><b>{escape(kind)}</b> <code>{escape(command)}</code></p>"]
    parts += [f"<p><i>{escape(remark)}</i></p>" for remark in remarks]
    parts += [_table(*table) for table in tables]
    return "".join(parts)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows[:ROWS])
    more = f"<p>{len(rows) - ROWS} more rows: see data</p>" if len(rows) > ROWS else ""
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f'<td style="text-align: right">{value:,.6g}</td>'
    if isinstance(value, int):
        return f'<td style="text-align: right">{value:,}</td>'
    if isinstance(value, (list, tuple)):
        shown = ", ".join(f"{one:.4g}" if isinstance(one, float) else str(one) for one in value)
        return f'<td style="text-align: left">{escape(shown)}</td>'
    return f'<td style="text-align: left">{"" if value is None else escape(str(value))}</td>'
