# SPDX-License-Identifier: GPL-2.0-only
"""Chooses QEMU's accelerator: KVM if it really works, otherwise TCG.

Being able to open /dev/kvm proves little: nested or restricted KVM may fail at the first unusual
instruction. A kernel is therefore booted with it once, and the result is kept until the host reboots.
Guests for arm64 are always emulated: their CPU model and interrupt controller are not the host's.
"""

import subprocess
import tempfile
from pathlib import Path

from . import cache, packages, qemu
from .errors import CannotBuild
from .initramfs import Archive

_PROBE_SECONDS = 20
_MARK = "coreward-kvm-works"


def _boots_with_kvm(kernel: packages.Kernel) -> bool:
    archive = Archive()
    archive.merge_usr()
    archive.file("/bin/busybox", packages.busybox("amd64"))
    script = f"#!/bin/busybox sh\n/bin/busybox echo {_MARK}\n/bin/busybox poweroff -f\n"
    archive.data("/init", script.encode(), executable=True)
    archive.directory("/dev")
    with tempfile.TemporaryDirectory() as scratch:
        initramfs = Path(scratch) / "initramfs"
        initramfs.write_bytes(archive.bytes())
        line = f"console={console('amd64')} panic=-1"
        arguments = [
            qemu.program("amd64"),
            "-machine",
            "q35",
            "-accel",
            "kvm",
            "-cpu",
            "host",
            "-smp",
            "2",
            "-m",
            "512",
        ]
        arguments += ["-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio"]
        arguments += ["-kernel", str(kernel.image), "-initrd", str(initramfs), "-append", line]
        try:
            done = subprocess.run(
                arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return False
    return _MARK.encode() in done.stdout


def console(arch: str) -> str:
    """The kernel's name for QEMU's serial port."""
    return {"amd64": "ttyS0", "arm64": "ttyAMA0"}[arch]


def kvm_works(kernel: packages.Kernel) -> bool:
    """Whether an x86-64 guest runs under KVM on this host."""
    if packages.host_arch() != "amd64" or not Path("/dev/kvm").exists():
        return False
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    note = cache.directory() / "kvm"
    with cache.locked("kvm"):
        known = note.read_text(encoding="ascii").split() if note.is_file() else []
        if known[:1] != [boot]:
            known = [boot, "yes" if _boots_with_kvm(kernel) else "no"]
            note.write_text(" ".join(known) + "\n", encoding="ascii")
    return known[1:] == ["yes"]


def choose(wanted: str, instruction_ns: int | None, kernel: packages.Kernel, arch: str) -> list[str]:
    """QEMU's arguments for what is wanted ("kvm", "tcg-multi", "tcg-single"), or for "auto" for what
    works best; and for the clock of an emulated guest, which counts instructions of so many ns each,
    or is the host's.

    A host thread for each CPU is slow if the host has few CPUs to spare: a CPU that holds a
    spinlock or is about to take an interrupt does not run while others spin. A single thread switches
    when CPUs spin or idle, and CPUs that do not run at the same time cannot execute code that another
    one is patching.

    A clock that counts instructions makes times independent of other load on the host, skips the
    time in which all CPUs idle, and makes CPUs take turns often: QEMU gives each of n an n-th of the
    time until the next timer.
    """
    if wanted == "kvm" and arch != "amd64":
        raise CannotBuild(f"--accel is kvm: guests for {arch} are always emulated")
    if wanted == "kvm" or (wanted == "auto" and arch == "amd64" and kvm_works(kernel)):
        return ["-accel", "kvm"]
    if wanted == "tcg-multi":
        if instruction_ns:
            raise CannotBuild(
                "--accel is tcg-multi: only CPUs in one thread can count instructions for a clock"
            )
        return ["-accel", "tcg,thread=multi"]
    # QEMU takes the logarithm
    clock = ["-icount", f"shift={instruction_ns.bit_length() - 1},sleep=off"] if instruction_ns else []
    return ["-accel", "tcg,thread=single", *clock]
