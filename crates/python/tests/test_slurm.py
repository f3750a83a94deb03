"""The script for job arrays of SLURM, run as SLURM runs it: one element after the other, then the merge."""

import json
import os
import subprocess

from conftest import ROOT, SMALL

SCRIPT = ROOT / "examples/cluster/sweep.slurm"
PLAN = f'name = "s"\nmachines = ["2c"]\nworkloads = ["{SMALL}"]\nlist = ["NO_SIS_UTIL", "NO_TTWU_QUEUE"]\nruns = 3\n'


def test_an_array_gives_the_bytes_of_one_sweep(tmp_path, cli):
    (tmp_path / "plan.toml").write_text(PLAN)
    program = os.path.abspath(os.environ.get("COREWARD", ROOT / "target/release/coreward"))

    def element(number, *words):
        of = {"SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_CPUS_PER_TASK": "1"}
        line = [SCRIPT, "plan.toml", *words]
        ran = subprocess.run(line, env={**os.environ, **of, "COREWARD": program}, cwd=tmp_path, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    counts = [element(number) for number in range(4)]
    assert counts == [f"shard {number}/4: {runs} runs are kept\n" for number, runs in enumerate([3, 2, 2, 2])]
    text = element(0, "merge")
    assert text == cli("sweep", tmp_path / "plan.toml")[1]
    assert (tmp_path / "plan.json").read_text() == cli("sweep", tmp_path / "plan.toml", "--json")[1]
    assert json.loads((tmp_path / "plan.json").read_text())["summary"]["points"] == 9
    # the merge had nothing to run: the shards have all
    lines = [len((tmp_path / f"plan-shard-{number}.state").read_text().splitlines()) - 1 for number in range(4)]
    assert lines == [3, 2, 2, 2]


def test_the_options_for_sbatch_are_an_array_from_0_on():
    options = [line.split(maxsplit=1)[1] for line in SCRIPT.read_text().splitlines() if line.startswith("#SBATCH ")]
    assert "--array=0-15" in options and all(option.startswith("--") for option in options)
