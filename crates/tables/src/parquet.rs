//! Parquet, as far as these tables need it: flat columns of texts, integers and numbers, without compression. All
//! libraries that write it are, or contain, code under Apache-2.0 alone, which GPL-2.0-only programs cannot take.
//!
//! Rows are gathered in groups. A group has, column by column, a page with the values of the dictionary if there is one,
//! and a page with the values of the rows, as numbers of the dictionary or as they are. The metadata stands at the end.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::row::{COLUMNS, Cell, Column, Kind, SCHEMA_VERSION};
use crate::thrift::{Struct, varint};

/// The first and the last bytes of a file.
const MAGIC: &[u8] = b"PAR1";
/// Rows of a group, which are in memory: 1 to 4 MiB.
const GROUP: usize = 1 << 16;

// physical types
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
// converted types, which older readers know
const UTF8: i32 = 0;
const UINT_64: i32 = 14;
// encodings
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
// pages
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;

/// A file that is being written.
pub(crate) struct Writer<W: Write> {
    out: W,
    /// Bytes written so far.
    at: u64,
    columns: Vec<Values>,
    /// Rows that have been written, and those that are gathered.
    written: usize,
    gathered: usize,
    groups: Vec<Struct>,
}

/// The values of a column in a group of rows.
#[derive(Default)]
struct Values {
    /// Which rows have a value.
    present: Vec<u32>,
    /// The values one after the other: of the dictionary, or of the rows.
    plain: Vec<u8>,
    /// For each value in the dictionary its number.
    dictionary: HashMap<Vec<u8>, u32>,
    /// The numbers of the rows' values.
    numbers: Vec<u32>,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(mut out: W) -> io::Result<Writer<W>> {
        out.write_all(MAGIC)?;
        let columns = COLUMNS.iter().map(|_| Values::default()).collect();
        Ok(Writer { out, at: MAGIC.len() as u64, columns, written: 0, gathered: 0, groups: Vec::new() })
    }

    pub(crate) fn push(&mut self, cells: [Cell<'_>; COLUMNS.len()]) -> io::Result<()> {
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        self.gathered += 1;
        if self.gathered == GROUP { self.group() } else { Ok(()) }
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        if self.gathered > 0 {
            self.group()?;
        }
        let version = SCHEMA_VERSION.to_string();
        let key = Struct::default().text(1, "coreward.schema_version").text(2, &version);
        let root = Struct::default().text(4, "schema").i32(5, COLUMNS.len() as i32);
        let elements: Vec<Struct> = std::iter::once(root).chain(COLUMNS.iter().map(schema_element)).collect();
        let metadata = Struct::default()
            .i32(1, 1)
            .structs(2, elements.into_iter())
            .i64(3, self.written as i64)
            .structs(4, std::mem::take(&mut self.groups).into_iter())
            .structs(5, std::iter::once(key))
            .text(6, concat!("coreward version ", env!("CARGO_PKG_VERSION")))
            .end();
        self.write(&metadata)?;
        self.write(&(metadata.len() as u32).to_le_bytes())?;
        self.write(MAGIC)?;
        Ok(self.out)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// Writes the rows that are gathered.
    fn group(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.gathered);
        let start = self.at;
        let mut chunks = Vec::new();
        for (i, column) in COLUMNS.iter().enumerate() {
            let values = std::mem::take(&mut self.columns[i]);
            chunks.push(self.chunk(column, &values)?);
        }
        let bytes = (self.at - start) as i64;
        self.groups.push(Struct::default().structs(1, chunks.into_iter()).i64(2, bytes).i64(3, rows as i64));
        self.written += rows;
        Ok(())
    }

    /// Writes a column of a group; its metadata.
    fn chunk(&mut self, column: &Column, values: &Values) -> io::Result<Struct> {
        let rows = values.present.len() as i32;
        let start = self.at;
        let has_dictionary = column.kind != Kind::Number;
        if has_dictionary {
            let head = Struct::default().i32(1, values.dictionary.len() as i32).i32(2, PLAIN);
            self.page(DICTIONARY_PAGE, 7, head, &values.plain)?;
        }
        let data = self.at;
        let encoding = if has_dictionary { RLE_DICTIONARY } else { PLAIN };
        let head = Struct::default().i32(1, rows).i32(2, encoding).i32(3, RLE).i32(4, RLE);
        self.page(DATA_PAGE, 5, head, &values.page(column))?;
        let bytes = (self.at - start) as i64;
        let metadata = Struct::default()
            .i32(1, physical(column.kind))
            .i32s(2, &[PLAIN, RLE, encoding])
            .texts(3, &[column.name])
            .i32(4, 0) // uncompressed
            .i64(5, rows.into())
            .i64(6, bytes)
            .i64(7, bytes)
            .i64(9, data as i64);
        let metadata = if has_dictionary { metadata.i64(11, start as i64) } else { metadata };
        Ok(Struct::default().i64(2, start as i64).inner(3, metadata))
    }

    fn page(&mut self, kind: i32, number: u8, head: Struct, bytes: &[u8]) -> io::Result<()> {
        let size = bytes.len() as i32;
        let head = Struct::default().i32(1, kind).i32(2, size).i32(3, size).inner(number, head);
        self.write(&head.end())?;
        self.write(bytes)
    }
}

impl Values {
    fn push(&mut self, cell: Cell<'_>) {
        self.present.push(u32::from(cell != Cell::Missing));
        match cell {
            Cell::Text(text) => self.look_up(&(text.len() as u32).to_le_bytes(), text.as_bytes()),
            Cell::Integer(value) => self.look_up(&[], &value.to_le_bytes()),
            Cell::Number(value) => self.plain.extend(value.to_le_bytes()),
            Cell::Missing => {}
        }
    }

