"""What the tests have in common: the command line that the package is compared with, and small inputs."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

#: A workload that takes some milliseconds.
SMALL = "hackbench -g 1 -l 20 --pipe"


#: A benchmark of which docs/results/validation.json has figures, and whose simulation is quick.
BENCHMARK = "perf bench sched pipe -l 50000 -T"


@pytest.fixture(scope="session")
def cli():
    """Runs the command line, built from the same sources, and gives its status, output and errors."""
    program = os.environ.get("COREWARD", str(ROOT / "target/release/coreward"))

    def run(*words):
        ran = subprocess.run([program, *map(str, words)], capture_output=True, text=True, cwd=ROOT)
        return ran.returncode, ran.stdout, ran.stderr

    return run


@pytest.fixture(autouse=True)
def at_root(monkeypatch):
    """Paths are those of the repository."""
    monkeypatch.chdir(ROOT)
