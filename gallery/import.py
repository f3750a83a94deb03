#!/usr/bin/env python3
"""Makes the gallery's workloads of its recordings: import.py DIRECTORY [TO], where record.sh wrote them.

Writes NAME.cww and recorded.json beside this file, or to TO: what was recorded of the imported tasks, to compare
simulations with. TO has to have the machine, here.toml. Needs coreward in PATH.
"""
import json
import pathlib
import re
import subprocess
import sys

FROM = pathlib.Path(sys.argv[1])
TO = pathlib.Path(sys.argv[2]) if sys.argv[2:] else pathlib.Path(__file__).parent
# the tasks that are imported, and how many seconds, so that the files stay small
ONLY = {
    "compile": (["make", "gcc", "cc1", "as"], None),
    "redis": (["redis-*"], 0.4),
    "nginx": (["nginx", "wrk"], 0.3),
    "postgres": (["postgres", "pgbench"], 0.2),
    "x264": (["x264"], 1.0),
}


# what the program says of its throughput; a compile is one piece of work
THROUGHPUT = {
    "redis": r"([0-9.]+) requests per second",
    "nginx": r"Requests/sec: +([0-9.]+)",
    "postgres": r"tps = ([0-9.]+)",
    "x264": r"([0-9.]+) fps",
}


def throughput(program, text, seconds):
    if program not in THROUGHPUT:
        return 1 / seconds
    return float(re.findall(THROUGHPUT[program], text)[-1])


def main():
    recorded = {}
    for program, (names, seconds) in ONLY.items():
        for cpus in ["2", "1"]:
            name = f"{program}-{cpus}"
            command = ["coreward", "import", FROM / f"{name}.cwr", "--machine", TO / "here.toml", "--json"]
            command += ["-o", TO / f"{name}.cww"]
            for only in names:
                command += ["--only", only]
            if seconds:
                command += ["--to", str(seconds)]
            report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            median, p99 = report["wakeup_latency_us"]
            waits = sum(report["waits"].values())
            text = (FROM / f"{name}.txt").read_text()
            recorded[name] = {
                "throughput": throughput(program, text, report["duration_s"]),
                "runtime_s": report["duration_s"],
                "cpu_s": sum(of["cpu_s"] for of in report["classes"]),
                "wakeups": waits,
                "switches": report["switches"],
                "wakeup_latency_us_p50": median,
                "wakeup_latency_us_p99": p99,
            }
    (TO / "recorded.json").write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")


main()
