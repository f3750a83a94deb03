//! Results as tables, for pandas, polars, DuckDB, R and spreadsheets: one row for each metric of each run.
//!
//! All commands write the same columns ([`COLUMNS`]), as CSV, as lines of JSON or as Parquet. A file is written row by
//! row, so that it may be larger than the memory. A program in the same process takes the rows as columns instead ([`Memory`]).

mod memory;
mod parquet;
mod row;
mod thrift;

use std::io::{self, Write};
use std::path::Path;

pub use memory::{Memory, Texts, Values};
pub use row::{COLUMNS, Cell, Column, Kind, Row, SCHEMA_VERSION, better, schema, verdict};

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// With a head, as in RFC 4180; a missing value is an empty field.
    Csv,
    /// An object a line; a missing value is `null`.
    Jsonl,
    /// Version 1 of the format, without compression; texts and integers have dictionaries.
    Parquet,
}

impl Format {
    /// All formats, by the ending of their files.
    pub const ALL: [(&str, Format); 3] =
        [("parquet", Format::Parquet), ("csv", Format::Csv), ("jsonl", Format::Jsonl)];

    /// The format that the ending of a file's name stands for.
    pub fn of(path: &Path) -> Option<Format> {
        let ending = path.extension()?.to_str()?;
        Format::ALL.into_iter().find(|(name, _)| *name == ending).map(|(_, format)| format)
    }
}

/// A table that is being written.
pub struct Table<W: Write>(Inner<W>);

enum Inner<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Jsonl(W),
    Parquet(parquet::Writer<W>),
}

impl<W: Write> Table<W> {
    /// A table without rows yet.
    ///
    /// # Errors
    /// The beginning cannot be written.
    pub fn new(format: Format, out: W) -> io::Result<Table<W>> {
        Ok(Table(match format {
            Format::Csv => {
                let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(out);
                csv.write_record(COLUMNS.iter().map(|column| column.name))?;
                Inner::Csv(Box::new(csv))
            }
            Format::Jsonl => Inner::Jsonl(out),
            Format::Parquet => Inner::Parquet(parquet::Writer::new(out)?),
        }))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn push(&mut self, row: &Row<'_>) -> io::Result<()> {
        match &mut self.0 {
            Inner::Csv(csv) => Ok(csv.serialize(row)?),
            Inner::Jsonl(out) => {
                serde_json::to_writer(&mut *out, row)?;
                out.write_all(b"\n")
            }
            Inner::Parquet(parquet) => parquet.push(row.cells()),
        }
    }

    /// Writes what is left, and gives back what it was written to.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            Inner::Csv(csv) => csv.into_inner().map_err(|error| error.into_error()),
            Inner::Jsonl(out) => Ok(out),
            Inner::Parquet(parquet) => parquet.finish(),
        }
    }
}
