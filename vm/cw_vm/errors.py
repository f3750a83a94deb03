# SPDX-License-Identifier: GPL-2.0-only
"""What can go wrong, each with the exit status that tells it from the others.

A guest's command may end with any status, so the harness takes numbers that few programs use,
and always says in one line on standard error what happened.
"""

import sys
from typing import NoReturn


class VmError(Exception):
    """A failure of the harness or the guest, not of the command in the guest."""

    status = 120


class GuestPanicked(VmError):
    """The guest's kernel panicked or oopsed."""

    status = 121


class GuestHung(VmError):
    """The guest did not finish in time."""

    status = 122


class CannotBuild(VmError):
    """The guest could not be built: bad options, a machine that QEMU cannot express, or a
    missing package, program or file."""

    status = 123


class EmulatorFailed(VmError):
    """QEMU ended without the guest having finished or panicked."""

    status = 124


def fail(program: str, error: VmError) -> NoReturn:
    """Says what went wrong and exits with its status."""
    print(f"{program}: {error}", file=sys.stderr)
    sys.exit(error.status)
