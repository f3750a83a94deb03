//! Who waits for a command: a person, who reads standard error and can press Ctrl-C, or a program that called it as a
//! function ([`crate::call`]). A program is handed what a person reads, and interrupts by a flag.
//!
//! The caller belongs to the thread that carries out the command. Threads that it starts make no remarks; the flag is
//! handed to them with the work.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::bail;
use coreward_input::message;
use coreward_tables::{Memory, Row};

use crate::progress::Told;

/// A program that waits for a command.
struct Program {
    interrupt: Arc<AtomicBool>,
    remarks: Vec<String>,
    /// The table that it wants, if it does.
    rows: Option<Memory>,
    told: Arc<Told>,
}

thread_local! {
    /// `None` is a person.
    static CALLER: RefCell<Option<Program>> = const { RefCell::new(None) };
    /// Whether a person wants to read errors only.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// From now on, a person reads errors only, if that was asked for.
pub(crate) fn be_quiet(asked: bool) {
    QUIET.set(asked);
}

/// Whether a person wants to read errors only.
pub(crate) fn is_quiet() -> bool {
    QUIET.get()
}

/// Does something for a program, which can interrupt it by the flag, and is told how far it is. Also gives the remarks that
/// were made, and the rows of tables if it wants them.
pub(crate) fn program<T>(
    interrupt: Arc<AtomicBool>,
    told: Arc<Told>,
    wants_rows: bool,
    work: impl FnOnce() -> T,
) -> (T, Vec<String>, Option<Memory>) {
    /// A panic must not leave the thread with the caller.
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            CALLER.take();
        }
    }
    let rows = wants_rows.then(Memory::default);
    CALLER.set(Some(Program { interrupt, remarks: Vec::new(), rows, told }));
    let leave = Leave;
    let result = work();
    let program = CALLER.take().expect("it is there until it is taken");
    drop(leave);
    (result, program.remarks, program.rows)
}

pub(crate) fn is_program() -> bool {
    CALLER.with_borrow(Option::is_some)
}

/// The flag that interrupts this thread's command; a person needs none.
pub(crate) fn interrupt() -> Arc<AtomicBool> {
    CALLER.with_borrow(|caller| match caller {
        Some(program) => Arc::clone(&program.interrupt),
        None => Arc::default(),
    })
}

/// Where a program reads how far this thread's command is; a person sees a bar.
pub(crate) fn told() -> Option<Arc<Told>> {
    CALLER.with_borrow(|caller| caller.as_ref().map(|program| Arc::clone(&program.told)))
}

/// For work that is no simulation, between its steps.
///
/// # Errors
/// The program has interrupted the command.
pub(crate) fn go_on() -> anyhow::Result<()> {
    if interrupt().load(Ordering::Relaxed) {
        bail!("the command was interrupted");
    }
    Ok(())
}

/// Writes a line to standard error. One that is full or closed ends no command.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Remarks on a result: what was assumed, or is not as it was asked for.
pub(crate) fn remark(what: &str) {
    let what = message(what);
    CALLER.with_borrow_mut(|caller| match caller {
        Some(program) => program.remarks.push(what),
        None if is_quiet() => {}
        None => tell(&format!("coreward: note: {what}")),
    });
}

/// Whether a program wants the rows of tables.
pub(crate) fn wants_rows() -> bool {
    CALLER.with_borrow(|caller| caller.as_ref().is_some_and(|program| program.rows.is_some()))
}

/// Gives the program a row, if it wants rows.
pub(crate) fn row(row: &Row<'_>) {
    CALLER.with_borrow_mut(|caller| {
        if let Some(rows) = caller.as_mut().and_then(|program| program.rows.as_mut()) {
            rows.push(row);
        }
    });
}

/// Tells a person how far the work is.
pub(crate) fn progress(what: &str) {
    if !is_program() && !is_quiet() {
        tell(&format!("coreward: {}", message(what)));
    }
}
