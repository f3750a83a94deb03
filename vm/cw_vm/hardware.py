# SPDX-License-Identifier: GPL-2.0-only
"""QEMU's arguments for a machine: its CPUs, its nodes with their memory, and their distances."""

from dataclasses import dataclass

from . import acpi, x86
from .errors import CannotBuild
from .machine import Machine

_BASE_MIB = 1024
_MIB_PER_CPU = 24
_MIB_PER_NODE_MIN = 128


@dataclass(frozen=True)
class Hardware:
    """What QEMU is to be, and what the guest must be told of it."""

    arguments: list[str]
    madt: bytes | None = None


def memory_mib(machine: Machine, asked: int | None) -> list[int]:
    """Memory of each node in MiB, as evenly as it goes."""
    total = asked or _BASE_MIB + _MIB_PER_CPU * len(machine.cpus)
    each = total // machine.nodes
    if each < _MIB_PER_NODE_MIN:
        raise CannotBuild(f"--memory is {total} MiB for {machine.nodes} nodes, allowed are {_MIB_PER_NODE_MIN} MiB a node or more")
    return [each + (total % machine.nodes if node == 0 else 0) for node in range(machine.nodes)]


def _nodes(machine: Machine, memory: list[int]) -> list[str]:
    """The nodes' memory and distances; none of it if there is but one node."""
    arguments = ["-m", f"{sum(memory)}M"]
    if machine.nodes == 1:
        return arguments
    for node, size in enumerate(memory):
        arguments += ["-object", f"memory-backend-ram,id=node{node},size={size}M"]
        arguments += ["-numa", f"node,nodeid={node},memdev=node{node}"]
    for source, row in enumerate(machine.distances):
        for target, distance in enumerate(row):
            arguments += ["-numa", f"dist,src={source},dst={target},val={distance}"]
    return arguments


def for_x86(machine: Machine, memory: int | None) -> Hardware:
    """A PC. It gets a table of CPUs of its own if QEMU would number them otherwise."""
    shape = x86.layout(machine)
    arguments = x86.qemu_arguments(machine, shape) + _nodes(machine, memory_mib(machine, memory))
    if machine.nodes > 1:
        arguments += x86.node_arguments(shape)
    in_qemus_order = list(shape.order) == sorted(shape.order)
    uid = {number: index for index, number in enumerate(shape.order)}
    cpus = [(uid[number], apic_id) for number, apic_id in enumerate(shape.apic_ids)]
    return Hardware(arguments, None if in_qemus_order else acpi.madt(cpus))
