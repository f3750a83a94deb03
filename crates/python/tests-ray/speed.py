"""How fast a sweep is without Ray, with a node, and with four; all results have to be the same bytes.

python crates/python/tests-ray/speed.py, in the environment of `make check-ray`. Writes lines for docs/results/cluster.md.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ray
from ray.cluster_utils import Cluster

import coreward
from coreward import cluster

#: 120 runs.
PLAN = {
    "name": "speed",
    "machines": ["2n2l2c2t"],
    "workloads": ["hackbench -g 4 -f 4 --threads --pipe -l 8000"],
    "runs": 5,
    "latin_hypercube": {"points": 23, "vary": {"pipe_op_ns": {"from": 200, "to": 5000, "log": True}}},
}
RUNS = 120
NODE = {"object_store_memory": 80 << 20}


def timed(work):
    began = time.monotonic()
    result = work()
    return time.monotonic() - began, result


def on_ray(directory, name, nodes, cpus, task_s):
    """The seconds of a sweep, with workers that are warm, and what it came to."""
    made = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": cpus, "include_dashboard": False})
    for _ in range(nodes - 1):
        made.add_node(**NODE, num_cpus=cpus)
    made.wait_for_nodes()
    package = str(Path(coreward.__file__).parent)
    ray.init(address=made.address, runtime_env={"py_modules": [package]}, log_to_driver=False, logging_level="warning")
    try:
        # one after the other, so that nothing but Ray takes time
        nothing = ray.remote(lambda: None)
        ray.get([nothing.remote() for _ in range(50)])
        each_s, _ = timed(lambda: [ray.get(nothing.remote()) for _ in range(200)])
        state = Path(directory, f"{name}.state")
        seconds, found = timed(lambda: cluster.sweep(PLAN, state=state, task_s=task_s))
        return seconds, found, each_s / 200, state.stat().st_size
    finally:
        ray.shutdown()
        made.shutdown()


def main():
    with tempfile.TemporaryDirectory() as directory:
        print("| how | s | runs/s | ms per empty task | bytes kept per run |\n|---|---|---|---|---|")
        found = []
        for jobs in (1, 2):
            seconds, local = timed(lambda: coreward.sweep(PLAN, jobs=jobs))
            found.append(local.json)
            print(f"| local, {jobs} at once | {seconds:.2f} | {RUNS / seconds:.1f} | | |", flush=True)
        for nodes, cpus, task_s in ((1, 2, 0), (1, 2, 5), (4, 1, 0), (4, 1, 5)):
            name = f"Ray, {nodes} nodes of {cpus} CPUs, task_s={task_s}"
            seconds, swept, task, size = on_ray(directory, f"{nodes}-{task_s}", nodes, cpus, task_s)
            found.append(swept.json)
            print(f"| {name} | {seconds:.2f} | {RUNS / seconds:.1f} | {1e3 * task:.2f} | {size / RUNS:.0f} |", flush=True)
        shards = [Path(directory, f"shard{i}") for i in range(3)]
        plan = Path(directory, "plan.toml")
        program, hypercube = sys.argv[1], PLAN["latin_hypercube"]
        plan.write_text(
            "".join(f"{key} = {PLAN[key]!r}\n" for key in ("name", "machines", "workloads", "runs"))
            + f"[latin_hypercube]\npoints = {hypercube['points']}\n[latin_hypercube.vary]\n"
            + "pipe_op_ns = { from = 200, to = 5000, log = true }\n"
        )
        for i, shard in enumerate(shards):
            subprocess.run([program, "sweep", plan, f"--shard={i}/3", f"--state={shard}"], check=True, capture_output=True)
        merge = [f"--merge={shard}" for shard in shards]
        ran = subprocess.run([program, "sweep", plan, "--json", *merge], check=True, capture_output=True, text=True)
        found.append(ran.stdout)
        assert len(set(found)) == 1
        print(f"\nresults_sha256 of all {len(found)}, the last one three shards of {Path(program).name}: {local.data['summary']['results_sha256']}")


if __name__ == "__main__":
    main()
