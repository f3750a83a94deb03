# SPDX-License-Identifier: GPL-2.0-only
"""Reads t.jsonl, t.csv and t.parquet by independent libraries, and compares them row by row."""

import csv
import json

import duckdb
import pyarrow.parquet

with open("t.jsonl", encoding="utf-8") as lines:
    rows = [json.loads(line) for line in lines]

file = pyarrow.parquet.ParquetFile("t.parquet")
assert file.metadata.num_row_groups == 3, file.metadata
assert file.metadata.metadata[b"coreward.schema_version"] == b"1"
assert file.schema_arrow.names == list(rows[0])
assert file.read().to_pylist() == rows, "pyarrow reads other values"

for name in rows[0]:
    values = duckdb.sql(f'select "{name}" from "t.parquet"').fetchall()
    assert [value for (value,) in values] == [row[name] for row in rows], f"duckdb: {name}"

with open("t.csv", encoding="utf-8", newline="") as text:
    fields = list(csv.DictReader(text))
assert len(fields) == len(rows)
for read, row in zip(fields, rows):
    for name, value in row.items():
        text = read[name]
        same = float(text) == value if isinstance(value, float) else text == str("" if value is None else value)
        assert same, f"CSV: {name} is {text!r}, not {value!r}"

print(len(rows), "rows")
