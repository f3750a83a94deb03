# SPDX-License-Identifier: GPL-2.0-only
"""How a machine becomes QEMU's sockets, dies, modules, cores and threads on x86-64.

An LLC becomes a die, and a cluster becomes a module: the L3 is shared by a die's cores, the L2 by
a module's. The widths of QEMU's levels are the same all over the machine, so its parts have to
be alike. QEMU numbers CPUs thread by thread; where the machine does not, the guest gets a table
of its CPUs (MADT) in the machine's order (`acpi.py`).
"""

from dataclasses import dataclass

from .errors import CannotBuild
from .machine import Cpu, Machine

# One APIC id of 8 bits is for all CPUs.
_APIC_IDS = 255


@dataclass(frozen=True)
class Layout:
    """A machine as QEMU sees it."""

    sockets: int
    dies: int
    modules: int
    cores: int
    threads: int
    order: tuple[int, ...]
    """CPUs of the machine in QEMU's order."""
    apic_ids: tuple[int, ...]
    """APIC id by CPU of the machine."""
    node_of_die: tuple[int, ...]
    """The node of each die, socket by socket."""
    has_modules: bool


# What a CPU is in, from the widest to the narrowest.
_LEVELS = ("package", "llc", "cluster", "core")


def _keys(cpu: Cpu) -> tuple[int, ...]:
    """Where a CPU is, level by level; without clusters, an LLC counts as one."""
    cluster = -1 if cpu.cluster is None else cpu.cluster
    return (cpu.package, cpu.llc, cluster, cpu.core)


def _order(machine: Machine) -> list[int]:
    """CPUs so that each part of the machine is together, parts by their first CPU: so CPU 0, from
    which the guest boots, is the first."""
    first: dict[tuple[int, ...], int] = {}
    for number, cpu in enumerate(machine.cpus):
        for depth in range(1, 5):
            first.setdefault(_keys(cpu)[:depth], number)
    place = lambda number: [first[_keys(machine.cpus[number])[:depth]] for depth in range(1, 5)] + [number]
    return sorted(range(len(machine.cpus)), key=place)


def _widths(machine: Machine) -> list[int]:
    """How many parts of the next level each level has; the last is threads a core."""
    prefixes = [sorted({_keys(cpu)[:depth] for cpu in machine.cpus}) for depth in range(1, 5)]
    below = [*prefixes[1:], sorted((*_keys(cpu), number) for number, cpu in enumerate(machine.cpus))]
    names = ("LLCs in a package", "clusters in an LLC", "cores in a cluster or LLC", "threads in a core")
    widths = [len(prefixes[0])]
    for parents, children, name in zip(prefixes, below, names):
        counts = {sum(child[: len(parent)] == parent for child in children) for parent in parents}
        if len(counts) > 1:
            low, high = min(counts), max(counts)
            raise CannotBuild(
                f"{machine.name} has {low} and {high} {name}: QEMU's x86 machine has the same everywhere"
            )
        widths.append(counts.pop())
    return widths


def _apic_id(path: list[int], widths: list[int]) -> int:
    """The APIC id of a CPU from its place on each level: each has a field of whole bits."""
    apic_id = 0
    for place, width in zip(path, widths):
        apic_id = apic_id << (width - 1).bit_length() | place
    return apic_id


def _check(machine: Machine) -> None:
    if any(cpu.capacity != 1024 for cpu in machine.cpus):
        raise CannotBuild(
            f"{machine.name} has CPUs of different capacities: an x86 guest cannot, use --arch arm64"
        )
    clusters = {cpu.cluster is None for cpu in machine.cpus}
    if len(clusters) > 1:
        raise CannotBuild(
            f"{machine.name} has clusters in some LLCs only: QEMU's x86 machine has the same everywhere"
        )


def layout(machine: Machine) -> Layout:
    """The layout of a machine, or why there is none."""
    _check(machine)
    widths = _widths(machine)
    order = _order(machine)
    apic_ids = [0] * len(order)
    for index, number in enumerate(order):
        path: list[int] = []
        rest = index
        for width in reversed(widths):
            rest, place = divmod(rest, width)
            path.insert(0, place)
        apic_ids[number] = _apic_id(path, widths)
    if max(apic_ids) >= _APIC_IDS:
        raise CannotBuild(
            f"{machine.name} needs APIC ids up to {max(apic_ids)}: the guest has those below {_APIC_IDS}"
        )
    sockets, dies, modules, cores, threads = widths
    per_die = modules * cores * threads
    nodes = tuple(machine.cpus[order[die * per_die]].node for die in range(sockets * dies))
    has_modules = machine.cpus[0].cluster is not None
    return Layout(sockets, dies, modules, cores, threads, tuple(order), tuple(apic_ids), nodes, has_modules)


def qemu_arguments(machine: Machine, shape: Layout) -> list[str]:
    """QEMU's `-machine`, `-cpu` and `-smp`. Of QEMU 10's models, only Intel's report the caches
    that `smp-cache` asks for, and older ones than this abort if there are dies. TCG lacks some of the
    model's features (AVX-512), so the model number is that of a Haswell, which TCG supports: programs
    that choose code by the number then choose code that runs."""
    l2 = "module" if shape.has_modules else "core"
    caches = f"smp-cache.0.cache=l3,smp-cache.0.topology=die,smp-cache.1.cache=l2,smp-cache.1.topology={l2}"
    smp = (
        f"{len(machine.cpus)},sockets={shape.sockets},dies={shape.dies},modules={shape.modules},"
        f"cores={shape.cores},threads={shape.threads}"
    )
    return ["-machine", f"q35,{caches}", "-cpu", "SapphireRapids,model=60,stepping=3", "-smp", smp]


def node_arguments(shape: Layout) -> list[str]:
    """Which node each die is in."""
    arguments = []
    for index, node in enumerate(shape.node_of_die):
        socket, die = divmod(index, shape.dies)
        place = f"socket-id={socket},die-id={die}" if shape.dies > 1 else f"socket-id={socket}"
        arguments += ["-numa", f"cpu,node-id={node},{place}"]
    return arguments
