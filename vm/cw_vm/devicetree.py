# SPDX-License-Identifier: GPL-2.0-only
"""The device tree of an arm64 guest: QEMU's own, with the machine's CPUs in it.

On arm64, everything that Linux knows about its CPUs comes from the device tree: which are in a core, cluster
or socket (`cpu-map`), which share a cache (`next-level-cache`), their capacities
(`capacity-dmips-mhz`, of which the largest becomes 1024) and nodes. Every machine can therefore be
expressed. Bindings: devicetree specification 0.4, chapter 3, and the kernel's
Documentation/devicetree/bindings/cpu/.
"""

import re
import subprocess
from pathlib import Path

from .errors import CannotBuild
from .machine import Cpu, Machine

# QEMU's interrupt controller GICv3 has 16 CPUs in what a CPU's MPIDR calls affinity level 0.
_AFFINITY_0 = 16
CPU_MODEL = "cortex-a76"


def _mpidr(number: int) -> int:
    return number // _AFFINITY_0 << 8 | number % _AFFINITY_0


def _block(name: str, lines: list[str], label: str = "") -> list[str]:
    """A node, its contents indented."""
    return [f"{label}{name} {{", *("\t" + line for line in lines), "};"]


def _cpu(number: int, cpu: Cpu, nodes: int) -> list[str]:
    cache = f"cluster_cache{cpu.cluster}" if cpu.cluster is not None else f"llc{cpu.llc}"
    lines = [
        'device_type = "cpu";',
        f'compatible = "arm,{CPU_MODEL}";',
        f"reg = <{_mpidr(number):#x}>;",
        'enable-method = "psci";',
        f"capacity-dmips-mhz = <{cpu.capacity}>;",
        f"next-level-cache = <&{cache}>;",
    ]
    if nodes > 1:
        lines.append(f"numa-node-id = <{cpu.node}>;")
    return _block(f"cpu@{_mpidr(number):x}", lines, f"cpu{number}: ")


def _cache(label: str, level: int, next_label: str | None) -> list[str]:
    lines = ['compatible = "cache";', f"cache-level = <{level}>;", "cache-unified;"]
    if next_label:
        lines.append(f"next-level-cache = <&{next_label}>;")
    return _block(label.replace("_", "-"), lines, f"{label}: ")


def _caches(machine: Machine) -> list[str]:
    """The last-level caches, and a cache for each cluster."""
    lines: list[str] = []
    for llc in sorted({cpu.llc for cpu in machine.cpus}):
        clustered = any(cpu.llc == llc and cpu.cluster is not None for cpu in machine.cpus)
        lines += _cache(f"llc{llc}", 3 if clustered else 2, None)
    for cluster, llc in sorted({(cpu.cluster, cpu.llc) for cpu in machine.cpus if cpu.cluster is not None}):
        lines += _cache(f"cluster_cache{cluster}", 2, f"llc{llc}")
    return lines


def _core(cpus: list[int]) -> list[str]:
    if len(cpus) == 1:
        return [f"cpu = <&cpu{cpus[0]}>;"]
    return [
        line for index, cpu in enumerate(cpus) for line in _block(f"thread{index}", [f"cpu = <&cpu{cpu}>;"])
    ]


def _map(machine: Machine) -> list[str]:
    """Sockets of clusters of cores. The kernel wants every core in a cluster: a core that the
    machine has in none is in one as large as its LLC, which counts as none."""
    sockets: dict[int, dict[tuple[int, int | None], dict[int, list[int]]]] = {}
    for number, cpu in enumerate(machine.cpus):
        clusters = sockets.setdefault(cpu.package, {})
        clusters.setdefault((cpu.llc, cpu.cluster), {}).setdefault(cpu.core, []).append(number)
    lines: list[str] = []
    for socket, clusters in enumerate(sockets.values()):
        inner: list[str] = []
        for cluster, cores in enumerate(clusters.values()):
            bodies = [_block(f"core{core}", _core(cpus)) for core, cpus in enumerate(cores.values())]
            inner += _block(f"cluster{cluster}", [line for body in bodies for line in body])
        lines += _block(f"socket{socket}", inner)
    return _block("cpu-map", lines)


def cpus_node(machine: Machine) -> str:
    """The node `/cpus` of a machine. Linux numbers the CPUs in the order in which they are here."""
    lines = ["#address-cells = <1>;", "#size-cells = <0>;"]
    for number, cpu in enumerate(machine.cpus):
        lines += _cpu(number, cpu, machine.nodes)
    lines += _caches(machine) + _map(machine)
    return "\n".join("\t" + line for line in _block("cpus", lines))


def _dtc(*arguments: str, given: bytes) -> bytes:
    try:
        done = subprocess.run(["dtc", "-q", *arguments], input=given, capture_output=True, check=False)
    except OSError as error:
        raise CannotBuild("there is no dtc on this machine: run 'scripts/setup.sh vm'") from error
    if done.returncode:
        raise CannotBuild(f"dtc refuses the device tree: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def with_cpus(tree: bytes, machine: Machine) -> bytes:
    """A device tree blob with the machine's CPUs instead of its own."""
    source = _dtc("-I", "dtb", "-O", "dts", given=tree).decode()
    changed, count = re.subn(
        r"^\tcpus \{.*?^\t\};", lambda _: cpus_node(machine), source, flags=re.MULTILINE | re.DOTALL
    )
    if count != 1:
        raise CannotBuild("QEMU's device tree has no node /cpus")
    return _dtc("-I", "dts", "-O", "dtb", given=changed.encode())


def dump(program: str, arguments: list[str], where: Path) -> bytes:
    """The device tree that QEMU makes for these arguments."""
    dumped = where / "qemu.dtb"
    machine = arguments.index("-machine") + 1
    words = [*arguments[:machine], f"{arguments[machine]},dumpdtb={dumped}", *arguments[machine + 1 :]]
    command = [program, *words, "-nodefaults", "-display", "none"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode or not dumped.is_file():
        raise CannotBuild(f"QEMU makes no device tree: {done.stderr.strip()}")
    return dumped.read_bytes()
