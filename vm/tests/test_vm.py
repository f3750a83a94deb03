# SPDX-License-Identifier: GPL-2.0-only
"""Tests that need no guest: `python3 -m unittest discover -s vm/tests`."""

import struct
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cw_vm import acpi, devicetree, domains, elf, guest, hardware, packages, sources, x86
from cw_vm.errors import CannotBuild
from cw_vm.initramfs import Archive
from cw_vm.machine import Cpu, Machine


def machine(nodes: int, llcs: int, cores: int, threads: int) -> Machine:
    """What `coreward topology 2n4l8c2t` and the like describe: all first threads come first."""
    count = nodes * llcs * cores
    cpus = tuple(
        Cpu(core, None, core // cores, core // cores // llcs, core // cores // llcs, 1024)
        for _ in range(threads)
        for core in range(count)
    )
    distances = tuple(tuple(10 if a == b else 20 for b in range(nodes)) for a in range(nodes))
    return Machine("test", "x86", cpus, distances, 30)


def change(described: Machine, number: int, **fields: int) -> Machine:
    """A machine with one CPU elsewhere."""
    cpus = list(described.cpus)
    cpus[number] = replace(cpus[number], **fields)
    return replace(described, cpus=tuple(cpus))


class Layouts(unittest.TestCase):
    """Machines as QEMU's levels."""

    def test_odd_counts_have_gaps_in_their_apic_ids(self) -> None:
        # threads in 1 bit, 3 cores in 2, 2 dies in 1, sockets above
        shape = x86.layout(machine(2, 2, 3, 2))
        self.assertEqual((shape.sockets, shape.dies, shape.cores, shape.threads), (2, 2, 3, 2))
        self.assertEqual(shape.apic_ids[:6], (0, 2, 4, 8, 10, 12))
        self.assertEqual(shape.apic_ids[12:15], (1, 3, 5))
        self.assertEqual(shape.apic_ids[6], 16)
        self.assertEqual(shape.order[:4], (0, 12, 1, 13))
        self.assertEqual(shape.node_of_die, (0, 0, 1, 1))

    def test_cpu_0_boots(self) -> None:
        # CPU 0 is in the second LLC
        cpus = tuple(Cpu(core, None, llc, 0, 0, 1024) for core, llc in ((2, 1), (0, 0), (1, 0), (3, 1)))
        shape = x86.layout(replace(machine(1, 2, 2, 1), cpus=cpus))
        self.assertEqual(shape.apic_ids, (0, 2, 3, 1))

    def test_what_qemu_cannot_express_is_refused_by_name(self) -> None:
        plain = machine(1, 2, 2, 1)
        for described, words in (
            (change(plain, 3, llc=0, core=3), "1 and 3 cores"),
            (change(plain, 3, capacity=512), "different capacities"),
            (change(plain, 3, core=2), "1 and 2 cores"),
            (machine(4, 4, 16, 2), "APIC ids up to"),
        ):
            with self.assertRaisesRegex(CannotBuild, words):
                x86.layout(described)

    def test_memory_is_shared_by_the_nodes(self) -> None:
        self.assertEqual(hardware.memory_mib(machine(3, 1, 1, 1), 1000), [334, 333, 333])
        with self.assertRaises(CannotBuild):
            hardware.memory_mib(machine(4, 1, 1, 1), 100)


class Tables(unittest.TestCase):
    """What the guest is told of its CPUs."""

    def test_madt(self) -> None:
        table = acpi.madt([(0, 0), (2, 4), (1, 1)])
        self.assertEqual(sum(table) % 256, 0)
        self.assertEqual(struct.unpack_from("<4sI", table), (b"APIC", len(table)))
        self.assertEqual(
            [tuple(table[44 + 8 * i : 48 + 8 * i]) for i in range(3)],
            [(0, 8, 0, 0), (0, 8, 2, 4), (0, 8, 1, 1)],
        )

    def test_device_tree(self) -> None:
        juno = change(change(machine(1, 2, 2, 1), 0, capacity=446), 1, capacity=446)
        text = devicetree.cpus_node(juno)
        self.assertEqual(text.count("capacity-dmips-mhz = <446>;"), 2)
        self.assertEqual(text.count("cluster1 {"), 1)
        self.assertNotIn("numa-node-id", text)
        self.assertIn("numa-node-id = <1>;", devicetree.cpus_node(machine(2, 1, 1, 1)))

    def test_a_file_system_through_cpio(self) -> None:
        archive = Archive()
        archive.merge_usr()
        archive.data("/bin/sh", b"x" * 5, executable=True)
        archive.data("/bin/sh", b"later")
        data = archive.bytes()
        names, offset = {}, 0
        while data[offset : offset + 6] == b"070701":
            fields = [int(data[offset + 6 + 8 * i : offset + 14 + 8 * i], 16) for i in range(13)]
            start = offset + 110
            name = data[start : start + fields[11] - 1].decode()
            body = (start + fields[11] + 3) // 4 * 4
            names[name] = (fields[1], data[body : body + fields[6]])
            offset = (body + fields[6] + 3) // 4 * 4
        self.assertEqual(names["bin"], (0o120777, b"usr/bin"))
        self.assertEqual(names["usr/bin/sh"], (0o100755, b"xxxxx"))
        self.assertEqual(names["usr"][0], 0o40755)
        self.assertIn("TRAILER!!!", names)


class Packages(unittest.TestCase):
    """Where packages come from, and which."""

    def test_sources_of_both_styles(self) -> None:
        text = "Types: deb deb-src\nURIs: http://m/debian/\nSuites: a b\nSigned-By: /k\n\n# no\nEnabled: no\nTypes: deb\nURIs: http://x\nSuites: c\n"
        found = list(sources.parse_deb822(text))
        self.assertEqual(found, [sources.Source("http://m/debian", suite, "/k") for suite in ("a", "b")])
        text = "# deb http://x y main\ndeb [arch=amd64 signed-by=/k] http://m/debian a main\ndeb-src http://m a main\n"
        self.assertEqual(list(sources.parse_one_line(text)), [sources.Source("http://m/debian", "a", "/k")])

    def test_the_newest_of_a_series(self) -> None:
        names = [
            "linux-image-6.12.9+deb13-amd64",
            "linux-image-6.12.107+deb13-amd64",
            "linux-image-6.12.107+deb13-amd64-unsigned",
            "linux-image-6.12.200+deb13-rt-amd64",
            "linux-image-6.12.200+deb13-cloud-amd64",
            "linux-image-6.120.1+deb13-amd64",
            "linux-image-6.12.300+deb13-arm64",
        ]
        self.assertEqual(packages._newest(names, "6.12", "amd64"), "6.12.107+deb13-amd64")
        self.assertEqual(packages._newest(names, "6.1", "amd64"), "")
        self.assertEqual(packages._newest(names, "6.12.9", "amd64"), "6.12.9+deb13-amd64")


class Programs(unittest.TestCase):
    """Which programs a command names."""

    def test_words_of_a_command(self) -> None:
        self.assertEqual(guest._words("a -b 'c d';e|f >g"), ["a", "-b", "c", "d", ";", "e", "|", "f", ">", "g"])
        self.assertEqual(guest._words("don't"), ["don't"])

    def test_no_file_is_too_strange(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "p"
            path.write_bytes(b"#!/bin/sh\n")
            self.assertIsNone(elf.read(path))
            for size in range(6, 80, 7):
                path.write_bytes((b"\x7fELF\x02\x01" + b"\xff" * 80)[:size])
                with self.assertRaises(CannotBuild):
                    elf.read(path)
        own = elf.read(Path(sys.executable).resolve())
        self.assertIn(own.machine, elf.MACHINES.values())


class Domains(unittest.TestCase):
    """The comparison of sched domains."""

    TEXT = (
        "cpu0/domain0/name:MC\ncpu0/domain0/flags:SD_A SD_B \ncpu0/domain0/level:1\n"
        "cpu0 0 0\ndomain0 MC 0f\ncpu1\ndomain0 00,f0\ncpu/cpu1/topology/core_cpus_list:1\nnode/node0/distance:10 20\n"
    )

    def test_facts(self) -> None:
        facts = domains.of_guest(self.TEXT)
        self.assertEqual(facts["cpu0/domain0/span"], "0f")
        self.assertEqual(facts["cpu1/domain0/span"], "00,f0")
        self.assertEqual(facts["cpu1/core_cpus_list"], "1")
        self.assertEqual(len(facts), 7)

    def test_every_change_is_a_difference(self) -> None:
        facts = domains.of_guest(self.TEXT)
        self.assertEqual(domains.differences(facts, dict(facts)), [])
        controls = domains.controls(facts)
        self.assertGreaterEqual(len(controls), 4)
        for what, changed in controls:
            self.assertEqual(len(domains.differences(facts, changed)), 1, what)

    def test_lists_of_cpus(self) -> None:
        self.assertEqual(domains._cpu_list([0, 1, 2, 8, 10, 11]), "0-2,8,10-11")


if __name__ == "__main__":
    unittest.main()
