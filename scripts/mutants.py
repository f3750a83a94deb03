#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes the small changes of policy/tests/mutants.toml, one after the other, in a copy of it, and
reports which of them the policy's tests detect, and with --captures which the gates of vm/parity detect. "figures"
are mutants that change the agreement, but leave it above the gates. Exits with status 1 if neither the tests nor the
gates detect one that is not equivalent."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "vm"))
from cw_vm import loads, machine  # noqa: E402, the path to them stands above
from cw_vm.errors import CannotBuild, run_program  # noqa: E402

TABLE = ROOT / "policy/tests/mutants.toml"
CAPTURES = "*/*.cwc"
# The tests of a folder begin with one of these.
TESTS = {
    "queue": ("queue",),
    "wakeup": ("wakeup", "forkexec", "cache_aware"),
    "balance": ("balance",),
    "track": ("pelt", "process", "task_group", "upkeep"),
}


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/mutants.py", description=__doc__)
    parser.add_argument(
        "--captures",
        type=Path,
        metavar="DIR",
        help="recorded placements and queues: all files KERNEL-MACHINE/LOAD.cwc, as vm/parity keeps them",
    )
    parser.add_argument("--check", action="store_true", help="only make sure that every change can still be made")
    parsed = parser.parse_args()
    if parsed.captures:
        names = {file.stem for file in parsed.captures.glob(CAPTURES)}
        if not names:
            parser.error(f"--captures: {parsed.captures} has no file KERNEL-MACHINE/LOAD.cwc")
        if unknown := sorted(names - set(loads.LOADS)):
            parser.error(f"--captures: there is no load {unknown[0]}; loads are {' '.join(loads.LOADS)}")
    return parsed


def notices_in_tests(policy: Path, folder: str) -> bool:
    """Does one of the policy's tests of the folder fail, or one of all without a folder?"""
    build = policy.parent / "build"
    # short builds, in which a warning is no finding
    make = ["make", "-s", "-C", str(policy), "check", f"BUILD={build}", "SANITIZE="]
    make.append("CFLAGS=-std=c11 -I. -O0 -w")
    return any(
        subprocess.run([*make, f"TESTS={build / source.stem}"], capture_output=True, check=False).returncode
        for source in sorted((policy / "tests").glob("*.c"))
        if source.stem.startswith(TESTS.get(folder, ""))
    )


def compare_captures(policy: Path, captures: Path, folder: str) -> subprocess.CompletedProcess[str]:
    """Compares a policy with recorded kernels, as far as the folder decides. The status is 1 if the agreement falls
    below the gates."""
    queue = folder == "queue"
    files = sorted(file for file in captures.glob(CAPTURES) if loads.LOADS[file.stem].queue == queue)
    command = [machine.coreward(), "parity", "--policy", str(policy)]
    command += ["--require", loads.required(file.stem for file in files), *map(str, files)]
    # the libraries that coreward makes of the policies are not worth keeping
    environment = {**os.environ, "XDG_CACHE_HOME": str(policy.parent / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode not in (0, 1):
        raise CannotBuild(done.stderr.strip())
    return done


def report(found: dict[str, int], count: int, with_captures: bool) -> str:
    """The last line: how many mutants were noticed by what."""
    said = ""
    if with_captures:
        said = f", {found['captures']} by captures (which show {found['figures']} more, above the gates)"
    return f"{count} mutants: {found['tests']} noticed by tests{said}, {found['equivalent']} equivalent, {found['MISSED']} missed"


def check_all(policy: Path, mutants: list[dict[str, str]]) -> None:
    """Makes sure that the policy has the text that each mutant changes."""
    for mutant in mutants:
        if mutant["old"] not in (policy / mutant["file"]).read_text(encoding="utf-8"):
            raise CannotBuild(f"policy/{mutant['file']} has no `{mutant['old']}`, which {TABLE.name} changes")


def try_all(parsed: argparse.Namespace, policy: Path, mutants: list[dict[str, str]]) -> int:
    """Makes the changes in a copy of the policy, one after the other."""
    found = dict.fromkeys(("tests", "captures", "figures", "equivalent", "MISSED"), 0)
    if notices_in_tests(policy, ""):
        raise CannotBuild("the tests fail without any mutant")
    original = {}
    for folder in {mutant["file"].split("/")[0] for mutant in mutants} if parsed.captures else ():
        compared = original[folder] = compare_captures(policy, parsed.captures, folder)
        if compared.returncode:
            raise CannotBuild(f"without any mutant, {compared.stderr.strip()}")
    for mutant in mutants:
        file = policy / mutant["file"]
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace(mutant["old"], mutant["new"], 1), encoding="utf-8")
        folder = mutant["file"].split("/")[0]
        noticed = ["tests"] if notices_in_tests(policy, folder) else []
        if original:
            compared = compare_captures(policy, parsed.captures, folder)
            if compared.returncode:
                noticed.append("captures")
            elif compared.stdout != original[folder].stdout:
                noticed.append("figures")
        file.write_text(text, encoding="utf-8")
        if not {"tests", "captures"} & set(noticed):
            noticed.append("equivalent" if "equivalent" in mutant else "MISSED")
        for what in noticed:
            found[what] += 1
        new = " ".join(mutant["new"].split())
        print(f"{', '.join(noticed):18} {mutant['file']:22} {new[:90]}", flush=True)
    print(report(found, len(mutants), bool(parsed.captures)))
    return 1 if found["MISSED"] else 0


def main() -> int:
    """Tries all mutants."""
    parsed = arguments()
    mutants = tomllib.loads(TABLE.read_text(encoding="utf-8"))["mutant"]
    check_all(ROOT / "policy", mutants)
    if parsed.check:
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        policy = Path(scratch) / "policy"
        shutil.copytree(ROOT / "policy", policy)
        return try_all(parsed, policy, mutants)


if __name__ == "__main__":
    run_program("scripts/mutants.py", main)
