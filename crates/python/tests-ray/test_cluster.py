"""Sweeps and matrices on a Ray cluster of several nodes on this machine: the bytes are those without Ray, whatever dies."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

import coreward
from coreward import cluster

ROOT = Path(__file__).parents[3]
#: 60 runs of some tens of milliseconds.
PLAN = """name = "small"
machines = ["2n2l2c1t"]
workloads = ["hackbench -g 4 -f 4 -T --pipe -l 200"]
runs = 5
[latin_hypercube]
points = 11
[latin_hypercube.vary]
pipe_op_ns = { from = 200, to = 5000, log = true }
"""
RUNS = 60
#: 6 cells of 6 runs.
MATRIX = {
    "machines": ["2n2l2c1t", "1n2l2c2t", "3c"],
    "workloads": ["hackbench -g 4 -f 4 -T --pipe -l 200", "perf bench sched pipe -l 300"],
    "runs": 3,
}
CELLS = 6
NODE = {"num_cpus": 1, "object_store_memory": 80 << 20}


#: The command itself.
COMMAND = """import sys
from coreward import _native
sys.stdout.write(_native.call(sys.argv[1:], False)[0].decode())"""


@pytest.fixture(scope="module")
def nodes():
    """A head and three more nodes, of a CPU each."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": True, "dashboard_port": port})
    for _ in range(3):
        made.add_node(**NODE)
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def address(nodes):
    yield nodes.address
    ray.shutdown()


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture(scope="module")
def local():
    """The sweep without Ray."""
    path = Path(os.environ.get("TMPDIR", "/tmp"), f"coreward-plan-{os.getpid()}.toml")
    path.write_text(PLAN)
    yield coreward.sweep(path).json
    path.unlink()


def keys(state):
    text = state.read_text() if state.exists() else ""
    return [json.loads(line)["key"] for line in text[: text.rfind("\n") + 1].splitlines()[1:]]


def noted(log, slow):
    """`_make_runs` that notes where runs begin, and is slow on a node."""

    def make(common, shards):
        node = ray.get_runtime_context().get_node_id()
        with open(log, "a") as file:
            file.write(f"{node} {shards[0]}\n")
        if node == slow:
            time.sleep(60)
        return cluster._make_runs(common, shards)

    return make


