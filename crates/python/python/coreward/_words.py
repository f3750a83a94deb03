# SPDX-License-Identifier: GPL-2.0-only
"""Commands as words of the command line, and what they answer."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

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


def several(values: object) -> list:
    """One value, or any number of them, as a list."""
    if values is None:
        return []
    if isinstance(values, (str, os.PathLike)) or not isinstance(values, Iterable):
        return [values]
    return list(values)


def answer(command: str, options: Mapping[str, object], *arguments: object, rows: bool = False) -> Answer:
    """Carries out a command, of which remarks become warnings of the code that called the package.

    An option is left out if it is None or False, stands alone if it is True, and is repeated for each element of a list.
    `rows` asks for the table of runs, too.
    """
    words = [command]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, list) else [value]:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words.append(f"{option}={text(one)}")
    if arguments:
        words.append("--")
        words.extend(text(argument) for argument in arguments)
    output, remarks, unmet, columns = _native.call(words, rows)
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
