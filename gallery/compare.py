#!/usr/bin/env python3
"""Compares the gallery's recordings with their simulations, on the same CPUs and carried to the other number of CPUs.

Needs coreward in PATH. Prints tables for docs/results/gallery.md.
"""
import gzip
import json
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
# figure of recorded.json, metric, how far it may be off in percent
FIGURES = [
    ("runtime_s", "runtime_s", 10),
    ("cpu_s", "tasks_s", 5),
    ("wakeups", "wakeups", 10),
    ("wakeup_latency_us_p50", "wakeup_latency_us_p50", 25),
    ("wakeup_latency_us_p99", "wakeup_latency_us_p99", 50),
]


def metrics(path):
    command = ["coreward", "run", path, "--machine", HERE / "here.toml", "--json"]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    report = json.loads(ran.stdout)
    # what happens while a CPU is idle is not in the recorded tasks' time
    idle = report["cpu_time_s"]["interrupt"] + report["cpu_time_s"]["idle_exit"]
    return report["metrics"] | {"tasks_s": report["metrics"]["busy_s"] - idle}


def on_cpus(name, cpus, directory):
    """The workload with another affinity."""
    workload = json.loads(gzip.decompress((HERE / f"{name}.cww").read_bytes()))
    for task in workload["tasks"]:
        task.pop("cpus", None)
        if cpus == 1:
            task["cpus"] = [0]
    path = pathlib.Path(directory) / f"{name}-on-{cpus}.cww"
    path.write_text(json.dumps(workload))
    return path


def row(name, figures, simulated):
    cells = []
    for figure, metric, allowed in FIGURES:
        real, got = figures[figure], simulated[metric]
        off = 100 * (got / real - 1)
        sign = "" if abs(off) <= allowed else " **✗**"
        cells.append(f"{real:.4g} / {got:.4g} ({off:+.0f} %){sign}")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main():
    recorded = json.loads((HERE / "recorded.json").read_text())
    head = "| recording | runtime, s | CPU time, s | wakeups | latency p50, us | latency p99, us |\n|---|---|---|---|---|---|"
    print(head)
    for name, figures in recorded.items():
        row(name, figures, metrics(HERE / f"{name}.cww"))
    print("\n| carried | throughput there / predicted | latency p99 there / predicted, us |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        for name, here in recorded.items():
            program, cpus = name.rsplit("-", 1)
            to = 3 - int(cpus)
            there = recorded[f"{program}-{to}"]
            simulated = metrics(on_cpus(name, to, directory))
            # the same work in another time
            predicted = here["throughput"] * here["runtime_s"] / simulated["runtime_s"]
            cells = []
            for real, got, allowed in [
                (there["throughput"], predicted, 10),
                (there["wakeup_latency_us_p99"], simulated["wakeup_latency_us_p99"], 50),
            ]:
                off = 100 * (got / real - 1)
                sign = "" if abs(off) <= allowed else " **✗**"
                cells.append(f"{real:.4g} / {got:.4g} ({off:+.0f} %){sign}")
            print(f"| {program}, {cpus} to {to} CPUs | {' | '.join(cells)} |", flush=True)


main()
