# SPDX-License-Identifier: GPL-2.0-only
"""Tests that need no guest: `python3 -m unittest discover -s vm/tests`."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cw_vm import accel, acpi, benchmarks, devicetree, domains, effects, elf, faults, guest, hardware
from cw_vm import loading, migrations, observe, packages, qemu, rounds, schedulers, sources, stall, x86
from cw_vm.errors import CannotBuild, GuestHung
from cw_vm.initramfs import Archive
from cw_vm.machine import Cpu, Machine
from cw_vm.schedulers import Scheduler


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

    def test_libraries_of_packages_come_first(self) -> None:
        """A package's program gets the libraries of the packages, also where this machine has them."""
        with tempfile.TemporaryDirectory() as scratch:
            arch = packages.host_arch()
            program = Path("/bin/sh").resolve()
            found = elf.read(program)
            assert found is not None
            here = elf.Libraries(arch, [Path("/")]).find(found.needed[0], found, program)
            there = Path(scratch) / "usr/lib" / found.needed[0]
            there.parent.mkdir(parents=True)
            shutil.copy(here, there)
            both = elf.Libraries(arch, [Path(scratch), Path("/")])
            self.assertEqual(both.find(found.needed[0], found, program), there)
            # nor does one system's loader fit the C library of another, in whichever directory it is
            loader = there.parent / Path(str(found.interpreter)).name
            shutil.copy(elf.Libraries(arch, [Path("/")]).interpreter(found, program), loader)
            self.assertEqual(both.interpreter(found, program), loader)


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


