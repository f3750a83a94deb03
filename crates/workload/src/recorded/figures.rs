//! What the tasks of each class did, in a recording or in its simulation, so that the two can be compared.
//!
//! A class is what tasks of the same name are, but for numbers. A *request* of a task lasts from its wakeup until it
//! waits again: waiting for a CPU, being preempted and its work are in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the tasks of a class did. Times in us are the median and the 99th percentile; 0 of none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// The class: the tasks' name, with `*` for each number.
    pub class: String,
    /// Tasks.
    pub tasks: u64,
    /// Time on a CPU, in s.
    pub cpu_s: f64,
    /// Wakeups.
    pub wakeups: u64,
    /// Times that a task ran on another CPU than before.
    pub moves: u64,
    /// From a wakeup to running, in us.
    pub wakeup_latency_us: [f64; 2],
    /// Requests that have ended.
    pub requests: u64,
    /// From a wakeup to the next wait, in us.
    pub request_us: [f64; 2],
}

impl Figures {
    /// Whether every form of a file can have its numbers: TOML counts to 2^63 - 1, and JSON has no infinity.
    pub(super) fn is_writable(&self) -> bool {
        let Figures { class: _, tasks, cpu_s, wakeups, moves, wakeup_latency_us, requests, request_us } =
            self;
        let counted = [tasks, wakeups, moves, requests].into_iter().all(|n| i64::try_from(*n).is_ok());
        counted && cpu_s.is_finite() && wakeup_latency_us.iter().chain(request_us).all(|us| us.is_finite())
    }
}

/// A name with `*` for each number.
pub fn class(name: &str) -> String {
    let mut class = String::new();
    for c in name.chars() {
        match c.is_ascii_digit() {
            true if class.ends_with('*') => {}
            true => class.push('*'),
            false => class.push(c),
        }
    }
    class
}

/// The class of a task of a workload, whose name ends with its number among those of that name.
pub fn class_of_task(name: &str) -> String {
    match name.rsplit_once('-') {
        Some((comm, number)) if number.parse::<u32>().is_ok() => class(comm),
        _ => class(name),
    }
}

#[derive(Clone, Debug, Default)]
struct Seen {
    /// When it was woken, if it has not run since.
    woken: Option<u64>,
    /// When its request began.
    asked: Option<u64>,
    /// Since when it runs, if it does.
    runs: Option<u64>,
    /// Where it ran last.
    cpu: Option<usize>,
    cpu_ns: u64,
    wakeups: u64,
    moves: u64,
    latencies: Vec<u32>,
    requests: Vec<u32>,
}

/// Sees what tasks do. Tasks are named by numbers from 0 on.
#[derive(Clone, Debug, Default)]
pub struct Watch(Vec<Seen>);

impl Watch {
    fn task(&mut self, task: usize) -> &mut Seen {
        if task >= self.0.len() {
            self.0.resize_with(task + 1, Seen::default);
        }
        &mut self.0[task]
    }

    /// A task that waits is woken.
    pub fn woken(&mut self, task: usize, at: u64) {
        let task = self.task(task);
        task.wakeups += 1;
        (task.woken, task.asked) = (Some(at), Some(at));
    }

    /// A task begins to run.
    pub fn runs(&mut self, task: usize, cpu: usize, at: u64) {
        let task = self.task(task);
        if let Some(woken) = task.woken.take() {
            task.latencies.push(ns(at.saturating_sub(woken)));
        }
        task.moves += u64::from(task.cpu.replace(cpu).is_some_and(|before| before != cpu));
        task.runs = Some(at);
    }

    /// It leaves the CPU, to wait or not.
    pub fn leaves(&mut self, task: usize, waits: bool, at: u64) {
        let task = self.task(task);
        if let Some(since) = task.runs.take() {
            task.cpu_ns += at.saturating_sub(since);
        }
        if let Some(asked) = task.asked.take_if(|_| waits) {
            task.requests.push(ns(at.saturating_sub(asked)));
        }
    }

    /// From wakeups to running of the tasks that are `meant`: the median and the 99th percentile, in us.
    pub fn wakeup_latency_us(&self, meant: impl Fn(usize) -> bool) -> [f64; 2] {
        let seen = self.0.iter().enumerate().filter(|(index, _)| meant(*index));
        percentiles_us(&mut seen.flat_map(|(_, task)| &task.latencies).copied().collect::<Vec<_>>())
    }

    /// The figures of all classes, of which those with the most time on a CPU come first. `class` says the class of a
    /// task; tasks without one are left out.
    pub fn figures(self, class: impl Fn(usize) -> Option<String>) -> Vec<Figures> {
        let mut classes: BTreeMap<String, (Figures, [Vec<u32>; 2])> = BTreeMap::new();
        for (index, mut task) in self.0.into_iter().enumerate() {
            let Some(name) = class(index) else { continue };
            let (of, times) = classes.entry(name).or_default();
            of.tasks += 1;
            of.cpu_s += task.cpu_ns as f64 / 1e9;
            of.wakeups += task.wakeups;
            of.moves += task.moves;
            of.requests += task.requests.len() as u64;
            times[0].append(&mut task.latencies);
            times[1].append(&mut task.requests);
        }
        let summed =
            |(class, (mut of, [mut latencies, mut requests])): (String, (Figures, [Vec<u32>; 2]))| {
                of.class = class;
                of.wakeup_latency_us = percentiles_us(&mut latencies);
                of.request_us = percentiles_us(&mut requests);
                of
            };
        let mut all: Vec<Figures> = classes.into_iter().map(summed).collect();
        all.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
        all
    }
}

/// A time of at most 4 s.
fn ns(ns: u64) -> u32 {
    u32::try_from(ns).unwrap_or(u32::MAX)
}

/// The median and the 99th percentile of ns, in us; 0 of none.
fn percentiles_us(ns: &mut [u32]) -> [f64; 2] {
    ns.sort_unstable();
    [50, 99].map(|pct| {
        let at = (ns.len() * pct).div_ceil(100).saturating_sub(1);
        ns.get(at).map_or(0.0, |ns| f64::from(*ns) / 1e3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_make_classes() {
        assert_eq!(class("kworker/12:1-mm"), "kworker/*:*-mm");
        assert_eq!(class("sender 3 of group 1"), "sender * of group *");
        assert_eq!(class_of_task("redis-server-0"), "redis-server");
        assert_eq!(class_of_task("worker 3-12"), "worker *");
        assert_eq!(class_of_task("start of the recording"), "start of the recording");
    }

    #[test]
    fn a_request_lasts_from_its_wakeup_to_the_next_wait() {
        let mut watch = Watch::default();
        watch.woken(0, 1_000);
        watch.runs(0, 0, 3_000);
        // preempted, and moved
        watch.leaves(0, false, 5_000);
        watch.runs(0, 1, 9_000);
        watch.leaves(0, true, 11_000);
        // another one of its class that runs all the time
        watch.runs(1, 1, 11_000);
        watch.leaves(1, false, 12_000);
        watch.runs(2, 0, 0);
        let classes = watch.figures(|task| (task < 2).then(|| "worker".to_owned()));
        let wanted = Figures {
            class: "worker".into(),
            tasks: 2,
            cpu_s: 5e-6,
            wakeups: 1,
            moves: 1,
            wakeup_latency_us: [2.0; 2],
            requests: 1,
            request_us: [10.0; 2],
        };
        assert_eq!(classes.len(), 1);
        assert!((classes[0].cpu_s - wanted.cpu_s).abs() < 1e-12);
        assert_eq!(Figures { cpu_s: wanted.cpu_s, ..classes[0].clone() }, wanted);
    }
}
