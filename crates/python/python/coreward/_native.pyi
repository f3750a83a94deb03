"""The native part of the package."""

import os
from collections.abc import Callable, Sequence
from typing import Any, final

from typing_extensions import Self

__all__ = ["Columns", "Error", "Files", "Page", "__version__", "call", "read", "shown"]

__version__: str

class Error(Exception):
    """What coreward refuses, or cannot do. The text is the message of the command line."""

def call(
    arguments: Sequence[str | os.PathLike[str]],
    wants_rows: bool,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[bytes, list[str], str | None, Columns | None]:
    """Carries out a command of coreward, given by its words without the program's name.

    Returns what it printed, its remarks, the requirement that the result does not meet, and, if they are wanted, the rows
    that `--output` would have written. Other threads of Python run meanwhile, and Ctrl-C stops it. `progress` is called by
    this thread with the number of runs (of a matrix, cells) that are done, and of all, and what it raises stops it, too.

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

@final
class Files:
    """Files that are written as the commands write theirs: as a whole, and none of them an input or another one."""

    def __new__(cls, inputs: Sequence[str | os.PathLike[str]]) -> Self: ...
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

@final
class Columns:
    """Columns of equal length, in the layout of Apache Arrow."""

    def __new__(cls, columns: Sequence[tuple[str, str, Sequence[Any]]]) -> Self:
        """Columns by name, kind (`text`, `integer` or `number`) and values, of which None is a missing one."""

    def lists(self) -> list[tuple[str, str, list[Any]]]:
        """The columns in the form that they are made of."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class Page:
    """A report as a page that needs no other file, of the same parts as those of the commands. All text is escaped."""

    def __new__(cls, title: str) -> Self: ...
    def heading(self, text: str) -> None: ...
    def text(self, text: str) -> None: ...
    def names(self, rows: Sequence[tuple[str, str]]) -> None:
        """Names, and what they stand for."""

    def table(self, head: Sequence[str], rows: Sequence[Sequence[tuple[str, str]]]) -> None:
        """Cells are a text and its tone: `plain` (a figure), `text`, `name` (which is not broken), `good` or `bad`."""

    def changes(
        self, title: str, legend: str, changes: Sequence[tuple[str, float, tuple[float, float] | None, str]]
    ) -> None:
        """A drawing of changes: a name, a size in %, its interval, and `better`, `worse` or `not_shown`."""

    def html(self, html: str) -> None:
        """What is not escaped."""

    def look(self, arguments: Sequence[str]) -> None:
        """The first run of each side of a comparison, given by the words of its command, drawn.

        Raises:
            Error: what the command would have said.
        """

    def data(self, json: str) -> None:
        """The figures behind the page."""

    def finish(self) -> str:
        """The page."""
