# SPDX-License-Identifier: GPL-2.0-only
"""Searches for the settings of a policy that serve several workloads on several machines best (docs/tuning.md)::

    from coreward.tune import tune

    found = tune("study.toml")
    print(found)
    found.exports(1).live

Raises:
    ModuleNotFoundError: Optuna or SciPy is not installed (extra `tune` of the wheel).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Loads the libraries when something is used, so that `python -m coreward.tune` can say which one is missing."""
    if name.startswith("_"):
        raise AttributeError(name)
    from . import _api

    return getattr(_api, name)