    /// Adds a value's number, and, if it is new, the value with what stands before it.
    fn look_up(&mut self, before: &[u8], value: &[u8]) {
        let number = self.dictionary.get(value).copied().unwrap_or_else(|| {
            let next = self.dictionary.len() as u32;
            self.plain.extend([before, value].concat());
            self.dictionary.insert(value.to_vec(), next);
            next
        });
        self.numbers.push(number);
    }

    /// The page of the rows: which have a value, then the values.
    fn page(&self, column: &Column) -> Vec<u8> {
        let mut page = Vec::new();
        if column.optional {
            let levels = run_lengths(&self.present, 1);
            page.extend((levels.len() as u32).to_le_bytes());
            page.extend(levels);
        }
        if column.kind == Kind::Number {
            page.extend(&self.plain);
        } else {
            let bits = (self.dictionary.len().max(2) - 1).ilog2() + 1;
            page.push(bits as u8);
            page.extend(run_lengths(&self.numbers, bits));
        }
        page
    }
}

/// Numbers of so many bits as runs of equal ones: twice the length, then the number.
fn run_lengths(numbers: &[u32], bits: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for run in numbers.chunk_by(|a, b| a == b) {
        varint(&mut out, (run.len() as u64) << 1);
        out.extend(&run[0].to_le_bytes()[..bits.div_ceil(8) as usize]);
    }
    out
}

fn physical(kind: Kind) -> i32 {
    match kind {
        Kind::Text => BYTE_ARRAY,
        Kind::Integer => INT64,
        Kind::Number => DOUBLE,
    }
}

fn schema_element(column: &Column) -> Struct {
    let element = Struct::default()
        .i32(1, physical(column.kind))
        .i32(3, i32::from(column.optional))
        .text(4, column.name);
    match column.kind {
        Kind::Text => element.i32(6, UTF8).inner(10, Struct::default().inner(1, Struct::default())),
        Kind::Integer => {
            let integer = Struct::default().i8(1, 64).bool(2, false);
            element.i32(6, UINT_64).inner(10, Struct::default().inner(10, integer))
        }
        Kind::Number => element,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_their_length_and_a_number() {
        assert!(run_lengths(&[], 1).is_empty());
        assert_eq!(run_lengths(&[1, 1, 1, 0], 1), [6, 1, 2, 0]);
        assert_eq!(run_lengths(&[300; 100], 9), [0xc8, 1, 0x2c, 1]);
    }

    #[test]
    fn a_value_stands_once_in_the_dictionary() {
        let mut values = Values::default();
        for text in ["a", "b", "a"] {
            values.push(Cell::Text(text));
        }
        values.push(Cell::Missing);
        assert_eq!(values.plain, [1, 0, 0, 0, b'a', 1, 0, 0, 0, b'b']);
        assert_eq!((values.numbers, values.present), (vec![0, 1, 0], vec![1, 1, 1, 0]));
    }
}
