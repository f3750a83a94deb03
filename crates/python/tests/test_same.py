"""The package gives the same bytes as the command line, and the same messages."""

import hashlib
import json
import pickle
from pathlib import Path

import pytest

import coreward
from coreward import Machine, Policy
from conftest import SMALL


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


PLAN = {
    "name": "two",
    "machines": ["2c", "1n2l2c1t"],
    "workloads": [SMALL],
    "runs": 2,
    "grid": {"SIS_UTIL": [True, False], "base_slice_ns": [700000, "3ms"]},
}

TOML = """name = "two"
machines = ["2c", "1n2l2c1t"]
workloads = ["hackbench -g 1 -l 20 --pipe"]
runs = 2
[grid]
SIS_UTIL = [true, false]
base_slice_ns = [700000, "3ms"]
"""

RUN = ["run", SMALL, "--machine", "2c", "--json"]
COMPARE = ["compare", SMALL, "--machine", "2c", "--json"]


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (RUN, lambda: coreward.simulate(SMALL, "2c")),
        (
            [*RUN, "--seed", "7", "--profile", "6.5", "--sched-feat", "NO_SIS_UTIL", "--set", "base_slice_ns=2ms"],
            lambda: coreward.simulate(SMALL, "2c", "linux-6.5,NO_SIS_UTIL,base_slice_ns=2ms", seed=7),
        ),
        (
            [*RUN, "--scale", "0.5", "--cost", "tick_ns=100", "--cost", "syscall_ns=50", "--task-group-depth", "0"],
            lambda: coreward.simulate(
                SMALL, Machine("2c", {"tick_ns": 100}), Policy(costs={"syscall_ns": 50}), scale=0.5, task_group_depth=0
            ),
        ),
        (
            [*RUN, "--intervals", "0.001", "--event", "0.001s offline 1", "--time-limit", "9", "--strict"],
            lambda: coreward.simulate(
                SMALL, "2c", interval_s=0.001, events=["0.001s offline 1"], time_limit_s=9, strict=True
            ),
        ),
        (
            [*RUN[:2], "--machine", "4c", "--json", "--partition", "0-1:1", "--relax-domain-level", "0"],
            lambda: coreward.simulate(SMALL, "4c", partitions="0-1:1", relax_domain_level=0),
        ),
        (
            [*COMPARE, "--with", "NO_SIS_UTIL", "--with", "linux-7.3,base_slice_ns=2ms"],
            lambda: coreward.compare(SMALL, "2c", ["NO_SIS_UTIL", Policy("linux-7.3", tunables={"base_slice_ns": "2ms"})]),
        ),
        (
            [*COMPARE, "--with", "tick_ns=500", "--baseline-with", "NO_SIS_UTIL", "--profile", "6.5", "--runs", "2"]
            + ["--headline", "cpu_migrations", "--seed", "3", "--cost", "syscall_ns=50", "--jobs", "1"],
            lambda: coreward.compare(
                SMALL,
                Machine("2c").with_costs(syscall_ns=50),
                Policy(costs={"tick_ns": 500}),
                baseline="linux-6.5,NO_SIS_UTIL",
                runs=2,
                headline="cpu_migrations",
                seed=3,
                jobs=1,
            ),
        ),
        (
            ["compare", "experiments/negative-no-op.toml", "--runs", "2", "--scale", "0.001", "--json"],
            lambda: coreward.compare_experiment("experiments/negative-no-op.toml", runs=2, scale=0.001),
        ),
        (
            ["matrix", "--with", "NO_SIS_UTIL", "--machine", "2c", "--workload", SMALL, "--runs", "2", "--json"],
            lambda: coreward.matrix("NO_SIS_UTIL", machines="2c", workloads=SMALL, runs=2),
        ),
        (
            ["explain", SMALL, "--machine", "2c", "--first", "3", "--cpu", "1", "--json"],
            lambda: coreward.explain(SMALL, "2c", first=3, cpu=1),
        ),
        (
            ["run", "gallery/compile-1.cww --synth --time 0.2", "--machine", "2c", "--json"],
            lambda: coreward.simulate("gallery/compile-1.cww --synth --time 0.2", "2c"),
        ),
        (["machines", "--json"], coreward.machines),
        (["features", "--profile", "6.5", "--json"], lambda: coreward.features("6.5")),
        (
            ["import", "crates/trace/tests/data/perf.data.gz", "--without", "perf*", "--to", "1.5", "--json"],
            lambda: coreward.import_trace("crates/trace/tests/data/perf.data.gz", without="perf*", to_s=1.5),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::coreward.Remark")
def test_the_bytes_are_those_of_the_command_line(cli, words, call):
    status, printed, error = cli(*words)
    result = call()
    assert printed, error
    assert sha256(result.json) == sha256(printed)
    assert (status, result.unmet) == (0, None)
    again = result.command.split(" ", 1)[1]
    assert words[0] == again.split()[0]


def test_a_validation_is_that_of_the_command_line(cli, measured):
    status, printed, error = cli("validate", "--real", measured, "--json")
    result = coreward.validate(real=measured)
    assert sha256(result.json) == sha256(printed)
    assert status == (0 if result.unmet is None else 1)
    said = "" if result.unmet is None else f"coreward: {result.unmet}\n"
    assert error.endswith(said)
    # a machine that describes no idle states is noted, too
    assert all(line.startswith("coreward: note: ") for line in error.removesuffix(said).splitlines())


def test_a_sweep_is_that_of_the_file(cli, tmp_path):
    file = tmp_path / "two.toml"
    file.write_text(TOML)
    printed = cli("sweep", file, "--json")[1]
    assert sha256(coreward.sweep(file).json) == sha256(printed)
    assert sha256(coreward.sweep(PLAN, jobs=1).json) == sha256(printed)
    state = tmp_path / "state"
    assert coreward.sweep(PLAN, state=state) == coreward.sweep({**PLAN, "name": "two"}, state=state)
    other = coreward.sweep({**PLAN, "seed": 2})
    assert other.summary["results_sha256"] != coreward.sweep(file).summary["results_sha256"]


RUNS = ["--runs", "2"]
ONE = {"machines": "2c", "workloads": SMALL, "runs": 2}


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (RUN, lambda **files: coreward.simulate(SMALL, "2c", **files)),
        (
            [*COMPARE, *RUNS, "--with", "NO_SIS_UTIL", "--seed", str(2**64 - 1)],
            lambda **files: coreward.compare(SMALL, "2c", "NO_SIS_UTIL", runs=2, seed=2**64 - 1, **files),
        ),
        (
            ["compare", "experiments/negative-no-op.toml", *RUNS, "--scale", "0.001", "--json"],
            lambda **files: coreward.compare_experiment("experiments/negative-no-op.toml", runs=2, scale=0.001, **files),
        ),
        (
            ["matrix", "--with", "NO_SIS_UTIL", "--machine", "2c", "--workload", SMALL, *RUNS, "--json"],
            lambda **files: coreward.matrix("NO_SIS_UTIL", **ONE, **files),
        ),
        (["sweep", "two.toml", "--json"], lambda **files: coreward.sweep(PLAN, **files)),
    ],
)
def test_tables_are_those_of_the_command_line(cli, tmp_path, words, call):
    Path(tmp_path, "two.toml").write_text(TOML)
    words = [str(tmp_path / word) if word == "two.toml" else word for word in words]
    cli(*words, "--output", tmp_path / "cli.jsonl", "--output", tmp_path / "cli.parquet")
    result = call(output=[tmp_path / "python.jsonl", tmp_path / "python.parquet"])
    for ending in ("jsonl", "parquet"):
        assert Path(tmp_path, f"cli.{ending}").read_bytes() == Path(tmp_path, f"python.{ending}").read_bytes()
    lines = [json.loads(line) for line in Path(tmp_path, "cli.jsonl").read_text().splitlines()]
    assert result.table("runs").to_rows() == lines and result.tables[0] == "runs"
    assert pickle.loads(pickle.dumps(result)).table() == result.table("runs")


