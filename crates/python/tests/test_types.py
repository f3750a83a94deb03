"""The types of the package: a checker finds no fault in it and the examples, and one in code that is wrong."""

import subprocess
import sys

from conftest import ROOT

#: One error a line.
WRONG = """import coreward
coreward.simulate(3, "2c")
coreward.compare("hackbench", "2c", "NO_SIS_UTIL", run=3)
coreward.simulate("hackbench", "2c").metrics["runtime_s"] + "s"
coreward.matrix("NO_SIS_UTIL", progress=lambda done: None)
"""


def checked(*words):
    ran = subprocess.run([sys.executable, "-m", *map(str, words)], capture_output=True, text=True)
    return ran.returncode, ran.stdout


def mypy(tmp_path, *files):
    return checked("mypy", "--config-file", ROOT / "crates/python/pyproject.toml", "--cache-dir", tmp_path / "cache", *files)


def test_the_package_and_the_examples_have_the_types_that_they_say(tmp_path):
    status, said = mypy(tmp_path, ROOT / "crates/python/python/coreward", ROOT / "examples")
    assert status == 0, said


def test_who_uses_it_wrongly_is_told(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    _, said = mypy(tmp_path, file)
    assert {line.split(":")[1] for line in said.splitlines() if ": error: " in line} == {"2", "3", "4", "5"}, said


def test_the_stub_is_what_the_native_part_has():
    status, said = checked("mypy.stubtest", "coreward._native")
    assert status == 0, said
