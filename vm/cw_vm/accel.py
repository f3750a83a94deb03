# SPDX-License-Identifier: GPL-2.0-only
"""Chooses QEMU's accelerator: KVM where it truly works, else TCG.

That /dev/kvm can be opened proves little: nested or restricted KVM may fail at the first unusual
instruction. So a kernel is booted with it once, and the answer kept until the host reboots.
"""

import subprocess
import tempfile
from pathlib import Path

from . import cache, packages, qemu
from .initramfs import Archive

_PROBE_SECONDS = 20
_MARK = "coreward-kvm-works"


def _boots_with_kvm(kernel: packages.Kernel, arch: str) -> bool:
    archive = Archive()
    archive.merge_usr()
    archive.file("/bin/busybox", packages.busybox(arch))
    script = f"#!/bin/busybox sh\n/bin/busybox echo {_MARK}\n/bin/busybox poweroff -f\n"
    archive.data("/init", script.encode(), executable=True)
    archive.directory("/dev")
    machine = ["-machine", "q35"] if arch == "amd64" else ["-machine", "virt,gic-version=host"]
    with tempfile.TemporaryDirectory() as scratch:
        initramfs = Path(scratch) / "initramfs"
        initramfs.write_bytes(archive.bytes())
        line = f"console={console(arch)} panic=-1"
        arguments = [qemu.program(arch), *machine, "-accel", "kvm", "-cpu", "host", "-smp", "2", "-m", "512"]
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


def kvm_works(kernel: packages.Kernel, arch: str) -> bool:
    """Whether a guest of this architecture runs under KVM on this host."""
    if arch != packages.host_arch() or not Path("/dev/kvm").exists():
        return False
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    note = cache.directory() / f"kvm-{arch}"
    with cache.locked("kvm"):
        known = note.read_text(encoding="ascii").split() if note.is_file() else []
        if known[:1] != [boot]:
            known = [boot, "yes" if _boots_with_kvm(kernel, arch) else "no"]
            note.write_text(" ".join(known) + "\n", encoding="ascii")
    return known[1:] == ["yes"]


def choose(wanted: str, kernel: packages.Kernel, arch: str) -> str:
    """QEMU's `-accel`: what is wanted ("kvm", "tcg-multi", "tcg-single"), or what works for "auto"."""
    if wanted == "kvm" or (wanted == "auto" and kvm_works(kernel, arch)):
        return "kvm"
    threads = "single" if wanted == "tcg-single" else "multi"
    return f"tcg,thread={threads}"
