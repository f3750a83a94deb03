//! What the classes of a recorded workload's tasks did, in the recording and in the simulation, side by side.

use std::io::Write;

use anyhow::Result;
use coreward_engine::{Leaving, Moment, Trace, Waker};
use coreward_metrics::html::{Page, Tone};
use coreward_policy::Decision;
use coreward_workload::recorded::{Figures, Recorded, Watch, class_of_task};
use coreward_workload::{TaskNames, Workload};
use serde_json::{Value, json};

/// The columns after the class and whose figures they are.
const HEAD: [&str; 9] = [
    "tasks",
    "cpu s",
    "wakeups",
    "moves",
    "latency p50 us",
    "p99 us",
    "requests/s",
    "request p50 us",
    "p99 us",
];

/// Watches the tasks of a recorded workload's simulation.
pub(crate) struct Watched<'a> {
    recorded: Recorded,
    names: TaskNames<'a>,
    /// The class of each task, by its number; none of the one that starts all.
    classes: Vec<Option<String>>,
    watch: Watch,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(recorded: Recorded, workload: &'a Workload) -> Watched<'a> {
        Watched { recorded, names: TaskNames::new(workload), classes: Vec::new(), watch: Watch::default() }
    }

    /// What was recorded and simulated, in a run of so many seconds.
    pub(crate) fn finish(self, runtime_s: f64) -> Vec<Class> {
        let Watched { recorded, classes, watch, .. } = self;
        let of = |mut figures: Figures| {
            let known = recorded.classes.iter().find(|known| known.class == figures.class);
            let known = known.map(|known| Side { figures: known.clone(), seconds: recorded.duration_s });
            let called = |class: &&Option<String>| class.as_ref() == Some(&figures.class);
            figures.tasks = classes.iter().filter(called).count() as u64;
            Class { recorded: known, simulated: Side { figures, seconds: runtime_s } }
        };
        watch.figures(|index| classes.get(index).cloned().flatten()).into_iter().map(of).collect()
    }
}

/// The number of a task that is not the idle one.
fn index(pid: i32) -> Option<usize> {
    usize::try_from(pid).ok()?.checked_sub(1)
}

impl Trace for Watched<'_> {
    fn fork(&mut self, _: u64, _: i32, _: i32, program: u32, base: u32) {
        let name = self.names.next(program, base);
        // the first program starts the others
        self.classes.push((program > 0).then(|| class_of_task(&name)));
    }

    fn waking(&mut self, when: Moment, _: usize, _: Waker, pid: i32, _: usize, new: bool) {
        if let Some(task) = index(pid).filter(|_| !new) {
            self.watch.woken(task, when.now);
        }
    }

    fn migrate(&mut self, _: u64, _: usize, _: i32, _: usize, _: usize) {}

    fn switch(&mut self, when: Moment, cpu: usize, prev: i32, leaving: Leaving, next: i32) {
        if let Some(task) = index(prev) {
            self.watch.leaves(task, leaving != Leaving::Preempted, when.now);
        }
        if let Some(task) = index(next) {
            self.watch.runs(task, cpu, when.now);
        }
    }
}

/// Two observers of one run.
pub(crate) struct Both<'a>(pub(crate) &'a mut dyn Trace, pub(crate) &'a mut dyn Trace);

impl Trace for Both<'_> {
    fn fork(&mut self, now: u64, pid: i32, process: i32, program: u32, base: u32) {
        self.0.fork(now, pid, process, program, base);
        self.1.fork(now, pid, process, program, base);
    }

    fn waking(&mut self, when: Moment, cpu: usize, waker: Waker, pid: i32, target: usize, new: bool) {
        self.0.waking(when, cpu, waker, pid, target, new);
        self.1.waking(when, cpu, waker, pid, target, new);
    }

    fn migrate(&mut self, now: u64, cpu: usize, pid: i32, from: usize, to: usize) {
        self.0.migrate(now, cpu, pid, from, to);
        self.1.migrate(now, cpu, pid, from, to);
    }

    fn switch(&mut self, when: Moment, cpu: usize, prev: i32, leaving: Leaving, next: i32) {
        self.0.switch(when, cpu, prev, leaving, next);
        self.1.switch(when, cpu, prev, leaving, next);
    }

    fn decision(&mut self, decision: &Decision) {
        self.0.decision(decision);
        self.1.decision(decision);
    }
}

