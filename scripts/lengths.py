#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs experiments with benchmarks of one, three and ten times their length, and writes how far their headline
changes depend on it, as a table. A change that is outside of its own 95 % interval at the shortest length depends on
the length of the run."""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FACTORS = (1, 3, 10)
HEADER = ("experiment", "metric", "change, %", "95 % interval", "three times as long", "ten times", "within")
# The table of a page is what follows.
MARK = "<!-- make lengths: from here -->"


@dataclass
class Length:
    """What makes the runs of an experiment longer."""

    experiment: str
    option: str
    # of the shortest run, where the command does not give it or the published length takes too long
    shortest: int | None = None
    runs: int = 10


# Of all families, those whose runs of ten times the length take minutes, not hours.
LENGTHS = (
    Length("asym-juno-hackbench", "-l", 100),
    Length("asym-pixel3-hackbench", "-l"),
    Length("asym-juno-sysbench", "--max-time", runs=5),
    Length("forkexec-load-avg", "-l", 100, runs=18),
    Length("forkexec-rework-small", "-l", runs=5),
    Length("newidle-encoder", "--time", runs=3),
    # a fifth of the published time
    Length("cache-aware-schbench-old", "-r", 20, runs=5),
    Length("sched-cache-schbench-nps2", "-r", runs=5),
    # a hundredth of the published loops
    Length("wakeup-bias-prev", "-l", 4_800, runs=3),
)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/lengths.py", description=__doc__)
    add = parser.add_argument
    program = ROOT / "target/release/coreward"
    add("--coreward", type=Path, default=program, metavar="FILE", help="[default: target/release/coreward]")
    add("--jobs", type=int, default=2, metavar="J", help="number of simultaneous runs [default: %(default)s]")
    add("--page", type=Path, metavar="FILE", help="replace the table of this page [default: print the table]")
    add("--only", action="append", metavar="NAME", help="of these experiments only")
    add("--check", action="store_true", help="only make sure that every workload can be made longer")
    parsed = parser.parse_args()
    known = {length.experiment for length in LENGTHS}
    if unknown := sorted(set(parsed.only or ()) - known):
        parser.error(f"--only: there is no {unknown[0]}; there are {', '.join(sorted(known))}")
    return parsed


def longer(text: str, length: Length, factor: int) -> str:
    """An experiment file whose workloads run for `factor` times the shortest length."""

    given = re.compile(rf"(?<=\s{length.option}[ =])\d+")

    def command(found: re.Match[str]) -> str:
        words = found["command"]
        if length.shortest is None:
            return f'workload = "{given.sub(lambda number: str(factor * int(number[0])), words)}"'
        if given.search(words):
            return f'workload = "{given.sub(str(factor * length.shortest), words)}"'
        return f'workload = "{words} {length.option} {factor * length.shortest}"'

    return re.sub(r'^workload = "(?P<command>.*)"$', command, text, flags=re.MULTILINE)


def compare(coreward: Path, text: str, runs: int, jobs: int) -> list[dict]:
    """The comparisons of an experiment's cases."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "longer.toml"
        file.write_text(text, encoding="utf-8")
        command = [coreward, "compare", file, "--runs", str(runs), "--jobs", str(jobs), "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {ran.stderr.strip()}")
    report = json.loads(ran.stdout)
    return report.get("cases", [report])


def text_of(length: Length) -> str:
    """The experiment's file."""
    return (ROOT / "experiments" / f"{length.experiment}.toml").read_text(encoding="utf-8")


def workloads(text: str) -> list[str]:
    """The commands of an experiment."""
    experiment = tomllib.loads(text)
    return [case["workload"] for case in experiment.get("case", [experiment])]


def check(lengths: list[Length]) -> int:
    """Names workloads that stay as they are."""
    status = 0
    for length in lengths:
        shortest, longest = (workloads(longer(text_of(length), length, factor)) for factor in FACTORS[::2])
        for command in set(shortest) & set(longest):
            print(f"{length.experiment}: {length.option} does not make it longer: {command}", file=sys.stderr)
            status = 1
    return status


def rows(parsed: argparse.Namespace, length: Length) -> list[list[str]]:
    """A row of the table for each case and each variant of an experiment."""
    text = text_of(length)
    metric = tomllib.loads(text)["headline"][0]
    by_factor = [
        compare(parsed.coreward, longer(text, length, factor), length.runs, parsed.jobs) for factor in FACTORS
    ]
    table = []
    for cases in zip(*by_factor, strict=True):
        for variants in zip(*(case["variants"] for case in cases), strict=True):
            changes = [variant["delta_pct"].get(metric) for variant in variants]
            interval = variants[0]["interval_pct"].get(metric)
            if interval is None or None in changes:
                continue
            low, high = interval
            kept = all(low <= change <= high for change in changes[1:])
            case = cases[0].get("case")
            name = ": ".join(filter(None, (length.experiment, case, variants[0]["label"])))
            figures = [f"{change:+.1f}" for change in changes]
            verdict = "yes" if kept else "no"
            table.append([name, metric, figures[0], f"{low:+.1f} to {high:+.1f}", *figures[1:], verdict])
    print(f"{length.experiment}: {sum(row[-1] == 'yes' for row in table)} of {len(table)}", file=sys.stderr)
    return table


def main() -> int:
    """Writes the table."""
    parsed = arguments()
    chosen = [length for length in LENGTHS if not parsed.only or length.experiment in parsed.only]
    if parsed.check:
        return check(chosen)
    page = parsed.page and parsed.page.read_text(encoding="utf-8")
    if page and MARK not in page:
        sys.exit(f"{parsed.page}: it has no line {MARK}")
    table = [list(HEADER), ["---"] * len(HEADER)]
    for length in chosen:
        table += rows(parsed, length)
    text = "".join(f"| {' | '.join(row)} |\n" for row in table)
    if page:
        before = page.partition(MARK)[0]
        parsed.page.write_text(f"{before}{MARK}\n\n{text}", encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
