//! The native part of the Python package: commands of coreward as functions that do not hold up Python.

mod arrow;
mod page;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use coreward_cli::{Answer, Told};
use coreward_input::{printable, read_text};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use table::Columns;

/// How often Python is asked whether a signal has come: Ctrl-C shall act within 100 ms.
const SIGNALS: Duration = Duration::from_millis(20);
/// How long interrupted work may take to end before Python goes on without waiting for it.
const LAST: Duration = Duration::from_millis(50);
/// Stack of the thread that works, in bytes: that of a program's first thread.
const STACK: usize = 8 << 20;

create_exception!(
    coreward,
    Error,
    PyException,
    "What coreward refuses, or cannot do. The text is the message of the command line."
);

/// The output of a command, its remarks, the requirement that is not met, and the rows of its table.
type Answered<'py> = (Bound<'py, PyBytes>, Vec<String>, Option<String>, Option<Columns>);

/// Carries out a command of coreward, given by its words without the program's name. Its table is made if it is wanted;
/// `progress` is called with the numbers of runs that are done and of all.
#[pyfunction]
#[pyo3(signature = (arguments, wants_rows, progress=None))]
fn call<'py>(
    py: Python<'py>,
    arguments: Vec<OsString>,
    wants_rows: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Answered<'py>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let told = Arc::new(Told::default());
    let mut answer = start(arguments, wants_rows, Arc::clone(&interrupt), Arc::clone(&told))?;
    let mut said = (0, 0);
    loop {
        let received;
        (received, answer) = wait(py, answer, SIGNALS);
        let now = told.done_of_total();
        let heard = match &progress {
            Some(progress) if now != std::mem::replace(&mut said, now) => progress.call1(now).map(drop),
            _ => Ok(()),
        };
        match received {
            Ok(Ok(Answer { output, remarks, unmet, rows })) => {
                heard?;
                let rows = rows.map(Columns::of_rows).transpose()?;
                return Ok((PyBytes::new(py, &output), remarks, unmet, rows));
            }
            Ok(Err(message)) => return Err(Error::new_err(message)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("coreward panicked; standard error says where"));
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(stop) = heard.and_then(|()| py.check_signals()) {
                    interrupt.store(true, Ordering::Relaxed);
                    let _ = wait(py, answer, LAST);
                    return Err(stop);
                }
            }
        }
    }
}

/// A thread that works, so that this one can look at signals.
fn start(
    arguments: Vec<OsString>,
    wants_rows: bool,
    interrupt: Arc<AtomicBool>,
    told: Arc<Told>,
) -> PyResult<Receiver<Result<Answer, String>>> {
    let (sender, receiver) = channel();
    let work = move || {
        // nobody listens any more if it was interrupted
        let _ = sender.send(coreward_cli::call(arguments, wants_rows, interrupt, told));
    };
    thread::Builder::new().name("coreward".into()).stack_size(STACK).spawn(work)?;
    Ok(receiver)
}

/// Waits while other threads of Python run.
fn wait<T: Send>(
    py: Python<'_>,
    receiver: Receiver<T>,
    time: Duration,
) -> (Result<T, RecvTimeoutError>, Receiver<T>) {
    py.detach(move || (receiver.recv_timeout(time), receiver))
}

/// Text from a file, with what a terminal could take for a command shown as it is written, but for newlines and tabs.
#[pyfunction]
fn shown(text: &str) -> String {
    text.split_inclusive(['\n', '\t'])
        .map(|part| match part.strip_suffix(['\n', '\t']) {
            Some(inner) => format!("{}{}", printable(inner), &part[inner.len()..]),
            None => printable(part).into_owned(),
        })
        .collect()
}

/// A text file of at most so many KiB, and no pipe or device.
#[pyfunction]
fn read(path: PathBuf, max_kib: u64) -> PyResult<String> {
    read_text(&path, max_kib)
        .map_err(|error| Error::new_err(format!("cannot read {}: {error}", path.display())))
}

/// Files that are written as the commands write theirs.
#[pyclass]
struct Files(Option<coreward_cli::Files>);

#[pymethods]
impl Files {
    #[new]
    fn new(inputs: Vec<PathBuf>) -> Files {
        Files(Some(coreward_cli::Files::new(inputs)))
    }

    fn open(&mut self, option: String, target: PathBuf) -> PyResult<()> {
        let files = self.0.as_mut().ok_or_else(|| PyRuntimeError::new_err("the files are finished"))?;
        files.open(option, &target).map_err(Error::new_err)
    }

    fn finish(&mut self, texts: Vec<String>) -> PyResult<()> {
        let files = self.0.take().ok_or_else(|| PyRuntimeError::new_err("the files are finished"))?;
        files.finish(&texts).map_err(Error::new_err)
    }
}

/// The native part of the package `coreward`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Columns>()?;
    module.add_class::<Files>()?;
    module.add_function(wrap_pyfunction!(read, module)?)?;
    module.add_function(wrap_pyfunction!(shown, module)?)?;
    module.add_class::<page::Page>()?;
    module.add_function(wrap_pyfunction!(call, module)?)
}
