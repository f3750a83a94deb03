# SPDX-License-Identifier: GPL-2.0-only
"""What is simulated: plain data in the words of the command line, which can be pickled, compared and hashed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from ._words import answer, assignments, several, text


class _Named(Mapping[str, object]):
    """Values by name that do not change, so that what has them can be a key."""

    __slots__ = ("_items",)
    _items: Mapping[str, object]

    def __init__(self, values: Mapping[str, object]) -> None:
        object.__setattr__(self, "_items", MappingProxyType(dict(values)))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("it does not change")

    def __getitem__(self, name: str) -> object:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(dict(self._items))

    def __reduce__(self) -> tuple[object, ...]:
        return _Named, (dict(self._items),)


@dataclass(frozen=True)
class Machine:
    """A machine to simulate.

    Args:
        spec: a preset (see `machines()`), a path ending in .toml or .json, `"sysfs"` (this machine), `"sysfs:DIR"`,
            `"hwloc:FILE"`, or a shorthand like `"2n4l8c2t"`: nodes, LLCs per node, cores per LLC, threads per core.
        costs: costs that differ from the machine's, by name (see `topology()["costs"]`), in the unit that the name ends
            with; on all sides of a comparison.
    """

    spec: str
    costs: Mapping[str, object] = _Named({})

    if TYPE_CHECKING:
        # a path is one, too

        def __init__(self, spec: PathOf, costs: Mapping[str, object] = ...) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", os.fspath(self.spec))
        object.__setattr__(self, "costs", _Named(self.costs))

    @classmethod
    def of(cls, machine: Machine | str | os.PathLike[str]) -> Machine:
        """The machine itself, or the one that a text stands for."""
        return machine if isinstance(machine, Machine) else cls(machine)

    @classmethod
    def here(cls) -> Machine:
        """The machine that this runs on, as sysfs describes it, with typical costs (see `calibrate()`)."""
        return cls("sysfs")

    @classmethod
    def from_sysfs(cls, directory: str | os.PathLike[str]) -> Machine:
        """A machine of which /sys/devices/system was copied to a directory."""
        return cls(f"sysfs:{os.fspath(directory)}")

    @classmethod
    def from_hwloc(cls, file: str | os.PathLike[str]) -> Machine:
        """A machine as `lstopo` writes it in XML."""
        return cls(f"hwloc:{os.fspath(file)}")

    @classmethod
    def regular(cls, *, nodes: int = 1, llcs: int = 1, cores: int = 1, threads: int = 1) -> Machine:
        """A machine of equal parts: `llcs` per node, `cores` per LLC, `threads` per core."""
        return cls(f"{nodes}n{llcs}l{cores}c{threads}t")

    def with_costs(self, **costs: object) -> Machine:
        """The same machine with other costs."""
        return replace(self, costs={**self.costs, **costs})

    def topology(self, *, strict: bool = False) -> dict[str, Any]:
        """Its nodes, caches, cores, CPUs and costs, as `coreward topology --json` prints them, without `costs`.

        Raises:
            Error: there is no such machine, or, if `strict`, its description leaves something open.
        """
        return json.loads(answer("topology", {"strict": strict, "json": True}, self.spec).json)

    def __str__(self) -> str:
        return ",".join([self.spec, *assignments(self.costs)])


@dataclass(frozen=True)
class Workload:
    """A workload to simulate.

    Args:
        command: the command line of a benchmark, like `"hackbench -g 4 --pipe"`; of `rt-app FILE.json`; or the path of a
            recorded workload, which ends in .cww, .cww.toml or .cww.json (see `import_trace()`).
    """

    command: str

    if TYPE_CHECKING:
        # a path is one, too

        def __init__(self, command: PathOf) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "command", os.fspath(self.command))

    @classmethod
    def of(cls, workload: Workload | str | os.PathLike[str]) -> Workload:
        """The workload itself, or the one that a text stands for."""
        return workload if isinstance(workload, Workload) else cls(workload)

    def __str__(self) -> str:
        return self.command


@dataclass(frozen=True)
class Policy:
    """A policy: a kernel's, with changes.

    Args:
        profile: the kernel that it stands for, like `"linux-6.12"` or `"6.12"`; None is the machine's kernel, or
            linux-6.12. In a change, None is the baseline's.
        features: names of features that are switched on, or off if `NO_` stands before the name (see `features()`).
        tunables: values of tunables by name: whole numbers, or texts like `"2ms"`.
        costs: costs of the machine that come with the policy, by name.
        directory: a directory with changed headers and tables of the policy (`coreward policy new`).
    """

    profile: str | None = None
    features: tuple[str, ...] = ()
    tunables: Mapping[str, object] = _Named({})
    costs: Mapping[str, object] = _Named({})
    directory: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(several(self.features)))
        object.__setattr__(self, "tunables", _Named(self.tunables))
        object.__setattr__(self, "costs", _Named(self.costs))
        if self.directory is not None:
            object.__setattr__(self, "directory", os.fspath(self.directory))

    @classmethod
    def of(cls, policy: Policy | str | None) -> Policy:
        """The policy itself, or the one that a text stands for (see `parse()`); None is the machine's kernel."""
        if policy is None:
            return cls()
        return policy if isinstance(policy, Policy) else cls.parse(policy)

    @classmethod
    def parse(cls, changes: str) -> Policy:
        """A policy from a text like `"linux-7.3,NO_TTWU_QUEUE,base_slice_ns=2ms"`, as `coreward compare --with` takes it.

        Names are not looked up before they are used.
        """
        policy = cls()
        for change in (part.strip() for part in changes.split(",")):
            name, is_value, value = (part.strip() for part in change.partition("="))
            if not is_value:
                policy = policy._with_name(name)
            elif name == "policy":
                policy = replace(policy, directory=value)
            elif name in _costs():
                policy = replace(policy, costs={**policy.costs, name: value})
            else:
                policy = replace(policy, tunables={**policy.tunables, name: value})
        return policy

    def _with_name(self, name: str) -> Policy:
        if name.startswith("linux-"):
            return replace(self, profile=name)
        return replace(self, features=(*self.features, name))

    def with_features(self, *features: str) -> Policy:
        """The same policy with more features switched: on, or off with a leading `NO_`."""
        return replace(self, features=(*self.features, *features))

    def with_tunables(self, **tunables: object) -> Policy:
        """The same policy with other values of tunables."""
        return replace(self, tunables={**self.tunables, **tunables})

    @property
    def changes(self) -> str:
        """What it changes besides the profile, as `--with` and `--baseline-with` take it."""
        directory = [] if self.directory is None else [f"policy={self.directory}"]
        values = assignments(self.tunables) + assignments(self.costs)
        return ",".join([*directory, *self.features, *values])

    def __str__(self) -> str:
        profile = self.profile
        if profile is not None and not profile.startswith("linux-"):
            profile = f"linux-{profile}"
        return ",".join(part for part in (profile, self.changes) if part)


