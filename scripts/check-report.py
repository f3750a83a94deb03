#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Opens the pages of coreward compare, matrix, sweep, validate and tune in Chromium: they load without an error or a request,
have every number of the JSON, draw the machine, and say in words what they draw. Screenshots are kept for a look, in light,
dark and narrow, and a print. `coreward tune` takes the Python package."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COREWARD = os.environ.get("COREWARD", ROOT / "target/release/coreward")
OUT = ROOT / "target/report"
WORK = "hackbench -g 4 -f 8 -T --pipe -l 60"
SWEEP = f"""name = "<sweep> & more"
machines = ["2n2l4c2t", "2c"]
workloads = ["{WORK}", "perf bench sched pipe -l 100"]
runs = 3
[grid]
WAKEUP_BIAS_PREV = [true, false]
base_slice_ns = ["700us", "8ms"]
"""
STUDY = f"""name = "<tune> & more"
machines = ["2n2l4c2t", "2c"]
workloads = ["{WORK}"]
profile = "linux-6.12"
runs = 3
metrics = ["result", "cpu_migrations"]
guard = ["result"]
list = ["WAKEUP_BIAS_PREV"]
[vary]
base_slice_ns = {{ from = 200000, to = 20000000, log = true }}
[search]
trials = 6
batch = 3
[holdout]
workloads = ["perf bench sched pipe -l 100"]
"""
PAGES = {
    "compare": ["compare", WORK, "--machine", "2n2l4c2t", "--with", "WAKEUP_BIAS_PREV", "--runs", "4"],
    "published": ["compare", "experiments/wakeup-bias-prev.toml", "--scale", "0.000005", "--runs", "2"],
    "matrix": ["matrix", "--with", "WAKEUP_BIAS_PREV", "--runs", "3", "--machine", "2c", "--workload", WORK],
    "sweep": ["sweep", str(OUT / "sweep.toml")],
    "tune": ["tune", str(OUT / "tune.toml")],
    "validate": ["validate", "perf bench sched pipe -l 50000", "--machine", "2c", "--real", "docs/results/validation-zen-4.json"],
}


class Text(HTMLParser):
    """The text of a page, and what it would fetch or run."""

    def __init__(self):
        super().__init__()
        self.text, self.active, self.silent, self.machines = [], [], [], 0

    def handle_starttag(self, tag, attrs):
        if tag in ("script", "link", "iframe", "img") or any(name in ("src", "onclick") for name, _ in attrs):
            self.active.append(tag)
        attributes = dict(attrs)
        if (tag == "svg" or attributes.get("role") in ("img", "region")) and not attributes.get("aria-label"):
            self.silent.append(tag)
        self.machines += attributes.get("class") == "floor"

    def handle_data(self, data):
        self.text.append(data)


def chromium(page, *options):
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr"]
    command += [f"--user-data-dir={OUT}/profile", "--window-size=1200,2400", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from numbers(inner)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


def faults(page, report):
    """What is wrong with a page of this report."""
    ran = chromium(page, "--dump-dom")
    found = Text()
    found.feed(ran.stdout)
    text = " ".join(found.text)
    shown = {float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", text)}
    missing = [number for number in numbers(report) if number not in shown]
    said = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
    drawn = [] if found.machines or "are not drawn" in text else ["no machine is drawn"]
    drawn += [f"<{tag}> has no description" for tag in found.silent]
    return [f"{number} is missing" for number in missing[:5]] + said + drawn + [f"<{tag}>" for tag in found.active]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "sweep.toml").write_text(SWEEP)
    (OUT / "tune.toml").write_text(STUDY)
    bad = 0
    for name, arguments in PAGES.items():
        page, data = OUT / f"{name}.html", OUT / f"{name}.json"
        ran = subprocess.run([COREWARD, *arguments, "--html", page, f"--json={data}"], cwd=ROOT, capture_output=True)
        assert ran.returncode < 2, (name, ran.stderr)
        report = json.loads(data.read_text())
        for fault in faults(page, report):
            print(f"check-report: {name}: {fault}")
            bad += 1
        # the control: a page without numbers, whose script fails
        control = OUT / "control.html"
        control.write_text("<!DOCTYPE html><script>nothing()</script><svg></svg>")
        assert len(faults(control, report)) >= 5, name
        chromium(page, f"--screenshot={OUT}/{name}-light.png")
        chromium(page, "--force-dark-mode", f"--screenshot={OUT}/{name}-dark.png")
        chromium(page, "--window-size=480,2400", f"--screenshot={OUT}/{name}-narrow.png")
        chromium(page, f"--print-to-pdf={OUT}/{name}.pdf", "--no-pdf-header-footer")
        print(f"check-report: {name}: {len(list(numbers(report)))} numbers of the JSON are there")
    sys.exit(bad > 0)


main()
