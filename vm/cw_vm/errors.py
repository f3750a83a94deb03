# SPDX-License-Identifier: GPL-2.0-only
"""What can go wrong, each with its own exit status.

A guest's command may end with any status, so the harness takes numbers that few programs use,
and always says in one line on standard error what happened.
"""

import argparse
import signal
import sys
from collections.abc import Callable
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


def _terminated(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def run_program(name: str, main: Callable[[], int]) -> NoReturn:
    """Runs a program's `main` and exits with its status, or says what went wrong and exits with the
    status of that. A program that is told to terminate cleans up first."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        sys.exit(main())
    except VmError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(error.status)
    except OSError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(CannotBuild.status)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


class Parser(argparse.ArgumentParser):
    """A parser of command lines whose errors are the harness's."""

    def error(self, message: str) -> NoReturn:
        raise CannotBuild(f"{message} ({self.prog} --help tells more)")
