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

def shown(text: str) -> str:
    """Text from a file, with what a terminal could take for a command escaped, but for newlines and tabs."""

def read(path: str | os.PathLike[str], max_kib: int) -> str:
    """A text file of at most so many KiB, and no pipe or device.

    Raises:
        Error: it cannot be read.
    """

class Files:
    """Files that are written as the commands write theirs: as a whole, and none of them an input or another one."""

    def __init__(self, inputs: Sequence[str | os.PathLike[str]]) -> None: ...
    def open(self, option: str, target: str | os.PathLike[str]) -> None:
        """Opens a file that an option names, so that one that cannot be written is found before any work is done.

        Raises:
            Error: it cannot be written, or is an input or another file.
        """

    def finish(self, texts: Sequence[str]) -> None:
        """Writes the files, in the order in which they were opened.

        Raises:
            Error: one cannot be written.
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
