# SPDX-License-Identifier: GPL-2.0-only
"""QEMU's arguments for a machine: its CPUs, its nodes with their memory, and their distances."""

from dataclasses import dataclass
from pathlib import Path

from . import acpi, devicetree, x86
from .errors import CannotBuild
from .machine import Machine

_BASE_MIB = 1024
_MIB_PER_CPU = 24
_MIB_PER_NODE_MIN = 128


@dataclass(frozen=True)
class Hardware:
    """QEMU's configuration, and what the guest must be told about it."""

    arguments: list[str]
    madt: bytes | None = None


def memory_mib(machine: Machine, asked: int | None) -> list[int]:
    """Memory of each node in MiB, as evenly as it goes."""
    total = asked or _BASE_MIB + _MIB_PER_CPU * len(machine.cpus)
    each = total // machine.nodes
    if each < _MIB_PER_NODE_MIN:
        raise CannotBuild(
            f"--memory is {total} MiB for {machine.nodes} nodes, allowed are {_MIB_PER_NODE_MIN} or more for each"
        )
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


# CPUs that QEMU's arm64 machine may have.
_ARM64_CPUS = 512


def _check_arm64(machine: Machine) -> None:
    largest = max(cpu.capacity for cpu in machine.cpus)
    if largest != 1024:
        raise CannotBuild(
            f"{machine.name} has no CPU of more capacity than {largest}: in a guest the largest is 1024"
        )
    if len(machine.cpus) > _ARM64_CPUS:
        raise CannotBuild(
            f"{machine.name} has {len(machine.cpus)} CPUs: an arm64 guest has at most {_ARM64_CPUS}"
        )


def for_arm64(machine: Machine, memory: int | None, program: str, run: Path) -> Hardware:
    """QEMU's machine "virt". To QEMU, all CPUs are alike except for their nodes; Linux takes the rest
    from the device tree."""
    _check_arm64(machine)
    count = len(machine.cpus)
    arguments = [
        "-machine",
        "virt,gic-version=3",
        "-cpu",
        devicetree.CPU_MODEL,
        "-smp",
        f"{count},sockets=1,cores={count}",
    ]
    arguments += _nodes(machine, memory_mib(machine, memory))
    if machine.nodes > 1:
        for number, cpu in enumerate(machine.cpus):
            arguments += ["-numa", f"cpu,node-id={cpu.node},socket-id=0,cluster-id=0,core-id={number}"]
    tree = run / "machine.dtb"
    tree.write_bytes(devicetree.with_cpus(devicetree.dump(program, arguments, run), machine))
    return Hardware([*arguments, "-dtb", str(tree)])
