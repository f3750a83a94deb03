//! What the readers of machines and workloads had to assume: it is said on standard error, or refused.

use anyhow::{Result, bail};
use coreward_machine::Machine;
use coreward_workload::{Scale, Workload};

use crate::caller;

/// Loads a machine; see [`Machine::load`].
///
/// # Errors
/// It is refused, or it is not described completely and `strict` is set.
pub(crate) fn machine(spec: &str, strict: bool) -> Result<Machine> {
    let machine = Machine::load(spec)?;
    said(spec, &machine.assumptions, strict)?;
    Ok(machine)
}

/// Reads a benchmark's command line; see [`coreward_workload::parse`].
///
/// # Errors
/// It is refused, or it leaves something open and `strict` is set.
pub(crate) fn workload(text: &str, scale: Scale, strict: bool) -> Result<Workload> {
    let workload = coreward_workload::parse(text, scale)?;
    of_workload(text, &workload, strict)?;
    Ok(workload)
}

/// Says what a workload that was read leaves open, and what of it has no effect.
///
/// # Errors
/// It leaves something open and `strict` is set.
pub(crate) fn of_workload(text: &str, workload: &Workload, strict: bool) -> Result<()> {
    said(text, &workload.assumptions, strict)?;
    workload.notes.iter().for_each(|note| say(text, note));
    Ok(())
}

fn said(of: &str, assumptions: &[String], strict: bool) -> Result<()> {
    if let Some(what) = assumptions.first().filter(|_| strict) {
        bail!("{of}: {what} (refused because of --strict)");
    }
    assumptions.iter().for_each(|what| say(of, what));
    Ok(())
}

/// Says something of a workload that only its run shows.
pub(crate) fn say(of: &str, what: &str) {
    caller::remark(&format!("{of}: {what}"));
}
