//! Pages of reports, for the reports that are made in Python: the same parts as those of the commands.

use std::ffi::OsString;
use std::mem::replace;

use coreward_metrics::html::{self, Change, Tone};
use coreward_metrics::stats::Verdict;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::Error;

/// A cell of a table: its text and its tone.
type Cell = (String, String);
/// A change: its name, its size, its interval, and its verdict.
type Drawn = (String, f64, Option<(f64, f64)>, String);

#[pyclass(module = "coreward._native")]
pub(crate) struct Page(html::Page);

#[pymethods]
impl Page {
    #[new]
    fn new(title: &str) -> Page {
        Page(html::Page::new(title))
    }

    fn heading(&mut self, text: &str) {
        self.0.heading(text);
    }

    fn text(&mut self, text: &str) {
        self.0.text(text);
    }

    fn names(&mut self, rows: Vec<(String, String)>) {
        let rows: Vec<_> = rows.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
        self.0.names(&rows);
    }

    fn table(&mut self, head: Vec<String>, rows: Vec<Vec<Cell>>) -> PyResult<()> {
        let cell = |(text, named): Cell| Ok((text, tone(&named)?));
        let row = |row: Vec<Cell>| row.into_iter().map(cell).collect::<PyResult<Vec<_>>>();
        let rows = rows.into_iter().map(row).collect::<PyResult<Vec<_>>>()?;
        self.0.table(&head.iter().map(String::as_str).collect::<Vec<_>>(), &rows);
        Ok(())
    }

    fn changes(&mut self, title: &str, legend: &str, changes: Vec<Drawn>) -> PyResult<()> {
        let change = |(name, delta, interval, named): Drawn| {
            Ok(Change { name, delta, interval, verdict: Some(verdict(&named)?) })
        };
        let changes = changes.into_iter().map(change).collect::<PyResult<Vec<_>>>()?;
        self.0.html(&html::changes(title, legend, &changes));
        Ok(())
    }

    fn html(&mut self, html: &str) {
        self.0.html(html);
    }

    fn look(&mut self, py: Python<'_>, arguments: Vec<OsString>) -> PyResult<()> {
        let drawn = py.detach(|| coreward_cli::draw(arguments)).map_err(Error::new_err)?;
        self.0.html(&drawn);
        Ok(())
    }

    fn data(&mut self, json: &str) {
        self.0.data(json);
    }

    fn finish(&mut self) -> String {
        replace(&mut self.0, html::Page::part()).finish()
    }
}

fn tone(name: &str) -> PyResult<Tone> {
    match name {
        "plain" => Ok(Tone::Plain),
        "text" => Ok(Tone::Text),
        "name" => Ok(Tone::Name),
        "good" => Ok(Tone::Good),
        "bad" => Ok(Tone::Bad),
        _ => Err(PyValueError::new_err(format!("tone {name}, allowed are plain, text, name, good and bad"))),
    }
}

fn verdict(name: &str) -> PyResult<Verdict> {
    match name {
        "better" => Ok(Verdict::Better),
        "worse" => Ok(Verdict::Worse),
        "not_shown" => Ok(Verdict::NotShown),
        _ => Err(PyValueError::new_err(format!("verdict {name}, allowed are better, worse and not_shown"))),
    }
}
