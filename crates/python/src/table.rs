//! A table in Python, column by column.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use coreward_tables::{COLUMNS, Cell, Kind, Memory, Texts, Values};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::arrow::{Array, Buffer, Data, Schema, Stream};

/// Columns of equal length.
#[pyclass(frozen, module = "coreward._native")]
pub(crate) struct Columns(Arc<Data>);

impl Columns {
    /// The rows that a command would have written to a file.
    pub(crate) fn of_rows(rows: Memory) -> PyResult<Columns> {
        let names = COLUMNS.iter().map(|column| column.name.to_owned());
        Columns::new(names.zip(rows.into_columns()))
    }

    fn new(columns: impl Iterator<Item = (String, Values)>) -> PyResult<Columns> {
        let children = columns.map(|(name, values)| Ok(Arc::new(data(name, values)?)));
        let children = children.collect::<PyResult<Vec<_>>>()?;
        let length = children.first().map_or(0, |column| column.length);
        if children.iter().any(|column| column.length != length) {
            return Err(PyValueError::new_err("the columns differ in length"));
        }
        let (name, format, buffers) = (CString::default(), c"+s", vec![None]);
        Ok(Columns(Arc::new(Data { name, format, length, missing: 0, buffers, children, dictionary: None })))
    }
}

#[pymethods]
impl Columns {
    /// Columns by name, kind (`text`, `integer` or `number`) and values, of which None is a missing one.
    #[new]
    fn of_lists(columns: Vec<(String, String, Vec<Bound<'_, PyAny>>)>) -> PyResult<Columns> {
        let column = |(name, kind, list): (String, String, Vec<Bound<'_, PyAny>>)| {
            let values = values(&kind, &list)?;
            Ok((name, values))
        };
        Columns::new(columns.into_iter().map(column).collect::<PyResult<Vec<_>>>()?.into_iter())
    }

    /// The columns in the form that they are made of.
    fn lists<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, &'static str, Bound<'py, PyList>)>> {
        let column = |column: &Arc<Data>| {
            let name = column.name.to_string_lossy().into_owned();
            let list = match &column.buffers[1] {
                Some(Buffer::Int32(numbers)) => {
                    let texts = texts(column);
                    PyList::new(
                        py,
                        (0..column.length).map(|i| column.has(i).then(|| texts[numbers[i] as usize])),
                    )
                }
                Some(Buffer::Uint64(values)) => {
                    PyList::new(py, (0..column.length).map(|i| column.has(i).then(|| values[i])))
                }
                Some(Buffer::Float64(values)) => {
                    PyList::new(py, (0..column.length).map(|i| column.has(i).then(|| values[i])))
                }
                _ => unreachable!("there are no other columns"),
            };
            Ok((name, kind_name(column), list?))
        };
        self.0.children.iter().map(column).collect()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        let lists = slf.get().lists(slf.py())?.into_pyobject(slf.py())?;
        Ok((slf.get_type().into_any(), (lists.into_any(),)))
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.0.length
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        PyCapsule::new_with_value(py, Schema::of(&self.0), c"arrow_schema")
    }

    /// The interface lets a producer disregard the schema that is asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let array = PyCapsule::new_with_value(py, Array::of(&self.0), c"arrow_array")?;
        Ok((self.__arrow_c_schema__(py)?, array))
    }

    /// As with an array.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        PyCapsule::new_with_value(py, Stream::of(&self.0), c"arrow_array_stream")
    }
}

fn kind_name(column: &Data) -> &'static str {
    match column.buffers[1] {
        Some(Buffer::Uint64(_)) => "integer",
        Some(Buffer::Float64(_)) => "number",
        _ => "text",
    }
}

fn values(kind: &str, list: &[Bound<'_, PyAny>]) -> PyResult<Values> {
    let kind = match kind {
        "text" => Kind::Text,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        _ => return Err(PyTypeError::new_err(format!("{kind} is no kind of column"))),
    };
    let mut values = Values::new(kind);
    for value in list {
        match kind {
            _ if value.is_none() => values.push(Cell::Missing),
            Kind::Text => values.push(Cell::Text(&value.extract::<String>()?)),
            Kind::Integer => values.push(Cell::Integer(value.extract()?)),
            Kind::Number => values.push(Cell::Number(value.extract()?)),
        }
    }
    Ok(values)
}

/// A column in the form that the interface asks for.
fn data(name: String, values: Values) -> PyResult<Data> {
    let name =
        CString::new(name).map_err(|_| PyValueError::new_err("the name of a column has a zero byte"))?;
    Ok(match values {
        Values::Text(Texts { texts, rows, .. }) => {
            let dictionary = Some(Arc::new(dictionary(&texts)?));
            Data { dictionary, ..column(name, c"i", &rows, |number| number as i32, Buffer::Int32) }
        }
        Values::Integer(rows) => column(name, c"L", &rows, |value| value, Buffer::Uint64),
        Values::Number(rows) => column(name, c"g", &rows, |value| value, Buffer::Float64),
    })
}

fn column<T: Copy, U: Default>(
    name: CString,
    format: &'static CStr,
    rows: &[Option<T>],
    value: impl Fn(T) -> U,
    buffer: impl Fn(Vec<U>) -> Buffer,
) -> Data {
    let missing = rows.iter().filter(|row| row.is_none()).count();
    let bits = |rows: &[Option<T>]| {
        rows.iter().enumerate().fold(0, |bits, (i, row)| bits | u8::from(row.is_some()) << i)
    };
    let present = (missing > 0).then(|| Buffer::Bytes(rows.chunks(8).map(bits).collect()));
    let values = buffer(rows.iter().map(|row| row.map_or_else(U::default, &value)).collect());
    let buffers = vec![present, Some(values)];
    Data { name, format, length: rows.len(), missing, buffers, children: Vec::new(), dictionary: None }
}

/// Texts one after the other, and where each begins.
fn dictionary(texts: &[String]) -> PyResult<Data> {
    let too_long = |_| PyValueError::new_err("a column has more than 2 GiB of different texts");
    let mut starts = vec![0_i32];
    for text in texts {
        let end = starts[starts.len() - 1] as usize + text.len();
        starts.push(i32::try_from(end).map_err(too_long)?);
    }
    let bytes = Buffer::Bytes(texts.concat().into_bytes());
    let (name, buffers) = (CString::default(), vec![None, Some(Buffer::Int32(starts)), Some(bytes)]);
    Ok(Data {
        name,
        format: c"u",
        length: texts.len(),
        missing: 0,
        buffers,
        children: Vec::new(),
        dictionary: None,
    })
}

/// The texts of a column's dictionary.
fn texts(column: &Data) -> Vec<&str> {
    let buffers = column.dictionary.as_ref().map(|dictionary| &dictionary.buffers[1..]);
    let Some([Some(Buffer::Int32(starts)), Some(Buffer::Bytes(bytes))]) = buffers else { return Vec::new() };
    let text = |ends: &[i32]| {
        std::str::from_utf8(&bytes[ends[0] as usize..ends[1] as usize]).expect("it was a text")
    };
    starts.windows(2).map(text).collect()
}

impl Data {
    /// Whether a row has a value.
    fn has(&self, row: usize) -> bool {
        match &self.buffers[0] {
            Some(Buffer::Bytes(bits)) => bits[row / 8] >> (row % 8) & 1 == 1,
            _ => true,
        }
    }
}
