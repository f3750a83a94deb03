#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs cases of `structure` with the engine of this tree and with that of another revision, and compares the reports.

    fuzz/diff-engine.py OLD [--cases 200] [--first 0] [--control] [--changed METRIC]

OLD is a revision, which is built in target/fuzz-diff, or the path of a coreward that is built already. Compared are the
metrics and the decisions by reason that both report, and whether both refuse. The first difference of each case is
printed; exit status 1 if there are any. With --control the new one has another seed, so differences have to be found.
--changed names a metric that was to change since then, and is not compared.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "fuzz-diff"


def build(tree, target):
    """The command of a tree."""
    env = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    subprocess.run(["cargo", "build", "--locked", "--release", "-p", "coreward"], cwd=tree, env=env, check=True)
    return target / "release" / "coreward"


def old_command(revision):
    if Path(revision).is_file():
        return Path(revision).resolve()
    name = subprocess.run(["git", "rev-parse", "--short", f"{revision}^{{commit}}"], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout.strip()
    tree = WORK / name
    if not tree.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), name], cwd=ROOT, check=True)
    return build(tree, tree / "target")


def report(command, case, seed):
    """The report of a run, or what it was refused with."""
    arguments = (case / "arguments").read_text().splitlines()
    if seed:
        at = arguments.index("--seed") + 1
        arguments[at] = str(int(arguments[at]) + seed)
    ran = subprocess.run([command, *arguments], cwd=case, capture_output=True, text=True)
    if ran.returncode:
        return {"refused": ran.returncode}
    return json.loads(ran.stdout)


def difference(old, new, changed):
    """The first thing in which two reports differ, except these metrics; None if they agree."""
    if ("refused" in old) != ("refused" in new):
        return "old: {}, new: {}".format(*("refused" if "refused" in side else "run" for side in (old, new)))
    for part in ("metrics", "reasons"):
        both = old.get(part, {}).keys() & new.get(part, {}).keys()
        for name in sorted(both - set(changed)):
            if old[part][name] != new[part][name]:
                return f"{name}: old {old[part][name]}, new {new[part][name]}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("--new", help="a coreward that is built already [default: build this tree]")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--changed", action="append", default=[], metavar="METRIC")
    args = parser.parse_args()
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    new = Path(args.new).resolve() if args.new else build(ROOT, target)
    old = old_command(args.old)
    files = WORK / "cases"
    subprocess.run(["cargo", "run", "-q", "--release", "--example", "cases", "--", str(files), str(args.cases),
                    str(args.first)], cwd=ROOT / "fuzz", check=True)
    refused = differ = 0
    for number in range(args.first, args.first + args.cases):
        case = files / str(number)
        one, other = report(old, case, 0), report(new, case, int(args.control))
        refused += "refused" in one and "refused" in other
        what = difference(one, other, args.changed)
        if what:
            differ += 1
            print(f"case {number}: {what}")
    print(f"{args.cases} cases, {refused} refused by both, {differ} differ")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
