//! A table in memory, column by column.

use std::collections::HashMap;

use crate::row::{COLUMNS, Cell, Kind, Row};

/// A table that is being gathered.
#[derive(Debug)]
pub struct Memory(Vec<Values>);

/// The values of a column; a row without one has `None`.
#[derive(Debug)]
pub enum Values {
    /// Texts, each of which stands once.
    Text(Texts),
    /// In a column of integers.
    Integer(Vec<Option<u64>>),
    /// In a column of numbers.
    Number(Vec<Option<f64>>),
}

/// A column of texts.
#[derive(Debug, Default)]
pub struct Texts {
    /// The different texts.
    pub texts: Vec<String>,
    /// For each row the number of its text.
    pub rows: Vec<Option<u32>>,
    numbers: HashMap<String, u32>,
}

impl Default for Memory {
    fn default() -> Self {
        Memory(COLUMNS.iter().map(|column| Values::new(column.kind)).collect())
    }
}

impl Memory {
    /// Adds a row.
    pub fn push(&mut self, row: &Row<'_>) {
        self.0.iter_mut().zip(row.cells()).for_each(|(values, cell)| values.push(cell));
    }

    /// The columns, in the order of [`COLUMNS`].
    pub fn into_columns(self) -> Vec<Values> {
        self.0
    }
}

impl Values {
    /// No rows yet.
    pub fn new(kind: Kind) -> Values {
        match kind {
            Kind::Text => Values::Text(Texts::default()),
            Kind::Integer => Values::Integer(Vec::new()),
            Kind::Number => Values::Number(Vec::new()),
        }
    }

    /// Adds a row, of which a value of another kind is a missing one.
    pub fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Values::Text(column), Cell::Text(text)) => column.push(text),
            (Values::Text(column), _) => column.rows.push(None),
            (Values::Integer(rows), Cell::Integer(value)) => rows.push(Some(value)),
            (Values::Integer(rows), _) => rows.push(None),
            (Values::Number(rows), Cell::Number(value)) => rows.push(Some(value)),
            (Values::Number(rows), _) => rows.push(None),
        }
    }
}

impl Texts {
    fn push(&mut self, text: &str) {
        let number = self.numbers.get(text).copied().unwrap_or_else(|| {
            let next = self.texts.len() as u32;
            self.texts.push(text.to_owned());
            self.numbers.insert(text.to_owned(), next);
            next
        });
        self.rows.push(Some(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_once() {
        let mut values = Values::new(Kind::Text);
        for cell in [Cell::Text("a"), Cell::Missing, Cell::Text("b"), Cell::Text("a")] {
            values.push(cell);
        }
        let Values::Text(Texts { texts, rows, .. }) = values else { panic!("it is a column of texts") };
        assert_eq!((texts, rows), (vec!["a".into(), "b".into()], vec![Some(0), None, Some(1), Some(0)]));
    }
}
