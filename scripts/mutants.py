#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes the small changes of policy/tests/mutants.toml, one after the other, in a copy of the tree, and
reports which of them the policy's tests detect, and with --captures which the gates of vm/parity detect. "figures"
are mutants that change the agreement, but leave it above the gates. Exits with status 1 if neither the tests nor the
gates detect one that is not equivalent."""

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "vm"))
from cw_vm import loads  # noqa: E402, the path to it stands above

TABLE = ROOT / "policy/tests/mutants.toml"
CAPTURES = "*/*.cwc"
LIBRARY = "libcoreward_policy.so"
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
    parser.add_argument(
        "--captures",
        type=Path,
        metavar="DIR",
        help="recorded placements and queues: all files KERNEL-MACHINE/LOAD.cwc, as vm/parity keeps them",
    )
    parsed = parser.parse_args()
    if parsed.captures:
        names = {file.stem for file in parsed.captures.glob(CAPTURES)}
        if not names:
            parser.error(f"--captures: {parsed.captures} has no file KERNEL-MACHINE/LOAD.cwc")
        if unknown := sorted(names - set(loads.LOADS)):
            parser.error(f"--captures: there is no load {unknown[0]}; loads are {' '.join(loads.LOADS)}")
    return parsed


def notices_in_tests(tree: Path, folder: str) -> bool:
    """Does one of the policy's tests of the folder fail, or one of all without a folder?"""
    build = tree / "target/policy"
    # short builds, in which a warning is no finding
    make = ["make", "-s", "-C", str(tree / "policy"), "check", f"BUILD={build}", "SANITIZE="]
    make.append("CFLAGS=-std=c11 -I. -O0 -w")
    return any(
        subprocess.run([*make, f"TESTS={build / source.stem}"], capture_output=True, check=False).returncode
        for source in sorted((tree / "policy/tests").glob("*.c"))
        if source.stem.startswith(TESTS.get(folder, ""))
    )


def copy(tree: Path) -> None:
    """Copies what is built and mutated."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("target", "build"))
        else:
            shutil.copy2(source, tree / name)


def build_policy(tree: Path) -> None:
    """Compiles the policy of `tree` as a shared library."""
    command = ["cc", "-std=c11", "-O1", "-shared", "-fPIC", f"-I{tree / 'policy'}", "-o", str(tree / LIBRARY)]
    sources = (tree / "policy/native.c", tree / "crates/policy/src/generated/layout.c")
    subprocess.run([*command, *map(str, sources)], check=True)


def build_coreward(tree: Path) -> None:
    """Builds coreward in `tree`, so that it loads the policy when it starts: a mutant then needs no other build."""
    (tree / "crates/policy/build.rs").write_text(
        f"""//! Links the shared library that scripts/mutants.py compiles.
fn main() {{
    println!("cargo:rustc-link-search=native={tree}");
    println!("cargo:rustc-link-lib=dylib=coreward_policy");
}}
""",
        encoding="utf-8",
    )
    build_policy(tree)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target/mutants")}
    build = ["cargo", "build", "--locked", "-q", "-p", "coreward"]
    # the rest may be slow
    build += [f"--config=profile.dev.package.{name}.opt-level=3" for name in ("coreward-parity", "crc32fast")]
    subprocess.run(build, cwd=tree, env=environment, check=True)


def compare_captures(tree: Path, captures: Path, folder: str) -> subprocess.CompletedProcess[str]:
    """Compares the policy of `tree` with recorded kernels, as far as the folder decides. The status is not 0 if the
    agreement falls below the gates."""
    build_policy(tree)
    queue = folder == "queue"
    files = sorted(file for file in captures.glob(CAPTURES) if loads.LOADS[file.stem].queue == queue)
    command = [str(ROOT / "target/mutants/debug/coreward"), "parity"]
    command += ["--require", loads.required(file.stem for file in files), *map(str, files)]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tree)}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def report(found: dict[str, int], count: int, with_captures: bool) -> str:
    """The last line: how many mutants were noticed by what."""
    said = ""
    if with_captures:
        said = f", {found['captures']} by captures (which show {found['figures']} more, above the gates)"
    return f"{count} mutants: {found['tests']} noticed by tests{said}, {found['equivalent']} equivalent, {found['MISSED']} missed"


def main() -> int:
    """Tries all mutants."""
    parsed = arguments()
    mutants = tomllib.loads(TABLE.read_text(encoding="utf-8"))["mutant"]
    found = dict.fromkeys(("tests", "captures", "figures", "equivalent", "MISSED"), 0)
    tree = ROOT / "target/mutants/tree"
    copy(tree)
    if notices_in_tests(tree, ""):
        print("mutants: the tests fail without any mutant", file=sys.stderr)
        return 1
    original = {}
    if parsed.captures:
        build_coreward(tree)
        for folder in {mutant["file"].split("/")[0] for mutant in mutants}:
            compared = original[folder] = compare_captures(tree, parsed.captures, folder)
            if compared.returncode:
                print(f"mutants: without any mutant, {compared.stderr.strip()}", file=sys.stderr)
                return 1
    for mutant in mutants:
        file = tree / "policy" / mutant["file"]
        text = file.read_text(encoding="utf-8")
        if mutant["old"] not in text:
            print(f"mutants: {mutant['file']} has no `{mutant['old']}`", file=sys.stderr)
            return 1
        file.write_text(text.replace(mutant["old"], mutant["new"], 1), encoding="utf-8")
        folder = mutant["file"].split("/")[0]
        noticed = ["tests"] if notices_in_tests(tree, folder) else []
        if original:
            compared = compare_captures(tree, parsed.captures, folder)
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


if __name__ == "__main__":
    sys.exit(main())