class Schedulers(unittest.TestCase):
    """What schedulers did in guests."""

    BPFLAND = Scheduler("scx_bpfland", "scx_bpfland", ())
    NAME = "bpfland_1.1.4_x86_64_unknown_linux_gnu"
    FILES = {
        "states": f"enabled 1 {NAME}\nenabled 1 {NAME}\ndisabled 1 \n",
        "kernel": f'[    5.6] sched_ext: BPF scheduler "{NAME}" enabled\n'
        f'[   16.1] sched_ext: BPF scheduler "{NAME}" disabled (unregistered from user space)\n',
        "loader": "EXIT: unregistered from user space\n",
        "left": "",
        "statuses": "0\n0\n",
        "shares": "1000 1000 5900 2600\n",
        "turns": "10 1010\n",
        "toggled": "60\n",
        "scattered": "500\n",
        "tasks": "10000 3\n",
        "kworkers": "/proc/9 0 1\n/proc/9 900000000 2\n",
        "stopped": "coreward: `coreward live` does not answer: read timed out\n1\n",
        "full": "dd: error writing '/run/full': No space left on device\n",
        "asked": "1\n0\n",
        "metrics": "renewed\n",
        "frozen": "130\n",
        "partitions": "130\n",
        "execs": "1500\n",
        "stepped": "300\n",
        "paused": "200\n",
        "waits": "T: 0 (   78) P:90 I:100000 C:    60 Min:     31 Act:  310 Avg:  420 Max: 2004211\n",
        "second": "coreward: the sched_ext scheduler coreward_x runs already: end it first\n1\n",
        "rival": "coreward: another sched_ext scheduler, coreward_x, was loaded meanwhile: end it first\n1\n",
    }

    def test_shares_and_weights(self) -> None:
        # 4900 to 1600 is 3.0625; 1024 to 335 is 3.0567
        self.assertEqual(faults.verdict("weights", self.BPFLAND, self.FILES, False), [])
        self.assertIn("3.062", faults.verdict("fairness", self.BPFLAND, self.FILES, False)[0])
        for shares, fair in (("0 0 1049 1000", True), ("0 0 1051 1000", False), ("0 0 949 1000", False)):
            wrong = faults.verdict("fairness", self.BPFLAND, {**self.FILES, "shares": shares}, False)
            self.assertEqual(not wrong, fair, shares)

    def test_turns(self) -> None:
        for turns, fair in (("100 1000", True), ("100 200", False)):
            files = {**self.FILES, "shares": "0 0 3600000000 3600000000", "turns": turns}
            self.assertEqual(not faults.verdict("fairness", self.BPFLAND, files, False), fair, turns)

    def test_waits_of_workers(self) -> None:
        # what a worker had waited before it was first seen is not known
        for samples, right in (
            ("/proc/8 9000000000 2\n/proc/9 0 1\n/proc/9 3000000000 2\n", True),
            ("/proc/9 0 1\n/proc/9 3000000001 2\n", False),
            ("/proc/9 0 1\n/proc/9 6000000000 3\n", True),
            ("/proc/9 0 1\n/proc/9 0 1\n/proc/9 4000000000 2\n", False),
        ):
            files = {**self.FILES, "kworkers": samples}
            self.assertEqual(not faults.verdict("tasks", self.BPFLAND, files, False), right, samples)

    def test_every_change_is_condemned(self) -> None:
        killed = f"enabled 1 {self.NAME}\ndisabled 1 \ndisabled 1 \n"
        own = {
            "kill": {**self.FILES, "states": killed},
            "oom": {
                **self.FILES,
                "states": killed,
                "kernel": "[    9.1] Out of memory: Killed process 77 (scx_bpfland)\n",
            },
            "run-full": {**self.FILES, "loader": "coreward: --metrics: cannot write it; it will be tried again\n"},
            "fairness": {**self.FILES, "shares": "0 0 1000 1000"},
        }
        for name in faults.FAULTS:
            files = own.get(name, self.FILES)
            self.assertEqual(faults.verdict(name, self.BPFLAND, files, False), [], name)
            controls = faults.controls(name, files)
            self.assertGreaterEqual(len(controls), 6)
            for what, changed in controls:
                self.assertNotEqual(faults.verdict(name, self.BPFLAND, changed, False), [], f"{name}: {what}")

    def test_a_shorter_load_is_to_do_less(self) -> None:
        files = {**self.FILES, "frozen": "10"}
        wrong = [faults.verdict("freeze", self.BPFLAND, files, False, seconds) for seconds in (20, 22, None)]
        self.assertEqual(wrong[0], [])
        self.assertEqual(wrong[1], ["10 times the load was frozen, not 11 at least"])
        self.assertEqual(wrong[2], ["10 times the load was frozen, not 30 at least"])
        # how many tasks there are does not depend on the time
        self.assertIn("storm 1000 5", faults.script(faults.FAULTS["fork-storm"], self.BPFLAND, False, 5))

    def test_counts_of_tasks_that_have_ended(self) -> None:
        coreward = Scheduler(schedulers.COREWARD, "coreward-live live", ())
        files = {name: text.replace("bpfland", "coreward") for name, text in self.FILES.items()}
        for samples, right in (
            ([[1, 0], [0, 3]], True),
            ([[1, 0], [1, 0]], True),
            ([[2, 1], [3, 1]], False),
            ([[0, (1 << 32) - 1], [0, (1 << 32) - 1]], False),
        ):
            files["counted"] = "".join(
                json.dumps({"metrics": {"cpus": {str(cpu): {"nr_running": n} for cpu, n in enumerate(counts)}}})
                + "\n"
                for counts in samples
            )
            self.assertEqual(not faults.verdict("stress", coreward, files, False), right, samples)
            for what, changed in faults.controls("stress", files):
                self.assertNotEqual(faults.verdict("stress", coreward, changed, False), [], what)

    def test_a_log_with_a_stall(self) -> None:
        stall = f'[  40.0] sched_ext: BPF scheduler "{self.NAME}" disabled (runnable task stall)\n'
        wrong = faults.verdict("stress", self.BPFLAND, {**self.FILES, "kernel": stall}, False)
        self.assertEqual(len(wrong), 1)
        self.assertIn("runnable task stall", wrong[0])
        for line in (
            "[  70.1] rcu: INFO: rcu_preempt self-detected stall on CPU",
            "[ 242.0] INFO: task hackbench:77 blocked for more than 120 seconds.",
            "[  40.0] sched_ext: bpfland: hackbench[77] failed to run for 30.1s: runnable task stall",
            "[  41.0] BUG: KFENCE: use-after-free read in scx_next_task_picked+0x1/0x2",
            "[  41.0] UBSAN: array-index-out-of-bounds in kernel/sched/ext.c:77:7",
        ):
            self.assertNotEqual(faults.verdict("stress", self.BPFLAND, {**self.FILES, "kernel": line}, False), [])

    def test_the_kernels_scheduler_is_not_one_of_sched_ext(self) -> None:
        files = {**self.FILES, "states": "disabled 0 \ndisabled 0 \ndisabled 0 \n", "kernel": "", "loader": ""}
        kernel = Scheduler("eevdf", "", ())
        self.assertEqual(faults.verdict("stress", kernel, files, False), [])
        self.assertNotEqual(faults.verdict("stress", kernel, self.FILES, False), [])
        self.assertNotEqual(faults.verdict("stress", self.BPFLAND, files, False), [])

    def test_who_is_first_changes_with_each_round(self) -> None:
        chosen = [Scheduler(name, name, ()) for name in ("a", "b", "c")]
        turns = [(number, scheduler.name) for number, scheduler in rounds._turns(chosen, 2)]
        self.assertEqual(turns, [(0, "a"), (0, "b"), (0, "c"), (1, "b"), (1, "c"), (1, "a")])

    def test_a_round_without_the_scheduler_does_not_count(self) -> None:
        programs = [
            {"type": "struct_ops", "name": "bpfland_enqueue", "run_time_ns": 3000, "run_cnt": 2},
            {"type": "struct_ops", "name": "bpfland_runnable", "run_time_ns": 500, "run_cnt": 5},
            {"type": "syscall", "name": "bpfland_enqueue", "run_time_ns": 7, "run_cnt": 7},
            {"type": "struct_ops", "name": "bpfland_dispatch"},
        ]
        there = f"enabled 1 {self.NAME}"
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch)
            checks = (f"{there}\n0\n{there}\n", f"{there}\n0\nenabled 2 {self.NAME}\n", f"{there}\n124\n{there}\n")
            for number, check in enumerate(checks):
                directory = out / str(number) / "scx_bpfland"
                directory.mkdir(parents=True)
                (directory / "perf-pipe").write_text(f"     Total time: 0.{number + 1}00 [sec]\n")
                (directory / "perf-pipe.check").write_text(check)
                (directory / "programs").write_text(json.dumps(programs))
            results = rounds.read(out, [self.BPFLAND], ["perf-pipe"], 4)
        self.assertEqual(results.values, {("perf-pipe", "scx_bpfland"): [0.1]})
        self.assertEqual(results.callbacks["scx_bpfland", "enqueue"], (6, 9000))
        self.assertEqual(len(results.callbacks), 2)
        self.assertEqual(len(results.faults), 3)
        self.assertRegex(results.faults[0], "round 2, perf-pipe: the scheduler fell out")
        self.assertRegex(results.faults[1], "status 124")
        self.assertRegex(results.faults[2], "round 4: it did not load")

    def test_another_scheduler_is_not_the_one_that_is_measured(self) -> None:
        for state in ("disabled 0 ", "enabled 1 rusty_1.1.4", "enabling 1 "):
            self.assertIn("was not there", rounds._fault(f"{state}\n0\n{state}\n", self.BPFLAND))
        self.assertIn("was there", rounds._fault("enabled 1 x\n0\nenabled 1 x\n", Scheduler("eevdf", "", ())))

    def test_figures_of_benchmarks(self) -> None:
        for name, text, figure in (
            ("hackbench-pipe-threads", "Running in threaded mode\nTime: 0.250\n", 0.25),
            ("sysbench-threads", "    total time:                          0.3105s\n", 0.3105),
            ("perf-pipe", "     Total time: 0.077 [sec]\n", 0.077),
            ("hackbench-pipe-threads", "SENDER: write (error: Broken pipe)\n", None),
        ):
            self.assertEqual(benchmarks.BENCHMARKS[name].read(text), figure)

    def test_the_99th_percentile(self) -> None:
        # two threads, 200 latencies: 100 of 5 us, 97 of 6, 1 of 7, 2 of 9; the 198th is 7 us
        lines = ["000005 000060\t000040", "000006 000047\t000050", "000007 000000\t000001", "000009 000001\t000001"]
        text = "\n".join(["# Histogram", *lines, "# Total: 000108 000092", "# Histogram Overflows: 00000 00000"])
        self.assertEqual(benchmarks.percentile(text), 7)
        self.assertEqual(benchmarks.percentile(text.replace("00000 00000", "00001 00000")), 9)
        self.assertIsNone(benchmarks.percentile(text.replace("00000 00000", "00005 00000")))
        self.assertIsNone(benchmarks.percentile("killed"))

    def test_migrations_by_distance(self) -> None:
        # CPUs 0 to 3 are first threads, 4 to 7 second ones; LLCs are 0, 0, 1, 1
        text = "".join(
            f"{{ orig_cpu: {source:10}, dest_cpu: {target:10} }} hitcount: {count:10}\n"
            for source, target, count in ((0, 4, 1), (0, 1, 2), (0, 5, 3), (0, 2, 4), (7, 0, 5))
        )
        counts = migrations.read(text + "Totals:\n    Dropped: 0\n", machine(1, 2, 2, 2))
        self.assertEqual(counts, {"core": 1, "LLC": 5, "node": 9})
        self.assertEqual(migrations.read("Dropped: 0", machine(1, 2, 2, 2)), {})
        with self.assertRaises(ValueError):
            migrations.read(text + "Dropped: 1\n", machine(1, 2, 2, 2))
        far = migrations.read("{ orig_cpu: 0, dest_cpu: 1 } hitcount: 2\nDropped: 0", machine(2, 1, 1, 1))
        self.assertEqual(far, {"across": 2})

    def test_kernels_on_which_a_scheduler_loads(self) -> None:
        states = ["disabled 0 ", "enabled 1 bpfland_1", "enabled 1 bpfland_1", "disabled 1 "]
        self.assertEqual(loading.verdict(states, "bpfland", ""), loading.GOOD)
        self.assertEqual(loading.verdict(["absent 0"], "bpfland", ""), loading.ABSENT)
        for changed, words in (
            (states[:1], "does not load: Error: Failed"),
            (["disabled 0", "enabled 1 rusty_1", *states[2:]], "does not load"),
            (states[:2], "does not run"),
            ([*states[:2], "disabled 1 ", "disabled 1 "], "does not run"),
            ([*states[:2], "enabled 2 bpfland_1", "disabled 2 "], "does not run"),
            (states[:3], "does not unload"),
            ([*states[:3], "enabled 1 bpfland_1"], "does not unload"),
        ):
            self.assertIn(words, loading.verdict(changed, "bpfland", "x\nError: Failed\n"))
        self.assertEqual(loading.option("CONFIG_SCHED_CLASS_EXT=y\n"), "y")
        self.assertEqual(loading.option("# CONFIG_SCHED_CLASS_EXT is not set\n"), "not set")
        self.assertEqual(loading.option(packages.NO_CONFIG + "\n"), "no config")

    def test_a_clock_that_counts_instructions(self) -> None:
        kernel = packages.Kernel("7.3", Path("vmlinuz"), Path("config"))
        clock = ["-icount", "shift=3,sleep=off"]
        self.assertEqual(accel.choose("tcg-single", 8, kernel, "amd64")[2:], clock)
        self.assertEqual(accel.choose("tcg-single", None, kernel, "amd64")[2:], [])
        self.assertEqual(accel.choose("kvm", 8, kernel, "amd64"), ["-accel", "kvm"])
        with self.assertRaises(CannotBuild):
            accel.choose("tcg-multi", 8, kernel, "amd64")

    def test_what_stands_still_is_the_next_cpus_thread(self) -> None:
        # a process with threads named as QEMU names those of its CPUs, each of which says what it is
        program = (
            "import ctypes, threading, time\n"
            "def run(name):\n"
            "    ctypes.CDLL(None).prctl(15, name.encode())\n"
            "    named.wait()\n"
            "    time.sleep(60)\n"
            "named = threading.Barrier(4)\n"
            "for name in ('CPU 1/TCG', 'CPU 0/TCG', 'worker'):\n"
            "    threading.Thread(target=run, args=(name,), daemon=True).start()\n"
            "named.wait()\n"
            "print('named', flush=True)\n"
            "time.sleep(60)\n"
        )
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout
                process.stdout.readline()
                cpus = stall.threads(process.pid)
                self.assertEqual(len(cpus), 2)
                self.assertGreater(cpus[0], cpus[1])
                staller = stall.Staller(process.pid)
                for stopped in ([], [cpus[0]], [], [cpus[1]], [], [cpus[0]]):
                    self.assertEqual([cpu for cpu in cpus if self.state(process.pid, cpu) == "t"], stopped)
                    staller.due()
                    staller.step()
            finally:
                process.kill()

    def test_time_without_a_cpu_does_not_count(self) -> None:
        # two busy processes on one CPU: each waits for half of the time
        limits = qemu.Limits(boot=0.5, command=60)
        cpu = str(min(os.sched_getaffinity(0)))
        spin = ["taskset", "--cpu-list", cpu, "sh", "-c", "while :; do :; done"]
        with tempfile.TemporaryDirectory() as run, subprocess.Popen(spin) as other:
            try:
                before = time.monotonic()
                process = subprocess.Popen(spin)
                with self.assertRaisesRegex(GuestHung, "more than 0.5 s to boot"):
                    qemu._watch(process, Path(run), limits, [], None)
                self.assertGreater(time.monotonic() - before, 0.8)
                self.assertGreater(qemu.waited(other.pid), 0.2)
            finally:
                other.kill()

    def test_a_pause_of_the_machine_does_not_count(self) -> None:
        with mock.patch("time.monotonic", side_effect=[0, 0.5, 1000.5, 1000.75]):
            had = qemu.Stopwatch(os.getpid())
            self.assertAlmostEqual(had.step(), 0.5, delta=0.1)
            self.assertAlmostEqual(had.step(), 1.5, delta=0.2)
            self.assertAlmostEqual(had.step(), 1.75, delta=0.3)

    @staticmethod
    def state(pid: int, thread: int) -> str:
        """The state of a thread; t: a tracer has stopped it."""
        return Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()[0]

    def test_guests_get_scripts_that_a_shell_takes(self) -> None:
        chosen = [Scheduler("eevdf", "", ()), self.BPFLAND]
        scripts = [rounds.script(chosen, list(benchmarks.BENCHMARKS), 2)]
        scripts += [faults.script(fault, self.BPFLAND, True) for fault in faults.FAULTS.values()]
        scripts += [effects.script(effect, "coreward-live live", 2) for effect in effects.EFFECTS.values()]
        scripts += [observe.SCRIPT]
        scripts += [schedulers.FUNCTIONS.read_text(), faults.FUNCTIONS.read_text()]
        for text in scripts:
            done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, check=False)
            self.assertEqual(done.stderr, "", text)
        for text in scripts[:-2]:
            # so that the guest gets the programs that quoted commands name
            self.assertTrue({"hackbench", "sysbench"} & set(guest._words(text)), text)


if __name__ == "__main__":
    unittest.main()