def test_a_node_that_is_killed_costs_nothing(nodes, address, plan, local, tmp_path, monkeypatch):
    state, log, found = tmp_path / "state", tmp_path / "log", []
    doomed = nodes.add_node(**NODE)
    nodes.wait_for_nodes()
    monkeypatch.setattr(cluster, "_make_runs", noted(str(log), doomed.node_id))

    def kill():
        while len(keys(state)) < RUNS * 3 // 10 or doomed.node_id not in log.read_text():
            time.sleep(0.005)
        found.append(len(keys(state)))
        nodes.remove_node(doomed, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    swept = cluster.sweep(plan, state=state, address=address, task_s=0)
    killer.join()
    assert found[0] < RUNS, "it was killed in the middle"
    assert swept.json == local
    assert len(set(keys(state))) == len(keys(state)) == RUNS
    begun = [line.split() for line in log.read_text().splitlines()]
    lost = {shard for node, shard in begun if node == doomed.node_id}
    assert lost and len({node for node, _ in begun}) == 5
    assert sorted(shard for _, shard in begun) == sorted([f"{i}/{RUNS}" for i in range(RUNS)] + list(lost)), "only those again"


def test_a_matrix_has_the_bytes_of_the_command_whatever_dies(nodes, address, tmp_path, monkeypatch):
    local = coreward.matrix("NO_TTWU_QUEUE", **MATRIX).json
    state, log = tmp_path / "state", tmp_path / "log"
    doomed = nodes.add_node(**NODE)
    nodes.wait_for_nodes()
    monkeypatch.setattr(cluster, "_make_runs", noted(str(log), doomed.node_id))

    def kill():
        while not keys(state) or not log.exists() or doomed.node_id not in log.read_text():
            time.sleep(0.005)
        nodes.remove_node(doomed, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    seen = []
    found = cluster.matrix(
        "NO_TTWU_QUEUE", **MATRIX, state=state, address=address, task_s=0, progress=lambda *now: seen.append(now)
    )
    killer.join()
    assert found.json == local
    assert len(set(keys(state))) == len(keys(state)) == CELLS
    assert seen[-1] == (CELLS, CELLS) and seen == sorted(seen)
    begun = [line.split() for line in log.read_text().splitlines()]
    lost = [shard for node, shard in begun if node == doomed.node_id]
    assert lost and sorted(shard for _, shard in begun) == sorted([f"{i}/{CELLS}" for i in range(CELLS)] + lost), "only those again"


def test_the_commands_line_of_a_matrix(address, tmp_path):
    suite = tmp_path / "suite.toml"
    row = '[[row]]\nname = "{}"\nworkload = "{}"\nmetrics = ["runtime_s"]\nreason = "short"\n'
    suite.write_text(row.format("pipes", "hackbench -g 1 -f 2 -T --pipe -l 30") + row.format("pair", "perf bench sched pipe -l 50"))
    words = ["--with", "NO_TTWU_QUEUE", "--machine", "2c", "--machine=3c", "--suite", suite, "--runs", "2", "--cost", "tick_ns=500"]
    own = ["--ray", address, "--task-s", "0", "--state", tmp_path / "state"]
    cases = [["--json"], ["--all", "--json=" + str(tmp_path / "j")], ["--fail-if-worse", "--html", tmp_path / "h", "--quiet"]]
    for report in cases:
        line = [*map(str, [*words, *report])]
        alone = subprocess.run([sys.executable, "-c", COMMAND, "matrix", *line], capture_output=True, text=True)
        files = [path.read_bytes() for path in (tmp_path / "j", tmp_path / "h") if path.exists()]
        ran = subprocess.run([sys.executable, "-m", "coreward.cluster", "matrix", *line, *map(str, own)], capture_output=True, text=True)
        worse = "--fail-if-worse" in report
        # Ray may warn of something
        said = [line for line in ran.stderr.splitlines() if line.startswith("coreward")]
        assert re.fullmatch("coreward.cluster: . of 4 cells are worse beyond noise" if worse else "", "".join(said)), ran.stderr
        assert (ran.returncode, ran.stdout) == (int(worse), alone.stdout), report
        assert [path.read_bytes() for path in (tmp_path / "j", tmp_path / "h") if path.exists()] == files
    assert len(keys(tmp_path / "state")) == 4
    for option in ("--jobs=2", "--shard=0/2", "--left"):
        ran = subprocess.run([sys.executable, "-m", "coreward.cluster", "matrix", *map(str, [*words, *own]), option], capture_output=True, text=True)
        assert (ran.returncode, ran.stderr) == (2, f"coreward.cluster: {option.partition('=')[0]} has no meaning on a cluster\n")


def test_a_killed_driver_continues(address, plan, local, tmp_path):
    state = tmp_path / "state"
    line = [sys.executable, "-m", "coreward.cluster", "sweep", plan, "--ray", address, "--task-s=0", "--json", "--state", state]
    before = []
    for percent in (30, 60, 90):
        driver = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while len(keys(state)) < RUNS * percent // 100 and driver.poll() is None:
            time.sleep(0.005)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        now = keys(state)
        assert RUNS * percent // 100 <= len(now) and now[: len(before)] == before
        before = now
    ran = subprocess.run(line, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == local
    assert len(set(keys(state))) == len(keys(state)) == RUNS, "nothing twice"
    again = state.read_bytes()
    assert cluster.sweep(plan, state=state, address=address).json == local
    assert state.read_bytes() == again and not ray.is_initialized(), "nothing was left to do"


def deadly(marker, wanted, always):
    """`_make_runs` in a worker that dies of one run, once or always."""

    def make(common, shards):
        if wanted in shards and (always or not os.path.exists(marker)):
            Path(marker).write_text(ray.get_runtime_context().get_task_name())
            os._exit(1)
        return cluster._make_runs(common, shards)

    return make


@pytest.mark.parametrize("always", [False, True])
def test_a_run_that_kills_its_worker_costs_no_other(address, plan, local, tmp_path, monkeypatch, always):
    state, marker = tmp_path / "state", tmp_path / "died"
    monkeypatch.setattr(cluster, "_make_runs", deadly(str(marker), f"7/{RUNS}", always))
    monkeypatch.setattr(cluster, "RETRIES", 1)
    if always:
        with pytest.raises(coreward.Error, match=r"^1 runs are missing, whose workers died 2 times: hackbench .*, seed 3$"):
            cluster.sweep(plan, state=state, address=address, task_s=0.3)
        assert len(keys(state)) == RUNS - 1
    else:
        assert cluster.sweep(plan, state=state, address=address, task_s=0.3).json == local
    assert marker.read_text().startswith("hackbench -g 4 -f 4 --threads --pipe -l 200 -s 100 on 2n2l2c1t, ")


def spied(monkeypatch):
    """The number of tasks in flight and of their runs, at each start."""
    seen, start = [], cluster._Tasks._start

    def spy(self, runs):
        start(self, runs)
        seen.append((len(self.running), len(runs)))

    monkeypatch.setattr(cluster._Tasks, "_start", spy)
    return seen


def test_tasks_in_flight_are_bounded_and_as_long_as_asked(address, plan, tmp_path, monkeypatch):
    seen = spied(monkeypatch)
    cluster.sweep(plan, state=tmp_path / "a", address=address, task_s=0)
    cpus = int(ray.cluster_resources()["CPU"])
    assert max(running for running, _ in seen) == 2 * cpus
    assert [runs for _, runs in seen] == [1] * RUNS
    seen.clear()
    cluster.sweep(plan, state=tmp_path / "b", address=address, task_s=100)
    assert max(running for running, _ in seen) <= 2 * cpus
    assert max(runs for _, runs in seen) > 1 and sum(runs for _, runs in seen) == RUNS


def test_the_dashboard_names_runs_and_cells(address, plan, tmp_path):
    from ray.util.state import list_tasks

    cluster.sweep(plan, state=tmp_path / "a", address=address, task_s=0)
    cluster.matrix("NO_TTWU_QUEUE", **MATRIX, state=tmp_path / "b", address=address, task_s=100)
    workload = "hackbench -g 4 -f 4 --threads --pipe -l 200 -s 100"
    wanted = {f"{workload} on 2n2l2c1t, baseline, seed {seed}" for seed in range(1, 6)}
    wanted.add(f"{workload} on 1n2l2c2t, NO_TTWU_QUEUE, 3 runs a side")
    end, names = time.monotonic() + 30, set()
    # they come there some seconds later
    while not wanted <= names and time.monotonic() < end:
        names = {task.name for task in list_tasks(limit=10000)}
        time.sleep(0.5)
    assert wanted <= names, names


@pytest.mark.parametrize("hoard", [False, True])
def test_the_driver_forgets_results_that_are_written(address, tmp_path, monkeypatch, hoard):
    """It keeps the names of what is left, some 0.3 KiB a run; a result has 1.2 KiB. The control keeps the results, too."""
    hoarded, finish = [], cluster._Tasks._finish

    def keep(self, task):
        hoarded.append(self.ray.get(task))
        finish(self, task)

    if hoard:
        monkeypatch.setattr(cluster._Tasks, "_finish", keep)

    def peak(points):
        long, state = tmp_path / f"{points}.toml", tmp_path / f"{points}.state"
        long.write_text(PLAN.replace("points = 11", f"points = {points}").replace("-l 200", "-l 2"))
        tracemalloc.start()
        cluster._make_all(cluster.Work("sweep", (), "", long), state, address, 0.5, [])
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(keys(state)) == 5 * (points + 1)
        return most

    peak(1)
    each = (peak(119) - peak(19)) / 500
    assert (each > 1000) == hoard, each


def test_what_is_refused(address, plan, tmp_path, monkeypatch):
    state = tmp_path / "state"
    with pytest.raises(coreward.Error, match="task_s is -1"):
        cluster.sweep(plan, state=state, task_s=-1)
    with pytest.raises(coreward.Error, match="plan.toml:2: machines: .*9x"):
        plan.write_text(PLAN.replace("2n2l2c1t", "9x"))
        cluster.sweep(plan, state=state)
    assert not ray.is_initialized()
    plan.write_text(PLAN)
    monkeypatch.setattr(cluster, "_build", lambda: "other")
    with pytest.raises(coreward.Error, match="a node has another build of coreward"):
        cluster.sweep(plan, state=state, address=address)
    assert keys(state) == []


def test_results_of_something_else_are_not_taken(address, plan, tmp_path, monkeypatch):
    """As from a node where a file of the plan differs."""

    def make(common, shards):
        work, text, build = common
        return cluster._make_runs((work, text.replace(b"-l 200", b"-l 201"), build), shards)

    monkeypatch.setattr(cluster, "_make_runs", make)
    with pytest.raises(coreward.Error, match=f"^{RUNS} runs have other files on the nodes than here, the first one hackbench"):
        cluster.sweep(plan, state=tmp_path / "state", address=address)


def test_without_ray_it_says_so(plan, tmp_path):
    code = "import sys; sys.modules['ray'] = None; from coreward import cluster; sys.exit(cluster.main(sys.argv[1:]))"
    line = [sys.executable, "-c", code, "sweep", plan, "--state", tmp_path / "state"]
    ran = subprocess.run(line, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (2, "coreward.cluster: Ray is not installed: pip install 'ray[default]'\n")


def test_ray_accepts_the_cluster_file():
    import yaml
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = yaml.safe_load((ROOT / "examples/cluster/ray.yaml").read_text())
    validate_config(prepare_config(config))
    config["available_node_types"]["worker"]["max_worker"] = 1
    with pytest.raises(Exception, match="max_worker"):
        validate_config(config)
