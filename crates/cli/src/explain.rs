//! `coreward explain`: the first decisions of a run in plain words.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use coreward_engine::{Leaving, Moment, Trace, Waker};
use coreward_policy::layout::{WF_EXEC, WF_FORK, WF_SYNC};
use coreward_policy::{BALANCE_EVENTS, Code, Decision};
use serde_json::{Value, json};

use crate::cli;
use crate::output;
use crate::setup;

pub(crate) fn run(args: &cli::Explain, out: &mut dyn Write) -> Result<()> {
    let (host, workload) = setup::from_args(&args.simulated)?;
    let nr_cpus = host.machine.nr_cpus();
    if let Some(cpu) = args.cpu.filter(|cpu| *cpu as usize >= nr_cpus) {
        bail!("--cpu is {cpu}, allowed are 0 to {} on {}", nr_cpus - 1, host.machine.name);
    }
    let code = host.policy.code;
    let mut first = First { args, decisions: Vec::new(), enough: Arc::clone(&host.interrupt) };
    let ran = host.run(&workload, args.simulated.seed, &mut first);
    if !first.is_complete() {
        ran?;
    }
    if first.decisions.is_empty() {
        bail!("no decision of this run is about {}", first.wanted());
    }
    if args.json {
        return output::json(out, &first.decisions.iter().map(|d| as_json(code, d)).collect::<Vec<_>>());
    }
    for d in &first.decisions {
        writeln!(out, "{}", sentence(code, d))?;
    }
    Ok(())
}

/// Keeps the first decisions that the user asked for.
struct First<'a> {
    args: &'a cli::Explain,
    decisions: Vec<Decision>,
    /// Ends the run.
    enough: Arc<AtomicBool>,
}

impl First<'_> {
    fn is_complete(&self) -> bool {
        self.decisions.len() == self.args.first as usize
    }

    /// What the user asked for, in words.
    fn wanted(&self) -> String {
        let task = self.args.pid.map(|pid| format!("task {pid} (--pid)"));
        let cpu = self.args.cpu.map(|cpu| format!("CPU {cpu} (--cpu)"));
        let words: Vec<_> = task.into_iter().chain(cpu).collect();
        if words.is_empty() { "any task".into() } else { words.join(" on ") }
    }

    fn wants(&self, d: &Decision) -> bool {
        let of_task = self.args.pid.is_none_or(|pid| d.pid == pid);
        let at_cpu = self.args.cpu.is_none_or(|cpu| [d.this_cpu, d.prev_cpu, d.cpu].contains(&(cpu as i32)));
        of_task && at_cpu
    }
}

impl Trace for First<'_> {
    fn fork(&mut self, _: u64, _: i32, _: i32, _: u32, _: u32) {}
    fn waking(&mut self, _: Moment, _: usize, _: Waker, _: i32, _: usize, _: bool) {}
    fn migrate(&mut self, _: u64, _: usize, _: i32, _: usize, _: usize) {}
    fn switch(&mut self, _: Moment, _: usize, _: i32, _: Leaving, _: i32) {}

    fn decision(&mut self, d: &Decision) {
        if !self.is_complete() && self.wants(d) {
            self.decisions.push(*d);
            // a caller may have set the flag already
            if self.is_complete() {
                self.enough.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// What kind of balance it is, if it is no placement.
pub(crate) fn balance(d: &Decision) -> Option<&'static str> {
    BALANCE_EVENTS.iter().find(|(event, _)| d.event & event != 0).map(|(_, name)| *name)
}

/// What kind of placement it is.
pub(crate) fn placement(d: &Decision) -> &'static str {
    match d.event {
        event if event & WF_FORK != 0 => "fork",
        event if event & WF_EXEC != 0 => "exec",
        event if event & WF_SYNC != 0 => "sync wakeup",
        _ => "wakeup",
    }
}

/// Name and text of each note of the decision.
pub(crate) fn notes(code: &Code, d: &Decision) -> impl Iterator<Item = (&'static str, &'static str)> {
    let notes = d.notes;
    code.notes().iter().filter(move |(bit, ..)| notes & bit != 0).map(|(_, name, text)| (*name, *text))
}

/// One decision as one line.
fn sentence(code: &Code, d: &Decision) -> String {
    let ms = format!("{}.{:06} ms", d.now / 1_000_000, d.now % 1_000_000);
    let what = match balance(d) {
        Some(name) if d.cpu >= 0 => format!("CPU {}: {name}, pulls from CPU {}", d.this_cpu, d.cpu),
        Some(name) => format!("CPU {}: {name}, pulls nothing", d.this_cpu),
        None => format!(
            "CPU {}: {} of task {}, last on CPU {}, target {}, runs on CPU {}",
            d.this_cpu,
            placement(d),
            d.pid,
            d.prev_cpu,
            d.target,
            d.cpu
        ),
    };
    let mut because = vec![code.reason(d.reason).text.to_owned()];
    because.extend(notes(code, d).map(|(_, text)| text.to_owned()));
    because.push(format!("{} CPUs and {} groups looked at", d.cpus_scanned, d.groups_scanned));
    format!("{ms} {what}: {}", because.join("; "))
}

fn as_json(code: &Code, d: &Decision) -> Value {
    let is_cpu = |cpu: i32| (cpu >= 0).then_some(cpu);
    json!({
        "at_ns": d.now,
        "event": balance(d).unwrap_or(placement(d)),
        "pid": balance(d).is_none().then_some(d.pid),
        "this_cpu": d.this_cpu,
        "prev_cpu": is_cpu(d.prev_cpu),
        "target": is_cpu(d.target),
        "cpu": is_cpu(d.cpu),
        "reason": code.reason(d.reason).name,
        "notes": notes(code, d).map(|(name, _)| name).collect::<Vec<_>>(),
        "cpus_scanned": d.cpus_scanned,
        "groups_scanned": d.groups_scanned,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use coreward_policy::layout::{
        BALANCE_NEWIDLE, NOTE_WAKE_AFFINE_TRIED, REASON_BALANCE_BALANCED, REASON_BIAS_PREV, WF_TTWU,
    };

    #[test]
    fn a_decision_is_one_line() {
        let wakeup = Decision {
            now: 1_500_000,
            pid: 7,
            this_cpu: 1,
            prev_cpu: 4,
            target: 1,
            cpu: 4,
            event: WF_TTWU,
            reason: REASON_BIAS_PREV,
            notes: NOTE_WAKE_AFFINE_TRIED,
            cpus_scanned: 0,
            groups_scanned: 0,
        };
        assert_eq!(
            sentence(Code::built_in(), &wakeup),
            "1.500000 ms CPU 1: wakeup of task 7, last on CPU 4, target 1, runs on CPU 4: \
             bias-prev: previous CPU idle or with spare capacity; wake_affine tried; 0 CPUs and 0 groups looked at"
        );
        let balance = Decision {
            event: BALANCE_NEWIDLE,
            cpu: -1,
            pid: -1,
            reason: REASON_BALANCE_BALANCED,
            notes: 0,
            cpus_scanned: 3,
            ..wakeup
        };
        assert_eq!(
            sentence(Code::built_in(), &balance),
            "1.500000 ms CPU 1: newidle balance, pulls nothing: balanced; 3 CPUs and 0 groups looked at"
        );
    }
}
