"""How fast a sweep of 1,000 runs of 0.1 s is without Ray, with a node, and with four; what is lost when the driver is killed; and
what the driver needs in memory. All results have to be the same bytes.

`make measure-ray` runs it and what measures a single call (overhead.py), in some seven minutes of a quiet machine of two CPUs.
Writes lines for docs/results/cluster.md. `speed.py PROGRAM RUNS` makes fewer runs.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

import coreward
from coreward import cluster

WORKLOAD = "hackbench -g 4 -f 4 --threads --pipe -l 8000"
RUNS = 1000
NODE = {"object_store_memory": 80 << 20}


def plan_of(runs):
    """A baseline and as many settings as it takes, of five runs each."""
    return f"""name = "speed"
machines = ["2n2l2c2t"]
workloads = ["{WORKLOAD}"]
runs = 5
[latin_hypercube]
points = {runs // 5 - 1}
[latin_hypercube.vary]
pipe_op_ns = {{ from = 200, to = 5000, log = true }}
"""


def timed(work):
    began = time.monotonic()
    result = work()
    return time.monotonic() - began, result


def kept(state):
    """The keys of the runs that a state file has."""
    text = state.read_text() if state.exists() else ""
    return [json.loads(line)["key"] for line in text[: text.rfind("\n") + 1].splitlines()[1:]]


class Nodes:
    """A cluster on this machine, to which this process is connected, with workers that are warm."""

    def __init__(self, nodes, cpus):
        self.made = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": cpus, "include_dashboard": False})
        for _ in range(nodes - 1):
            self.made.add_node(**NODE, num_cpus=cpus)
        self.made.wait_for_nodes()

    def __enter__(self):
        package = str(Path(coreward.__file__).parent)
        ray.init(address=self.made.address, runtime_env={"py_modules": [package]}, log_to_driver=False, logging_level="warning")
        nothing = ray.remote(lambda: None)
        ray.get([nothing.remote() for _ in range(50)])
        # one after the other, so that nothing but Ray takes time
        self.task_s = timed(lambda: [ray.get(nothing.remote()) for _ in range(200)])[0] / 200
        return self

    def __exit__(self, *_):
        ray.shutdown()
        self.made.shutdown()


def killed(address, plan, state, runs):
    """A driver that is killed at 30, 60 and 90 %: what each found and left, and what the last one printed."""
    line = [sys.executable, "-m", "coreward.cluster", "sweep", plan, "--ray", address, "--task-s=1", "--json", "--state", state]
    lines = []
    for percent in (30, 60, 90):
        driver = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        before = len(kept(state))
        while len(kept(state)) < runs * percent // 100 and driver.poll() is None:
            time.sleep(0.1)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        keys = kept(state)
        assert len(set(keys)) == len(keys) > before, "a run was lost or made twice"
        lines.append(f"| {percent} % | {before} | {len(keys)} |")
    ran = subprocess.run(line, check=True, capture_output=True, text=True)
    keys = kept(state)
    assert len(set(keys)) == len(keys) == runs
    return lines, ran.stdout


def main():
    program = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else RUNS
    with tempfile.TemporaryDirectory() as directory:
        plan, found = Path(directory, "plan.toml"), []
        plan.write_text(plan_of(runs))
        print(f"{runs} runs; load before: {os.getloadavg()[0]:.1f}\n")
        print("| how | s | runs/s | ms per empty task | bytes kept per run |\n|---|---|---|---|---|")
        seconds, local = timed(lambda: coreward.sweep(plan, runs_table=False))
        found.append(local.json)
        print(f"| local, {os.cpu_count()} at once | {seconds:.1f} | {runs / seconds:.1f} | | |", flush=True)
        for nodes, cpus in ((1, 2), (4, 1)):
            with Nodes(nodes, cpus) as on:
                for task_s in (0, 5):
                    state = Path(directory, f"{nodes}-{task_s}")
                    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                    seconds, swept = timed(lambda: cluster.sweep(plan, state=state, task_s=task_s, runs_table=False))
                    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
                    found.append(swept.json)
                    name = f"Ray, {nodes} nodes of {cpus} CPUs, task_s={task_s}, {grown} MiB more at most"
                    size = state.stat().st_size / runs
                    print(f"| {name} | {seconds:.1f} | {runs / seconds:.1f} | {1e3 * on.task_s:.2f} | {size:.0f} |", flush=True)
                if nodes == 4:
                    ray.shutdown()
                    lines, printed = killed(on.made.address, plan, Path(directory, "killed"), runs)
                    found.append(printed)
                    print("\n| killed at | runs kept before | after |\n|---|---|---|\n" + "\n".join(lines), flush=True)
        shards = [Path(directory, f"shard{i}") for i in range(2)]
        for i, shard in enumerate(shards):
            subprocess.run([program, "sweep", plan, f"--shard={i}/2", f"--state={shard}"], check=True, capture_output=True)
        merge = [f"--merge={shard}" for shard in shards]
        ran = subprocess.run([program, "sweep", plan, "--json", *merge], check=True, capture_output=True, text=True)
        found.append(ran.stdout)
        assert len(set(found)) == 1
        print(f"\nresults_sha256 of all {len(found)}: {local.data['summary']['results_sha256']}; load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
