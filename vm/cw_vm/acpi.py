# SPDX-License-Identifier: GPL-2.0-only
"""A table of CPUs (MADT) that numbers them as a machine does.

Linux numbers CPUs in the order of this table. Tables in `kernel/firmware/acpi` of an initramfs
replace the firmware's if they are of the same maker and a later revision (CONFIG_ACPI_TABLE_UPGRADE).
Layout: ACPI specification 6.5, section 5.2.12; the I/O APIC and interrupts are those of QEMU's q35.
"""

import struct
from collections.abc import Iterable

PATH = "kernel/firmware/acpi/apic.aml"

_LOCAL_APIC, _IO_APIC, _OVERRIDE, _NMI = 0, 1, 2, 4
# QEMU's interrupts of PCI devices are level-triggered and active high; the timer is on pin 2.
_LEVEL_HIGH = 0x000D
_LEVEL_SOURCES = (5, 9, 10, 11)


def _entry(kind: int, layout: str, *fields: int) -> bytes:
    body = struct.pack("<" + layout, *fields)
    return struct.pack("<BB", kind, len(body) + 2) + body


def _entries(cpus: Iterable[tuple[int, int]]) -> Iterable[bytes]:
    for uid, apic_id in cpus:
        yield _entry(_LOCAL_APIC, "BBI", uid, apic_id, 1)
    yield _entry(_IO_APIC, "BBII", 0, 0, 0xFEC00000, 0)
    yield _entry(_OVERRIDE, "BBIH", 0, 0, 2, 0)
    for source in _LEVEL_SOURCES:
        yield _entry(_OVERRIDE, "BBIH", 0, source, source, _LEVEL_HIGH)
    yield _entry(_NMI, "BHB", 0xFF, 0, 1)


def madt(cpus: Iterable[tuple[int, int]]) -> bytes:
    """The table for CPUs of these (ACPI id, APIC id), in the order of their numbers."""
    body = struct.pack("<II", 0xFEE00000, 1) + b"".join(_entries(cpus))
    header = struct.pack(
        "<4sIBB6s8sI4sI", b"APIC", len(body) + 36, 3, 0, b"BOCHS ", b"BXPC    ", 2, b"CWRD", 1
    )
    table = bytearray(header + body)
    table[9] = -sum(table) & 0xFF
    return bytes(table)
