"""Running inside a Python process: signals, threads, other processes."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import coreward
from coreward import Machine, Policy, Workload
from conftest import SMALL

#: It would take minutes.
LONG = "hackbench -g 40 -l 100000"


@pytest.mark.parametrize(
    "call",
    [
        lambda: coreward.simulate(LONG, "2c"),
        lambda: coreward.compare(LONG, "2c", "NO_SIS_UTIL"),
        lambda: coreward.matrix("NO_SIS_UTIL", machines="2c", workloads=LONG),
        lambda: coreward.sweep({"name": "s", "machines": ["2c"], "workloads": [LONG], "list": ["NO_SIS_UTIL"]}),
        lambda: coreward.explain(LONG, "2c", first=1_000_000),
    ],
)
def test_ctrl_c_stops_it_within_100_ms(call):
    sent = []

    def press():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.raises(KeyboardInterrupt):
        call()
    took = time.monotonic() - sent[0]
    assert took < 0.1
    # nothing goes on behind it
    time.sleep(0.1)
    used = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - used < 0.05


def test_ctrl_c_leaves_no_file(tmp_path):
    old = tmp_path / "kept.pftrace"
    old.write_text("old")
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        coreward.simulate(LONG, "2c", trace=old)
    time.sleep(0.1)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.pftrace"]
    assert old.read_text() == "old"


def test_signals_stay_pythons(tmp_path):
    """A file that replaces another has a temporary name, which the command line guards against signals."""
    file = tmp_path / "run.html"
    for _ in range(2):
        coreward.simulate(SMALL, "2c", html=file)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)


def test_other_threads_run_meanwhile():
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.wait(0.001):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    began = time.monotonic()
    coreward.simulate("hackbench -g 4 -l 300 --pipe", "8c")
    took = time.monotonic() - began
    done.set()
    thread.join()
    assert counted > 50 * took


def test_threads_get_the_results_of_one_thread():
    seeds = range(1, 9)
    alone = [coreward.simulate(SMALL, "2c", seed=seed) for seed in seeds]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda seed: coreward.simulate(SMALL, "2c", seed=seed), seeds)) == alone


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_specifications_go_to_other_processes_and_results_come_back(method):
    here = coreward.compare(SMALL, "2c", "NO_SIS_UTIL", runs=2)
    with multiprocessing.get_context(method).Pool(1) as pool:
        arguments = (Workload(SMALL), Machine("2c"), Policy(features="NO_SIS_UTIL"))
        assert pool.apply_async(coreward.compare, arguments, {"runs": 2}).get(60) == here
        with pytest.raises(coreward.Error, match="workload .nothing. is not known"):
            pool.apply_async(coreward.simulate, ("nothing", "2c")).get(60)


def test_specifications_and_results_can_be_pickled_and_compared():
    policy = Policy("6.5", ["NO_SIS_UTIL"], {"base_slice_ns": "2ms"}, {"tick_ns": 5}, "mine")
    machine = Machine.regular(nodes=2, llcs=4, cores=8, threads=2).with_costs(tick_ns=1)
    for what in (policy, machine, Workload(SMALL), coreward.simulate(SMALL, "2c")):
        again = pickle.loads(pickle.dumps(what))
        assert (again, hash(again), repr(again)) == (what, hash(what), repr(what))
    assert machine != Machine(machine.spec)
    assert coreward.simulate(SMALL, "2c") != coreward.simulate(SMALL, "2c", seed=2)


def test_importing_it_is_quick_and_loads_no_other_library():
    code = "import sys, coreward; print([m for m in ('numpy', 'pandas', 'polars', 'pyarrow', 'altair') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (lambda **said: coreward.compare(SMALL, "2c", "NO_SIS_UTIL", runs=3, **said), 6),
        (lambda **said: coreward.compare_experiment("experiments/negative-no-op.toml", runs=2, scale=0.001, **said), 4),
        (lambda **said: coreward.matrix("NO_SIS_UTIL", machines=["2c", "3c"], workloads=SMALL, runs=2, **said), 2),
        (lambda **said: coreward.sweep({"name": "s", "machines": ["2c"], "workloads": [SMALL], "list": ["NO_SIS_UTIL"]}, **said), 10),
    ],
)
def test_progress_is_told_to_the_end_in_the_callers_thread(call, number):
    seen, threads = [], set()

    def progress(done, total):
        seen.append((done, total))
        threads.add(threading.current_thread())

    found = call(progress=progress)
    assert seen[-1] == (number, number) and seen == sorted(seen)
    assert threads == {threading.current_thread()}
    assert found == call()


def test_what_progress_raises_stops_it_within_100_ms():
    raised = []

    def progress(done, total):
        raised.append(time.monotonic())
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        coreward.compare(LONG, "2c", "NO_SIS_UTIL", progress=progress)
    assert time.monotonic() - raised[0] < 0.1 and len(raised) == 1
