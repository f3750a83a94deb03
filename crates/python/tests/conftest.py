"""What the tests have in common: the command line that the package is compared with, and small inputs."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

#: A workload that takes some milliseconds.
SMALL = "hackbench -g 1 -l 20 --pipe"


@pytest.fixture(scope="session")
def cli():
    """Runs the command line, built from the same sources, and gives its status, output and errors."""
    program = os.environ.get("COREWARD", str(ROOT / "target/release/coreward"))

    def run(*words):
        ran = subprocess.run([program, *map(str, words)], capture_output=True, text=True, cwd=ROOT)
        return ran.returncode, ran.stdout, ran.stderr

    return run


@pytest.fixture(scope="session")
def measured(tmp_path_factory):
    """What a benchmark did, as `coreward validate` keeps it, said of a shorter one, whose simulation is quick."""
    kept = json.loads((ROOT / "docs/results/validation-zen-4.json").read_text())
    kept["benchmarks"] = [{**kept["benchmarks"][0], "benchmark": "hackbench -g 1 -f 3 -l 200 -T -p"}]
    file = tmp_path_factory.mktemp("measured") / "measured.json"
    file.write_text(json.dumps({**kept, "rounds": 2}))
    return file


@pytest.fixture(autouse=True)
def at_root(monkeypatch):
    """Paths are those of the repository."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(autouse=True)
def sigint_interrupts():
    """A shell lets what it runs in the background ignore SIGINT, and Python keeps ignored what is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
