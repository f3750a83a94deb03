"""Specifications and results as objects."""

import inspect
import re
import warnings

import pytest

import coreward
from coreward import Machine, Policy, Workload
from conftest import SMALL


def test_a_policy_is_read_from_a_text_and_written_as_one():
    policy = Policy.parse("linux-7.3, NO_SIS_UTIL,base_slice_ns=2ms,tick_ns=100,policy=mine")
    assert policy == Policy("linux-7.3", ["NO_SIS_UTIL"], {"base_slice_ns": "2ms"}, {"tick_ns": "100"}, "mine")
    assert str(policy) == "linux-7.3,policy=mine,NO_SIS_UTIL,base_slice_ns=2ms,tick_ns=100"
    assert Policy.of(None) == Policy() and str(Policy()) == ""
    more = Policy("6.5").with_features("UTIL_EST").with_tunables(nr_migrate=8)
    assert str(more) == "linux-6.5,UTIL_EST,nr_migrate=8"


def test_costs_of_the_machine_hold_for_all_sides():
    plain = coreward.compare(SMALL, "2c", "NO_SIS_UTIL", runs=2)
    costly = coreward.compare(SMALL, Machine("2c", {"syscall_ns": 5000}), "NO_SIS_UTIL", runs=2)
    for side in (None, "NO_SIS_UTIL"):
        assert min(costly.values("runtime_s", side)) > max(plain.values("runtime_s", side))
    assert "syscall_ns" in Machine("2c").topology()["costs"]


def test_a_run_has_its_figures():
    run = coreward.simulate(SMALL, "2c", interval_s=0.001, seed=5)
    assert (run.machine, run.profile, run.seed) == ("2c", "linux-6.12", 5)
    assert run.workload.startswith("hackbench -g 1 -f 20 --process --pipe -l 20")
    assert run.metrics["runtime_s"] > 0 and sum(run.reasons.values()) > 0 and run.intervals
    assert run.violations == [] and run.notes == [] and run.remarks == ()
    assert sum(run.cpu_time_s.values()) == pytest.approx(2 * run.metrics["runtime_s"], rel=0.2)


def test_a_comparison_has_its_sides():
    found = coreward.compare(SMALL, "2c", ["seed=1", "syscall_ns=5000"], runs=3)
    assert found.verdicts["syscall_ns=5000", "messages_per_s"] == "worse"
    assert found.delta_pct("messages_per_s", "seed=1") == 0
    low, high = found.interval_pct("messages_per_s", "syscall_ns=5000")
    assert low < found.delta_pct("messages_per_s", "syscall_ns=5000") < high < 0
    assert len(found.values("runtime_s")) == 3
    with pytest.raises(KeyError):
        found.delta_pct("messages_per_s", "no such side")
    with pytest.raises(KeyError):
        found.delta_pct("no such metric")


def test_lists_are_sequences():
    decisions = coreward.explain(SMALL, "2c", first=5)
    assert len(decisions) == 5 and decisions[0]["event"] == "fork"
    assert [machine["name"] for machine in coreward.machines()]
    assert {row["name"] for row in coreward.features()} >= {"SIS_UTIL", "base_slice_ns"}


def test_an_import_becomes_a_workload(tmp_path):
    file = tmp_path / "perf.cww"
    imported = coreward.import_trace("crates/trace/tests/data/perf-pipe.data.gz", file)
    assert imported.classes
    with pytest.warns(coreward.Remark) as warned:
        run = coreward.simulate(Workload(file), "2c")
    assert "the machine of the recording was not given" in str(warned[0].message)
    assert run.metrics["wakeups"] > 0


def test_a_notebook_shows_every_result(measured):
    plan = {"name": "<s>", "machines": ["2c"], "workloads": [SMALL], "runs": 2, "list": ["NO_SIS_UTIL"]}
    run = coreward.simulate(SMALL, "2c")
    shown = {
        run: f"{run.metrics['messages_per_s']:,.6g}",
        coreward.compare(SMALL, "2c", "NO_SIS_UTIL", runs=2): "messages_per_s",
        coreward.matrix("NO_SIS_UTIL", machines="2c", workloads=SMALL, runs=2): "not_shown",
        coreward.sweep(plan): "NO_SIS_UTIL",
        coreward.explain(SMALL, "2c"): "SLOW_PATH_LOCAL",
        coreward.machines(): "epyc-9654-2s",
        coreward.import_trace("crates/trace/tests/data/perf-pipe.data.gz"): "explained_pct",
        coreward.validate(real=measured): "off_pct",
    }
    for result, text in shown.items():
        page = result._repr_html_()
        assert text in page, result
        assert page.count("<tr>") == page.count("</tr>") > 1 and "<s>" not in page
    assert "6 more rows: see data" in coreward.explain(SMALL, "2c", first=56)._repr_html_()


def test_everything_has_a_docstring_and_functions_say_what_they_raise():
    for name in coreward.__all__:
        thing = getattr(coreward, name)
        if not callable(thing):
            continue
        assert thing.__doc__, name
        if inspect.isfunction(thing) and inspect.signature(thing).parameters:
            assert "Raises:\n        Error: " in thing.__doc__, name
            described = set(re.findall(r"^ {8}(\w+): ", thing.__doc__, re.M))
            others = re.search(r"The other arguments are those of `(\w+)\(\)`", thing.__doc__)
            if others:
                described |= set(inspect.signature(getattr(coreward, others[1])).parameters)
            assert set(inspect.signature(thing).parameters) <= described, name


def test_what_is_specified_twice_is_refused():
    with pytest.raises(coreward.Error, match="the same on all machines"):
        coreward.matrix("NO_SIS_UTIL", machines=Machine("2c", {"tick_ns": 1}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coreward.simulate(SMALL, "2c")
