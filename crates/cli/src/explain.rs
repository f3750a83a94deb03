//! `coreward explain`: the first decisions of a run in plain words.

use std::io::Write;

use anyhow::{Result, bail};
use coreward_engine::{Leaving, Trace};
use coreward_policy::layout::{WF_EXEC, WF_FORK, WF_SYNC};
use coreward_policy::{Decision, Reason};
use serde_json::{Value, json};

use crate::cli;
use crate::output;
use crate::setup;

/// What the bits of [`Decision::notes`] mean, lowest first: `enum cw_note` of `policy/types.h`.
const NOTES: [(&str, &str); 14] = [
    ("WA_IDLE", "wake_affine by WA_IDLE"),
    ("WA_WEIGHT", "wake_affine by WA_WEIGHT"),
    ("WAKE_WIDE", "wake_wide: wake_affine not tried"),
    ("SIS_UTIL_STOP", "SIS_UTIL: no scan"),
    ("SCAN_LIMIT", "scan ended by its limit"),
    ("NO_FIT", "a candidate had too little capacity"),
    ("AFFINITY", "a candidate was not allowed"),
    ("BIAS_NO_CACHE", "no bias: previous CPU shares no cache with the target"),
    ("BIAS_NO_SPARE", "no bias: previous CPU has no spare capacity"),
    ("WAKE_AFFINE_TRIED", "wake_affine tried"),
    ("WAKE_CAP", "wake_cap: the waker's or the previous CPU is too small"),
    ("CACHE_CPU", "the LLC that the process prefers stands in for the previous one"),
    ("CACHE_CROWDED", "the LLC that the process prefers is crowded"),
    ("CACHE_NODE", "the LLC that the process prefers is not on the preferred node"),
];

/// What balances are told apart by: `enum cw_balance_event` of `policy/balance/lb_env.h`.
const BALANCES: [(u32, &str); 3] =
    [(1 << 8, "periodic balance"), (1 << 9, "idle balance"), (1 << 10, "newidle balance")];

pub(crate) fn run(args: &cli::Explain, out: &mut dyn Write) -> Result<()> {
    let (host, workload) = setup::from_args(&args.simulated)?;
    let nr_cpus = host.machine.nr_cpus();
    if let Some(cpu) = args.cpu.filter(|cpu| *cpu as usize >= nr_cpus) {
        bail!("--cpu is {cpu}, allowed are 0 to {} on {}", nr_cpus - 1, host.machine.name);
    }
    let mut first = First { args, decisions: Vec::new() };
    host.run(&workload, args.simulated.seed, &mut first)?;
    if args.json {
        return output::json(out, &first.decisions.iter().map(as_json).collect::<Vec<_>>());
    }
    for d in &first.decisions {
        writeln!(out, "{}", sentence(d))?;
    }
    Ok(())
}

/// Keeps the first decisions that the user asked for.
struct First<'a> {
    args: &'a cli::Explain,
    decisions: Vec<Decision>,
}

impl First<'_> {
    fn wants(&self, d: &Decision) -> bool {
        let of_task = self.args.pid.is_none_or(|pid| d.pid == pid);
        let at_cpu = self.args.cpu.is_none_or(|cpu| [d.this_cpu, d.prev_cpu, d.cpu].contains(&(cpu as i32)));
        of_task && at_cpu
    }
}

impl Trace for First<'_> {
    fn fork(&mut self, _: u64, _: i32, _: i32) {}
    fn waking(&mut self, _: u64, _: usize, _: i32, _: i32, _: usize, _: bool) {}
    fn migrate(&mut self, _: u64, _: usize, _: i32, _: usize, _: usize) {}
    fn switch(&mut self, _: u64, _: usize, _: i32, _: Leaving, _: i32) {}

    fn decision(&mut self, d: &Decision) {
        if self.decisions.len() < self.args.first as usize && self.wants(d) {
            self.decisions.push(*d);
        }
    }
}

fn balance(d: &Decision) -> Option<&'static str> {
    BALANCES.iter().find(|(event, _)| d.event & event != 0).map(|(_, name)| *name)
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
pub(crate) fn notes(d: &Decision) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    NOTES.iter().enumerate().filter(|(bit, _)| d.notes >> bit & 1 == 1).map(|(_, note)| note)
}

/// One decision as one line.
fn sentence(d: &Decision) -> String {
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
    let mut because = vec![Reason(d.reason).text().to_owned()];
    because.extend(notes(d).map(|(_, text)| (*text).to_owned()));
    because.push(format!("{} CPUs and {} groups looked at", d.cpus_scanned, d.groups_scanned));
    format!("{ms} {what}: {}", because.join("; "))
}

fn as_json(d: &Decision) -> Value {
    let is_cpu = |cpu: i32| (cpu >= 0).then_some(cpu);
    json!({
        "at_ns": d.now,
        "event": balance(d).unwrap_or(placement(d)),
        "pid": balance(d).is_none().then_some(d.pid),
        "this_cpu": d.this_cpu,
        "prev_cpu": is_cpu(d.prev_cpu),
        "target": is_cpu(d.target),
        "cpu": is_cpu(d.cpu),
        "reason": Reason(d.reason).name(),
        "notes": notes(d).map(|(name, _)| name).collect::<Vec<_>>(),
        "cpus_scanned": d.cpus_scanned,
        "groups_scanned": d.groups_scanned,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_and_balances_are_those_of_the_policy() {
        let bits = |text: &str, prefix: &str| -> Vec<(String, u32)> {
            let lines =
                text.lines().filter_map(|line| line.trim().strip_prefix(prefix)?.split_once(" = 1 << "));
            let bit = |rest: &str| rest.split_once(',').and_then(|(bit, _)| bit.parse().ok()).unwrap();
            lines.map(|(name, rest)| (name.to_owned(), bit(rest))).collect()
        };
        let expected: Vec<_> =
            NOTES.iter().zip(0..).map(|((name, _), bit)| ((*name).to_owned(), bit)).collect();
        assert_eq!(bits(include_str!("../../../policy/types.h"), "CW_NOTE_"), expected);
        let events = bits(include_str!("../../../policy/balance/lb_env.h"), "CW_BALANCE_");
        let names = ["BUSY", "IDLE", "NEWIDLE"].into_iter().zip(&BALANCES);
        let expected: Vec<_> = names.map(|(name, (event, _))| (name.to_owned(), event.ilog2())).collect();
        assert_eq!(events, expected);
    }

    #[test]
    fn a_decision_is_one_line() {
        let wakeup = Decision {
            now: 1_500_000,
            pid: 7,
            this_cpu: 1,
            prev_cpu: 4,
            target: 1,
            cpu: 4,
            event: coreward_policy::layout::WF_TTWU,
            reason: 1,
            notes: 1 << 9,
            cpus_scanned: 0,
            groups_scanned: 0,
        };
        assert_eq!(
            sentence(&wakeup),
            "1.500000 ms CPU 1: wakeup of task 7, last on CPU 4, target 1, runs on CPU 4: \
             bias-prev: previous CPU idle or with spare capacity; wake_affine tried; 0 CPUs and 0 groups looked at"
        );
        let balance =
            Decision { event: 1 << 10, cpu: -1, pid: -1, reason: 18, notes: 0, cpus_scanned: 3, ..wakeup };
        assert_eq!(
            sentence(&balance),
            "1.500000 ms CPU 1: newidle balance, pulls nothing: balanced; 3 CPUs and 0 groups looked at"
        );
    }
}
