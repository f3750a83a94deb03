# SPDX-License-Identifier: GPL-2.0-only
"""Results in notebooks: tables of HTML without a style of their own, so that they follow the notebook's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, TypeAlias

#: A title, the names of the columns, and the rows.
Rows: TypeAlias = "tuple[str, Sequence[str], Sequence[Sequence[Any]]]"

#: The most rows of a table that are shown.
ROWS = 50

def page(kind: str, command: str, remarks: Iterable[str], tables: Iterable[Rows]) -> str:
    """A result: how it was made, what was remarked, and its tables."""
    parts = [f"<p><b>{escape(kind)}</b> <code>{escape(command)}</code></p>"]
    parts += [f"<p><i>{escape(remark)}</i></p>" for remark in remarks]
    parts += [table(*rows) for rows in tables]
    return "".join(parts)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table, or its first rows."""
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
    return f'<td style="text-align: left">{"" if value is None else escape(text(value))}</td>'


def text(value: Any) -> str:
    """A value as a text; of a list its elements."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
