# SPDX-License-Identifier: GPL-2.0-only
"""The directory in which packages and what was found out about the host are kept."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def directory() -> Path:
    """`$COREWARD_CACHE`, else `coreward` in the user's cache directory. Made if need be."""
    chosen = os.environ.get("COREWARD_CACHE")
    if not chosen:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = Path(base) / "coreward"
    path = Path(chosen).absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time in the block, over all that share the cache."""
    with open(directory() / f"{name}.lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
