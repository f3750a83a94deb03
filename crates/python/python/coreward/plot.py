# SPDX-License-Identifier: GPL-2.0-only
"""Plots of results, drawn by Altair (extra `plot` of the wheel). Each function returns a chart, which a notebook shows
and `chart.save("F.html")` writes.

Raises:
    ModuleNotFoundError: Altair is not installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import altair as alt

from ._results import Comparison, Matrix, Run, Sweep

#: Worse, better, and what is neither, as in coreward's own pages: told apart without colours, too, by their place.
_VERDICTS = alt.Scale(
    domain=["worse", "different", "not_shown", "untested", "better"],
    range=["#c0392b", "#8e44ad", "#7f8c8d", "#bdc3c7", "#2471a3"],
)


def changes(result: Comparison | Matrix | Sweep) -> alt.LayerChart:
    """How far each figure changes from the baseline's, in %, with its 95 % confidence interval; + is better."""
    table = result.table("changes" if isinstance(result, Comparison) else "cells")
    place = [name for name in ("machine", "case", "side") if name in table.names]
    values = [{**row, "figure": _label(row, place)} for row in table]
    base = alt.Chart(alt.Data(values=values)).encode(y=alt.Y("figure:N", sort=None, title=None))
    color = alt.Color("verdict:N", scale=_VERDICTS)
    bar = base.mark_rule().encode(
        x=alt.X("ci95_low_pct:Q", title="change, % (+ is better), with CI95"), x2="ci95_high_pct:Q", color=color
    )
    tooltip = [f"{name}:N" for name in table.names]
    point = base.mark_point(filled=True, size=60).encode(x="delta_pct:Q", color=color, tooltip=tooltip)
    zero = alt.Chart(alt.Data(values=[{"x": 0}])).mark_rule(strokeDash=[3, 3]).encode(x="x:Q")
    return zero + bar + point


def _label(row: dict[str, object], place: Sequence[str]) -> str:
    return " · ".join(str(row[name]) for name in (*place, "metric") if row[name] is not None)


def runs(result: Comparison, metric: str) -> alt.Chart:
    """The value of a metric in each run of each side, in the unit that its name ends with.

    Raises:
        KeyError: there is no such metric.
        ValueError: the comparison has several cases.
    """
    sides = [None, *(variant["label"] for variant in result.cases[0]["variants"])]
    baseline = result.cases[0]["baseline"]["label"]
    values = [
        {"side": baseline if side is None else side, "run": run, metric: value}
        for side in sides
        for run, value in enumerate(result.values(metric, side))
    ]
    encoding = {"x": alt.X(f"{metric}:Q", scale=alt.Scale(zero=False)), "y": alt.Y("side:N", sort=None, title=None)}
    return alt.Chart(alt.Data(values=values)).mark_tick().encode(**encoding, tooltip=["side:N", "run:Q", f"{metric}:Q"])


def latencies(results: Iterable[Run], *, by: str = "machine") -> alt.Chart:
    """The percentiles of wakeup latencies of several runs, in us, on a logarithmic scale.

    Args:
        by: what the runs differ in, one of `machine`, `workload`, `profile`, `seed`.
    """
    names = {f"wakeup_latency_us_{name}": name for name in ("p50", "p90", "p99", "p999")}
    values = [
        {by: run.data[by], "percentile": short, "wakeup_latency_us": run.metrics[name]}
        for run in results
        for name, short in names.items()
        if run.metrics.get(name)
    ]
    return (
        alt.Chart(alt.Data(values=values))
        .mark_line(point=True)
        .encode(
            x=alt.X("percentile:N", sort=list(names.values())),
            y=alt.Y("wakeup_latency_us:Q", scale=alt.Scale(type="log")),
            color=f"{by}:N",
            tooltip=[f"{by}:N", "percentile:N", "wakeup_latency_us:Q"],
        )
    )


def heat_map(result: Matrix, metric: str | None = None) -> alt.Chart:
    """The change of one figure of each cell of a matrix, in %: of a metric, or of the most important one of the cell."""
    seen: set[tuple[object, object]] = set()
    values = []
    for row in result.table("cells"):
        cell = (row["machine"], row["case"])
        if (metric or row["metric"]) == row["metric"] and cell not in seen:
            seen.add(cell)
            values.append(row)
    color = alt.Color("delta_pct:Q", title="change, %", scale=alt.Scale(scheme="redblue", domainMid=0))
    return (
        alt.Chart(alt.Data(values=values))
        .mark_rect()
        .encode(x="machine:N", y="case:N", color=color, tooltip=[f"{name}:N" for name in result.table("cells").names])
    )
