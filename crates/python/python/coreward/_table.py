# SPDX-License-Identifier: GPL-2.0-only
"""Tables, which pandas, polars, DuckDB, pyarrow and others take as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _html
from ._native import Columns

if TYPE_CHECKING:
    import pandas
    import polars


class Table:
    """A table in memory, in the layout of Apache Arrow.

    `polars.DataFrame(table)`, `pandas.DataFrame.from_arrow(table)`, `pyarrow.table(table)` and `duckdb.sql("FROM name_of_the_variable")`
    take it, through the Arrow PyCapsule interface. Columns have their unit in their name: `_s`, `_us`, `_ns`, `_pct`,
    `_per_s`; others are counts, names, or, in a column `value`, in the unit of the row's metric. Texts have a dictionary.
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    @classmethod
    def of_rows(cls, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
        """A table of rows that have as many values as there are names; None is a missing one.

        A column has texts, whole numbers from 0 on, or numbers, whichever fits all of its values.
        """
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return cls(Columns([(name, *_column(values)) for name, values in zip(names, columns, strict=True)]))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(name for name, _, _ in self._columns.lists())

    def to_dict(self) -> dict[str, list[Any]]:
        """The values of each column, by its name."""
        return {name: values for name, _, values in self._columns.lists()}

    def to_rows(self) -> list[dict[str, Any]]:
        """The rows, each by the names of the columns."""
        columns = self.to_dict()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas, which has to be installed, as has pyarrow (extra `pandas` of the wheel)."""
        import pyarrow

        return pyarrow.table(self).to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """As a data frame of polars, which has to be installed (extra `polars` of the wheel)."""
        import polars

        return polars.DataFrame(self)

    def __arrow_c_schema__(self) -> object:
        return self._columns.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._columns.__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._columns.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_rows())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self._columns.lists() == other._columns.lists()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        return Table, (self._columns,)

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.names)}>"

    def _repr_html_(self) -> str:
        columns = self.to_dict()
        return _html.table("", list(columns), list(zip(*columns.values(), strict=True)))


def _column(values: Sequence[Any]) -> tuple[str, list[Any]]:
    """The kind of a column, and its values in the form of that kind."""
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, int) and value >= 0 for value in there):
        return "integer", [None if value is None else int(value) for value in values]
    if there and all(isinstance(value, (int, float)) for value in there):
        return "number", list(values)
    return "text", [None if value is None else _html.text(value) for value in values]
