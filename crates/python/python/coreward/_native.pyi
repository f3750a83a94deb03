"""The native part of the package."""

import os
from collections.abc import Sequence

__version__: str

class Error(Exception):
    """What coreward refuses, or cannot do. The text is the message of the command line."""

def call(arguments: Sequence[str | os.PathLike[str]]) -> tuple[bytes, list[str], str | None]:
    """Carries out a command of coreward, given by its words without the program's name.

    Returns what it printed, its remarks, and the requirement that the result does not meet. Other threads of Python run
    meanwhile, and Ctrl-C stops it.

    Raises:
        Error: what the command line would have said on standard error.
    """
