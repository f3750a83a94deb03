//! `--list`: decisions one by one.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use coreward_input::printable;
use coreward_parity::{Outcome, Reader, Record};
use serde_json::{Value, json};

use super::settings::Input;
use crate::cli::{self, Listed};
use crate::output;

pub(crate) fn run(args: &cli::Parity, which: Listed, out: &mut dyn Write) -> Result<()> {
    // a list can be long, so it is not kept until the file has turned out to be sound
    for file in &args.files {
        Reader::open(file)?.try_for_each(|record| record.map(|_| ()))?;
    }
    let mut values = Vec::new();
    for file in &args.files {
        let show = |record: &Record, outcome: &Outcome| {
            if args.json {
                values.push(as_json(file, record, outcome));
                return Ok(());
            }
            if args.files.len() > 1 {
                write!(out, "{}: ", file.display())?;
            }
            Ok(writeln!(out, "{}", line(record, outcome))?)
        };
        each(args, file, which, show)?;
    }
    if args.json { output::json(out, &values) } else { Ok(()) }
}

/// Every outcome of the file that is wanted, with its record.
fn each(
    args: &cli::Parity,
    file: &Path,
    which: Listed,
    mut show: impl FnMut(&Record, &Outcome) -> Result<()>,
) -> Result<()> {
    let Input { reader, mut replay, .. } = Input::open(args, file)?;
    for record in reader {
        let record = record?;
        for outcome in replay.compare(&record).iter().filter(|outcome| is_wanted(which, outcome)) {
            show(&record, outcome)?;
        }
    }
    Ok(())
}

fn is_wanted(which: Listed, outcome: &Outcome) -> bool {
    match which {
        Listed::Disagreements => !outcome.agrees(),
        Listed::Unstable => !outcome.is_stable(),
        Listed::All => true,
    }
}

/// A task's name and number.
pub(super) fn task_name(comm: &[u8; 16], pid: i32) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    format!("{}/{pid}", printable(&String::from_utf8_lossy(&comm[..end])))
}

fn subject(record: &Record) -> String {
    match record {
        Record::Placement(p) => {
            let head = &p.head;
            format!(
                "{} on CPU {} from CPU {}",
                task_name(&head.task.comm, head.task.pid),
                head.this_cpu,
                head.prev_cpu
            )
        }
        Record::Balance(b) => format!("CPU {}, domain of {} CPUs", b.head.dst_cpu, b.head.span_weight),
        Record::Queue(_) => String::from("its group"),
        Record::Step(step) => format!("CPU {}", step.head.cpu),
    }
}

fn line(record: &Record, outcome: &Outcome) -> String {
    let verdict = match (outcome.agrees(), outcome.is_stable()) {
        (true, true) => "agree",
        (true, false) => "agree, unstable",
        (false, true) => "DIFFER",
        (false, false) => "differ, unstable",
    };
    let mut text = format!(
        "#{} {}: {}: kernel {}, policy {} ({}): {verdict}",
        outcome.number,
        outcome.path.name(),
        subject(record),
        outcome.kernel,
        outcome.policy,
        outcome.policy_reason
    );
    if !outcome.is_stable() {
        text.push_str(": ");
        text.push_str(&outcome.moved.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
    }
    text
}

fn as_json(file: &Path, record: &Record, outcome: &Outcome) -> Value {
    json!({
        "file": file.display().to_string(),
        "number": outcome.number,
        "path": outcome.path.name(),
        "subject": subject(record),
        "kernel": outcome.kernel.to_string(),
        "kernel_reason": outcome.kernel_reason,
        "policy": outcome.policy.to_string(),
        "policy_reason": outcome.policy_reason,
        "agree": outcome.agrees(),
        "stable": outcome.is_stable(),
        "moved": outcome.moved.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}
