"""Results as tables of other libraries, and as plots."""

import gc
import pickle
import resource

import altair
import duckdb
import pandas
import polars
import pyarrow
import pytest

import coreward
from coreward import Table, plot
from conftest import SMALL


@pytest.fixture(scope="module")
def results(measured):
    plan = {"name": "s", "machines": ["2c"], "workloads": [SMALL], "runs": 2, "list": ["NO_SIS_UTIL", "linux-7.3"]}
    return {
        "run": coreward.simulate(SMALL, "2c"),
        "comparison": coreward.compare(SMALL, "2c", ["NO_SIS_UTIL", "syscall_ns=5000"], runs=3),
        "matrix": coreward.matrix("syscall_ns=5000", machines=["2c", "4c"], workloads=SMALL, runs=2),
        "sweep": coreward.sweep(plan),
        "decisions": coreward.explain(SMALL, "2c", first=20),
        "machines": coreward.machines(),
        "features": coreward.features(),
        "validation": coreward.validate(real=measured),
        "imported": coreward.import_trace("crates/trace/tests/data/perf-pipe.data.gz"),
    }


TABLE = Table.of_rows(
    ("name", "count", "value_us", "nothing"),
    [("a", 1, 0.5, None), (None, None, None, None), ("ü", 2**64 - 1, 3, None), ("a", 0, -1.5, None)]
    + [("b", 7, 1.0, None)] * 20,
)


def test_every_table_is_taken_by_every_library(results):
    for result in results.values():
        for name in result.tables:
            table = taken = result.table(name)
            assert len(taken) > 0
            assert polars.DataFrame(table).to_dicts() == table.to_rows()
            assert pyarrow.table(table).to_pylist() == table.to_rows()
            assert duckdb.sql("FROM taken").fetchall() == [tuple(row.values()) for row in table]
            assert list(pandas.DataFrame.from_arrow(table).columns) == list(table.names)


def test_a_result_is_its_first_table(results):
    for result in results.values():
        assert polars.DataFrame(result).to_dicts() == result.table().to_rows() == result.table(result.tables[0]).to_rows()
        with pytest.raises(KeyError):
            result.table("no such table")


def test_kinds_and_missing_values_arrive():
    arrow = pyarrow.table(TABLE)
    text = pyarrow.dictionary(pyarrow.int32(), pyarrow.utf8())
    assert arrow.schema.types == [text, pyarrow.uint64(), pyarrow.float64(), text]
    assert [column.null_count for column in arrow.columns] == [1, 1, 1, 24]
    arrow.validate(full=True)
    assert arrow.to_pylist() == TABLE.to_rows()
    assert TABLE.to_polars()["count"].max() == 2**64 - 1
    assert TABLE.to_pandas()["value_us"].sum() == 22.0
    array = pyarrow.record_batch(TABLE)
    assert array.num_rows == len(TABLE) == 24 and pyarrow.schema(TABLE) == arrow.schema
    assert pickle.loads(pickle.dumps(TABLE)) == TABLE != Table.of_rows(("name",), [])
    empty = Table.of_rows(("name", "count"), [])
    assert pyarrow.table(empty).num_rows == 0 and polars.DataFrame(empty).shape == (0, 2)
    assert "<td" in TABLE._repr_html_()


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError):
        Table.of_rows(("a", "b"), [(1,)])
    for columns, error in [
        ([("a", "text", ["x"]), ("b", "text", [])], ValueError),
        ([("a", "colour", [])], TypeError),
        ([("a", "text", [1])], TypeError),
        ([("a", "integer", [-1])], OverflowError),
        ([("a\0", "text", [])], ValueError),
    ]:
        with pytest.raises(error):
            Table(coreward._native.Columns(columns))


def test_memory_is_given_back():
    """Whether the capsule, the table or a part of it is dropped first."""
    table = Table.of_rows(("text", "number"), [(f"text {i}", i / 7) for i in range(20000)])

    def rounds(number):
        for _ in range(number):
            table.__arrow_c_stream__()
            table.__arrow_c_array__()
            taken = pyarrow.table(table)
            part = taken.column("text").slice(3, 4)
            del taken
            assert part.to_pylist()[0] == "text 3"
            polars.DataFrame(table)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert rounds(200) - rounds(20) < 20_000  # KiB


def test_columns_have_their_units(results):
    plain = {"value", "count", "decisions", "tasks", "mean", "baseline_mean", "cpus_scanned", "groups_scanned", "better"}
    plain |= {"schema_version", "cpus", "scale", "task_group_depth", "run", "seed", "p_value"}
    plain |= {"within", "worse", "pid", "this_cpu", "prev_cpu", "target", "cpu", "real", "simulated"}
    for result in results.values():
        for name in result.tables:
            for column, values in result.table(name).to_dict().items():
                number = any(isinstance(value, (int, float)) for value in values)
                assert not number or column in plain or column.endswith(("_s", "_ns", "_us", "_pct")), (name, column)


def test_plots_show_the_figures(results):
    comparison, matrix, sweep, run = (results[name] for name in ("comparison", "matrix", "sweep", "run"))
    charts = [
        (plot.changes(comparison), comparison.delta_pct("messages_per_s", "syscall_ns=5000")),
        (plot.changes(matrix), matrix.cells[0]["figures"][0]["delta_pct"]),
        (plot.changes(sweep), sweep.cells[0]["figures"][0]["delta_pct"]),
        (plot.runs(comparison, "runtime_s"), comparison.values("runtime_s")[2]),
        (plot.latencies([run]), run.metrics["wakeup_latency_us_p99"]),
        (plot.heat_map(matrix), matrix.cells[0]["figures"][0]["delta_pct"]),
        (plot.heat_map(matrix, "cpu_migrations"), None),
    ]
    for chart, figure in charts:
        page = chart.to_html()
        assert isinstance(chart, altair.TopLevelMixin) and '"$schema"' in page
        assert figure is None or repr(figure) in page
