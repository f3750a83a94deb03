# SPDX-License-Identifier: GPL-2.0-only
"""The directory in which packages and findings about the host are kept."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def directory() -> Path:
    """`$COREWARD_CACHE`, else `coreward` in the user's cache directory. Made if need be."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(os.environ.get("COREWARD_CACHE") or Path(base) / "coreward").absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time in the block, over all that share the cache."""
    with open(directory() / f"{name}.lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