def test_a_matrix_takes_cells_from_other_files(tmp_path):
    whole = coreward.matrix("NO_SIS_UTIL", **ONE, state=tmp_path / "a")
    seen = []
    again = coreward.matrix("NO_SIS_UTIL", **ONE, merge=tmp_path / "a", progress=lambda *now: seen.append(now))
    assert again == whole and seen == [], "nothing was left to do"


def test_a_sweep_can_do_without_its_runs():
    assert "runs" not in coreward.sweep(PLAN, runs_table=False).tables


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (["run", SMALL, "--machine", "2x"], lambda: coreward.simulate(SMALL, "2x")),
        (["run", "hackbnch", "--machine", "2c"], lambda: coreward.simulate("hackbnch", "2c")),
        (["run", SMALL, "--machine", "2c", "--seed", "-1"], lambda: coreward.simulate(SMALL, "2c", seed=-1)),
        (["run", SMALL, "--machine", "2c", "--scale", "7"], lambda: coreward.simulate(SMALL, "2c", scale=7)),
        (["run", SMALL, "--machine", "2c", "--sched-feat", "SIS"], lambda: coreward.simulate(SMALL, "2c", "SIS")),
        (["compare", SMALL, "--machine", "2c", "--with", "a=1"], lambda: coreward.compare(SMALL, "2c", "a=1")),
        (["compare", "no.toml"], lambda: coreward.compare_experiment("no.toml")),
        (["matrix", "--with", "X"], lambda: coreward.matrix("X")),
        (["sweep", "no.toml"], lambda: coreward.sweep("no.toml")),
        (["explain", SMALL, "--machine", "2c", "--cpu", "2"], lambda: coreward.explain(SMALL, "2c", cpu=2)),
        (["import", "Makefile"], lambda: coreward.import_trace("Makefile")),
        (["features", "--profile", "1.0"], lambda: coreward.features("1.0")),
    ],
)
def test_errors_have_the_message_of_the_command_line(cli, words, call):
    status, _, message = cli(*words)
    with pytest.raises(coreward.Error) as error:
        call()
    assert status == 2
    assert f"coreward: {error.value}\n" == message


def test_an_error_in_a_mapping_names_the_plan():
    with pytest.raises(coreward.Error, match="^plan:4: runs is 1, allowed are 2 to 1000$"):
        coreward.sweep({**PLAN, "runs": 1})


def test_notes_of_the_command_line_are_warnings(cli, tmp_path):
    machine = tmp_path / "m.xml"
    processors = "".join(f'<object type="PU" os_index="{cpu}"/>' for cpu in range(2))
    machine.write_text(f'<topology version="3.0"><object type="Machine"><object type="Package">{processors}'
                       "</object></object></topology>")
    _, printed, said = cli("run", SMALL, "--machine", f"hwloc:{machine}", "--json")
    with pytest.warns(coreward.Remark) as warned:
        run = coreward.simulate(SMALL, Machine.from_hwloc(machine))
    assert run.json == printed
    assert [f"coreward: note: {one.message}" for one in warned] == said.splitlines()
    assert run.remarks == tuple(str(one.message) for one in warned)
    assert {one.filename for one in warned} == {__file__}
