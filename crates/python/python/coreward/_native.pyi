"""The native part of the package."""

import os
from collections.abc import Sequence
from typing import Any

__version__: str

class Error(Exception):
    """What coreward refuses, or cannot do. The text is the message of the command line."""

def call(
    arguments: Sequence[str | os.PathLike[str]], wants_rows: bool
) -> tuple[bytes, list[str], str | None, Columns | None]:
    """Carries out a command of coreward, given by its words without the program's name.

    Returns what it printed, its remarks, the requirement that the result does not meet, and, if they are wanted, the rows
    that `--output` would have written. Other threads of Python run meanwhile, and Ctrl-C stops it.

    Raises:
        Error: what the command line would have said on standard error.
    """

class Columns:
    """Columns of equal length, in the layout of Apache Arrow."""

    def __init__(self, columns: Sequence[tuple[str, str, Sequence[Any]]]) -> None:
        """Columns by name, kind (`text`, `integer` or `number`) and values, of which None is a missing one."""

    def lists(self) -> list[tuple[str, str, list[Any]]]:
        """The columns in the form that they are made of."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
