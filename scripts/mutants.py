#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes the small changes of policy/tests/mutants.toml, one after the other, in a copy of the tree, and
reports which of them the policy's tests detect, and with --captures which the gates of parity detect. Exits
with status 1 if neither detects one that is not equivalent."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "policy/tests/mutants.toml"
# The tests of a folder begin with one of these.
TESTS = {
    "queue": ("queue",),
    "wakeup": ("wakeup", "forkexec", "cache_aware"),
    "balance": ("balance",),
    "track": ("pelt", "process"),
}
COPIED = ("Cargo.toml", "Cargo.lock", "crates", "policy", "machines", "experiments", "bpf", "fuzz")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/mutants.py", description=__doc__)
    parser.add_argument("--captures", nargs="+", type=Path, metavar="FILE", help="recorded decisions")
    parser.add_argument("--require", default="", metavar="GATES", help="as of coreward parity")
    return parser.parse_args()


def notices_in_tests(tree: Path, folder: str) -> bool:
    """Do the policy's tests of the folder fail, or all that there are without one?"""
    build = tree / "target/policy"
    sources = sorted((tree / "policy/tests").glob("*.c"))
    tests = [build / source.stem for source in sources if source.stem.startswith(TESTS.get(folder, ""))]
    command = ["make", "-s", "-j2", "-C", str(tree / "policy"), "check", f"BUILD={build}", "SANITIZE="]
    command.append("TESTS=" + " ".join(map(str, tests)))
    return subprocess.run(command, capture_output=True, check=False).returncode != 0


def notices_in_captures(tree: Path, parsed: argparse.Namespace) -> bool:
    """Does the agreement with recorded kernels fall below the gates?"""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target/mutants")}
    build = ["cargo", "build", "--release", "--locked", "-q", "-p", "coreward"]
    subprocess.run(build, cwd=tree, env=environment, check=True)
    command = [str(ROOT / "target/mutants/release/coreward"), "parity", "--require", parsed.require]
    files = [str(file.resolve()) for file in parsed.captures]
    return subprocess.run([*command, *files], capture_output=True, check=False).returncode != 0


def main() -> int:
    """Tries all mutants."""
    parsed = arguments()
    mutants = tomllib.loads(TABLE.read_text(encoding="utf-8"))["mutant"]
    missed = in_tests = in_captures = equivalent = 0
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir()
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("target", "build"))
            else:
                shutil.copyfile(source, tree / name)
        if notices_in_tests(tree, "") or (parsed.captures and notices_in_captures(tree, parsed)):
            print("mutants: the tests fail without any mutant", file=sys.stderr)
            return 1
        for mutant in mutants:
            file = tree / "policy" / mutant["file"]
            text = file.read_text(encoding="utf-8")
            if mutant["old"] not in text:
                print(f"mutants: {mutant['file']} has no `{mutant['old']}`", file=sys.stderr)
                return 1
            file.write_text(text.replace(mutant["old"], mutant["new"], 1), encoding="utf-8")
            by_test = notices_in_tests(tree, mutant["file"].split("/")[0])
            by_capture = bool(parsed.captures) and notices_in_captures(tree, parsed)
            file.write_text(text, encoding="utf-8")
            in_tests += by_test
            in_captures += by_capture
            noticed = [what for what, is_so in (("tests", by_test), ("captures", by_capture)) if is_so]
            if not noticed and "equivalent" in mutant:
                equivalent += 1
                noticed = [f"equivalent: {mutant['equivalent']}"]
            missed += not noticed
            new = " ".join(mutant["new"].split())
            print(f"{', '.join(noticed) or 'MISSED':18} {mutant['file']:22} {new[:90]}", flush=True)
    said = f", {in_captures} by captures" if parsed.captures else ""
    print(f"{len(mutants)} mutants: {in_tests} noticed by tests{said}, {equivalent} equivalent, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