PathOf: TypeAlias = Union[str, os.PathLike[str]]
MachineOf: TypeAlias = Union[Machine, str, os.PathLike[str]]
WorkloadOf: TypeAlias = Union[Workload, str, os.PathLike[str]]
PolicyOf: TypeAlias = Union[Policy, str, None]


@cache
def _costs() -> frozenset[str]:
    """The names of all costs: every machine has each."""
    return frozenset(Machine("1c").topology()["costs"])


def changes_of(policies: object) -> list[str]:
    """Each policy of one or several as the change that it makes."""
    return [str(policy) if isinstance(policy, Policy) else text(policy) for policy in several(policies)]


def baseline_options(baseline: Policy | str | None) -> dict[str, object]:
    """The options of a comparison that stand for its baseline."""
    policy = Policy.of(baseline)
    return {"profile": policy.profile, "baseline_with": policy.changes or None}


def policy_options(policy: Policy | str | None, costs: Iterable[str]) -> dict[str, object]:
    """The options of a run that stand for its policy, and for costs of its machine."""
    own = Policy.of(policy)
    return {
        "profile": own.profile,
        "policy": own.directory,
        "sched_feat": list(own.features),
        "set": assignments(own.tunables),
        "cost": [*costs, *assignments(own.costs)],
    }
