#!/usr/bin/env python3
"""Compares the gallery's recordings with their simulations: on the same CPUs, carried to the other number of CPUs, and
synthesized.

Needs coreward in PATH. Prints tables for docs/results/gallery.md and docs/results/import.md.
"""
import gzip
import json
import pathlib
import re
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


def metrics(workload):
    command = ["coreward", "run", workload, "--machine", HERE / "here.toml", "--json"]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    report = json.loads(ran.stdout)
    # what happens while a CPU is idle is not in the recorded tasks' time
    idle = report["cpu_time_s"]["interrupt"] + report["cpu_time_s"]["idle_exit"]
    return report["metrics"] | {"tasks_s": report["metrics"]["busy_s"] - idle}


def read(name):
    return json.loads(gzip.decompress((HERE / f"{name}.cww").read_bytes()))


def turns(workload):
    """What a synthetic workload counts as events: what a task does until it waits."""
    return sum(len(re.findall(r"[atqsu]\d", task["steps"])) + 1 for task in workload["tasks"])


def synthetic(name, figures):
    """What was recorded, replayed and synthesized in a second."""
    recorded_s = figures["runtime_s"]
    counted = turns(read(name))
    replayed, made = metrics(HERE / f"{name}.cww"), metrics(f"{HERE / name}.cww --time {recorded_s:.3f}")
    columns = [(recorded_s, figures | {"events": counted, "tasks_s": figures["cpu_s"]})]
    columns += [(replayed["runtime_s"], replayed | {"events": counted}), (made["runtime_s"], made)]
    rates = [[of[metric] / seconds for seconds, of in columns] for metric in ("events", "tasks_s", "wakeups")]
    latencies = [[of[f"wakeup_latency_us_{part}"] for _, of in columns] for part in ("p50", "p99")]
    cells = [" / ".join(f"{figure:.4g}" for figure in cell) for cell in rates + latencies]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def on_cpus(name, cpus, directory):
    """The workload with another affinity."""
    workload = read(name)
    for task in workload["tasks"]:
        task.pop("cpus", None)
        task["steps"] = " ".join(step for step in task["steps"].split() if step[0] != "c")
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
    print("\n| recorded / replayed / synthetic | turns per s | CPU time per s | wakeups per s | latency p50, us | p99, us |")
    print("|---|---|---|---|---|---|")
    for name, figures in recorded.items():
        synthetic(name, figures)


main()