/// What the tasks of a class did in so many seconds.
struct Side {
    figures: Figures,
    seconds: f64,
}

impl Side {
    fn requests_per_s(&self) -> f64 {
        if self.seconds > 0.0 { self.figures.requests as f64 / self.seconds } else { 0.0 }
    }

    /// As [`HEAD`] names them.
    fn cells(&self) -> [String; 9] {
        let of = &self.figures;
        let [[latency, latency_p99], [request, request_p99]] =
            [of.wakeup_latency_us, of.request_us].map(|us| us.map(|us| format!("{us:.1}")));
        [
            of.tasks.to_string(),
            format!("{:.4}", of.cpu_s),
            of.wakeups.to_string(),
            of.moves.to_string(),
            latency,
            latency_p99,
            format!("{:.1}", self.requests_per_s()),
            request,
            request_p99,
        ]
    }

    fn json(&self) -> Value {
        let of = &self.figures;
        json!({
            "tasks": of.tasks,
            "cpu_s": of.cpu_s,
            "wakeups": of.wakeups,
            "moves": of.moves,
            "wakeup_latency_us": {"p50": of.wakeup_latency_us[0], "p99": of.wakeup_latency_us[1]},
            "requests": of.requests,
            "requests_per_s": self.requests_per_s(),
            "request_us": {"p50": of.request_us[0], "p99": of.request_us[1]},
        })
    }
}

/// A class of tasks.
pub(crate) struct Class {
    recorded: Option<Side>,
    simulated: Side,
}

impl Class {
    fn name(&self) -> &str {
        &self.simulated.figures.class
    }

    fn sides(&self) -> impl Iterator<Item = (&'static str, &Side)> {
        let recorded = self.recorded.iter().map(|side| ("recorded", side));
        recorded.chain([("simulated", &self.simulated)])
    }

    pub(crate) fn json(&self) -> Value {
        let mut value = json!({"class": self.name()});
        self.sides().for_each(|(whose, side)| value[whose] = side.json());
        value
    }
}

/// A table for people.
pub(crate) fn table(out: &mut dyn Write, classes: &[Class]) -> Result<()> {
    let width =
        classes.iter().map(|class| class.name().chars().count()).max().unwrap_or(0).max("class".len());
    let line = |class: &str, whose: &str, cells: &[&str]| {
        let cells = cells.iter().zip(HEAD).map(|(cell, head)| format!(" {cell:>w$}", w = head.len().max(9)));
        format!("{class:width$} {whose:9}{}", cells.collect::<String>())
    };
    writeln!(out, "{}", line("class", "", &HEAD))?;
    for class in classes {
        for (nth, (whose, side)) in class.sides().enumerate() {
            let cells = side.cells();
            let name = if nth == 0 { class.name() } else { "" };
            writeln!(out, "{}", line(name, whose, &cells.each_ref().map(String::as_str)))?;
        }
    }
    Ok(())
}

/// The same on a page.
pub(crate) fn page(page: &mut Page, classes: &[Class]) {
    page.heading("Classes of tasks");
    page.text(
        "What was recorded beside what was simulated. A request lasts from a task's wakeup until it waits again; a move is \
         running on another CPU than before.",
    );
    let row = |(class, whose, side): (&str, &str, &Side)| {
        let names = [(class.to_owned(), Tone::Text), (whose.to_owned(), Tone::Text)];
        names.into_iter().chain(side.cells().map(|cell| (cell, Tone::Plain))).collect::<Vec<_>>()
    };
    let sides =
        classes.iter().flat_map(|class| class.sides().map(|(whose, side)| (class.name(), whose, side)));
    page.table(&[&["class", ""], &HEAD[..]].concat(), &sides.map(row).collect::<Vec<_>>());
}
