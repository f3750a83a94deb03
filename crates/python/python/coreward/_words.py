# SPDX-License-Identifier: GPL-2.0-only
"""Commands as words of the command line, and what they answer."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from . import _native


class Remark(UserWarning):
    """What coreward assumed, or what is not as it was asked for: a note of the command line."""


class Answer(NamedTuple):
    """What a command answered."""

    words: tuple[str, ...]
    json: str
    remarks: tuple[str, ...]
    unmet: str | None
    rows: _native.Columns | None


def text(value: object) -> str:
    """A value as the command line takes it: numbers without an exponent."""
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return str(value)


def assignments(values: Mapping[str, object]) -> list[str]:
    """Values by name in the form NAME=VALUE."""
    return [f"{name}={text(value)}" for name, value in values.items()]


def several(values: object) -> list[Any]:
    """One value, or any number of them, as a list."""
    if values is None:
        return []
    if isinstance(values, (str, os.PathLike)) or not isinstance(values, Iterable):
        return [values]
    return list(values)


def options_as_words(options: Mapping[str, object]) -> list[str]:
    """Options as words: one is left out if it is None or False, stands alone if it is True, and is repeated for each element
    of a list."""
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, list) else [value]:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words.append(f"{option}={text(one)}")
    return words


#: Called with the number of runs (of a matrix, cells) that are done, and of all that are to be made; there may be more later.
Progress: TypeAlias = "Callable[[int, int], object]"


def answer(
    command: str,
    options: Mapping[str, object],
    *arguments: object,
    rows: bool = False,
    progress: Progress | None = None,
) -> Answer:
    """Carries out a command, of which remarks become warnings of the code that called the package.

    `rows` asks for the table of runs, too.
    """
    words = [command, *options_as_words(options)]
    if arguments:
        words.append("--")
        words.extend(text(argument) for argument in arguments)
    output, remarks, unmet, columns = _native.call(words, rows, progress)
    for remark in remarks:
        warnings.warn(remark, Remark, stacklevel=_outside())
    return Answer(tuple(words), output.decode(), tuple(remarks), unmet, columns)


def _outside() -> int:
    """The level of the first frame outside this package, seen from the caller."""
    import sys

    here = os.path.dirname(__file__)
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == here:
        level, frame = level + 1, frame.f_back
    return level
