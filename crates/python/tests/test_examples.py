"""Each example runs, and answers its question."""

import os
import re
import subprocess
import sys

import pytest

from conftest import ROOT

EXAMPLES = ROOT / "examples"

#: What stands in the answer of each.
ANSWERS = {
    "run.py": r"wakeup_latency_us_p99 +\d",
    "compare_kernels.py": r"linux-7.3: messages_per_s [+-]\d.*: (better|worse|not_shown)\n",
    "compare_here.py": r"base_slice_ns=500us: .* a change of [+-]\d",
    "matrix.py": r"'cells': 4, .*\n(.*[%0] (better|worse|not_shown)\n)+",
    "sweep.py": r"(?s)mean_delta_pct.*cpu_migrations",
    "sql.py": r"│ *varchar.*\n",
    "seeds.py": r"\d+ runs a side show a change of 5 %",
    "latencies.py": r"-g 4 .*p99 \d.*\n.*latencies.html is written",
    "explain.py": r"(?s)linux-6.12\n .* ms fork .*WAKEUP_BIAS_PREV\n .* ms sync wakeup .* BIAS_PREV",
    "recording.py": r"here .* migrations.*\n.* p99",
    "import_trace.py": r"sleep .*explained\n(.*explained\n)*(note: .*\n)+simulated: \d",
}


def test_all_are_here_and_in_the_readme():
    there = {path.name for path in EXAMPLES.glob("*.py")}
    readme = (EXAMPLES / "README.md").read_text()
    assert there == set(ANSWERS) == set(re.findall(r"^\| \[(\w+\.py)\]", readme, re.M))


@pytest.mark.parametrize("name", ANSWERS)
def test_an_example_answers(name, tmp_path):
    path = EXAMPLES / name
    environment = {**os.environ, "PYTHONWARNINGS": "default"}
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert re.search(ANSWERS[name], ran.stdout), ran.stdout
    assert path.read_text().count("\n") < 45
