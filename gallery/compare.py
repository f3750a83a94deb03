#!/usr/bin/env python3
"""Compares the gallery's recordings with their simulations: on the same CPUs, carried to the other number of CPUs, and
synthesized: compare.py [DIRECTORY...], what import.py wrote there, otherwise beside this file.

Of several directories, a cell has the medians, and the median of how far each simulation is off. Needs coreward in PATH.
Prints tables for docs/results/gallery.md and docs/results/import.md.
"""
import gzip
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

DIRECTORIES = [pathlib.Path(name) for name in sys.argv[1:]] or [pathlib.Path(__file__).parent]
# figure of recorded.json, metric, how far it may be off in percent
FIGURES = [
    ("runtime_s", "runtime_s", 10),
    ("cpu_s", "tasks_s", 5),
    ("wakeups", "wakeups", 10),
    ("wakeup_latency_us_p50", "wakeup_latency_us_p50", 25),
    ("wakeup_latency_us_p99", "wakeup_latency_us_p99", 50),
]


def metrics(workload, directory):
    command = ["coreward", "run", workload, "--machine", directory / "here.toml", "--json"]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    report = json.loads(ran.stdout)
    # what happens while a CPU is idle is not in the recorded tasks' time
    idle = report["cpu_time_s"]["interrupt"] + report["cpu_time_s"]["idle_exit"]
    return report["metrics"] | {"tasks_s": report["metrics"]["busy_s"] - idle}


def read(path):
    return json.loads(gzip.decompress(path.read_bytes()))


def turns(workload):
    """What a synthetic workload counts as events: what a task does until it waits."""
    # what is taken at once is one wait
    waits = r"[aqsu]\d|t(\d+)(?! t\1\b)"
    return sum(len(re.findall(waits, task["steps"])) + 1 for task in workload["tasks"])


def rates(name, figures, directory):
    """What was recorded, replayed and synthesized in a second."""
    recorded_s, path = figures["runtime_s"], directory / f"{name}.cww"
    counted = turns(read(path))
    replayed, made = metrics(path, directory), metrics(f"{path} --time {recorded_s:.3f}", directory)
    columns = [(recorded_s, figures | {"events": counted, "tasks_s": figures["cpu_s"]})]
    columns += [(replayed["runtime_s"], replayed | {"events": counted}), (made["runtime_s"], made)]
    found = [[of[metric] / seconds for seconds, of in columns] for metric in ("events", "tasks_s", "wakeups")]
    return found + [[of[f"wakeup_latency_us_{part}"] for _, of in columns] for part in ("p50", "p99")]


def on_cpus(name, cpus, directory, out):
    """The workload with another affinity."""
    workload = read(directory / f"{name}.cww")
    for task in workload["tasks"]:
        task.pop("cpus", None)
        task["steps"] = " ".join(step for step in task["steps"].split() if step[0] != "c")
        if cpus == 1:
            task["cpus"] = [0]
    path = pathlib.Path(out) / f"{name}-on-{cpus}.cww"
    path.write_text(json.dumps(workload))
    return path


def same(name, recorded, directory):
    """Recorded and simulated figures on the same CPUs."""
    simulated = metrics(directory / f"{name}.cww", directory)
    return [(recorded[name][figure], simulated[metric]) for figure, metric, _ in FIGURES]


def carried(name, recorded, directory):
    """Throughput and latencies on the other number of CPUs, recorded there and predicted."""
    program, cpus = name.rsplit("-", 1)
    here, there = recorded[name], recorded[f"{program}-{3 - int(cpus)}"]
    with tempfile.TemporaryDirectory() as out:
        simulated = metrics(on_cpus(name, 3 - int(cpus), directory, out), directory)
    # the same work in another time
    predicted = here["throughput"] * here["runtime_s"] / simulated["runtime_s"]
    p99 = "wakeup_latency_us_p99"
    return [(there["throughput"], predicted), (there[p99], simulated[p99])]


def row(name, rounds, allowed):
    """A row of pairs of real and simulated figures, each of which may be off by so many percent."""
    cells = []
    for pairs, limit in zip(zip(*rounds), allowed):
        real, got = (statistics.median(figures) for figures in zip(*pairs))
        off = 100 * statistics.median(simulated / recorded - 1 for recorded, simulated in pairs)
        sign = "" if abs(off) <= limit else " **✗**"
        cells.append(f"{real:.4g} / {got:.4g} ({off:+.0f} %){sign}")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def apart(name, recorded):
    """A row of how far the recordings are from their median."""
    cells = []
    for figure, _, _ in FIGURES:
        values = [of[name][figure] for of in recorded.values()]
        low, high = (100 * (of(values) / statistics.median(values) - 1) for of in (min, max))
        cells.append(f"{low:+.0f} to {high:+.0f} %")
    print(f"| {name} | {' | '.join(cells)} |")


def main():
    recorded = {directory: json.loads((directory / "recorded.json").read_text()) for directory in DIRECTORIES}
    names = list(recorded[DIRECTORIES[0]])
    print("| recording | runtime, s | CPU time, s | wakeups | latency p50, us | latency p99, us |\n|---|---|---|---|---|---|")
    for name in names:
        row(name, [same(name, recorded[of], of) for of in DIRECTORIES], [limit for _, _, limit in FIGURES])
    if len(DIRECTORIES) > 1:
        print("\n| recordings | runtime | CPU time | wakeups | latency p50 | latency p99 |\n|---|---|---|---|---|---|")
        for name in names:
            apart(name, recorded)
    print("\n| carried | throughput there / predicted | latency p99 there / predicted, us |\n|---|---|---|")
    for name in names:
        program, cpus = name.rsplit("-", 1)
        rounds = [carried(name, recorded[of], of) for of in DIRECTORIES]
        row(f"{program}, {cpus} to {3 - int(cpus)} CPUs", rounds, [10, 50])
    print("\n| recorded / replayed / synthetic | turns per s | CPU time per s | wakeups per s | latency p50, us | p99, us |")
    print("|---|---|---|---|---|---|")
    for name in names:
        rounds = [rates(name, recorded[of][name], of) for of in DIRECTORIES]
        medians = [[statistics.median(figures) for figures in zip(*cell)] for cell in zip(*rounds)]
        cells = [" / ".join(f"{figure:.4g}" for figure in cell) for cell in medians]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


main()
