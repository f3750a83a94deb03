//! The end of an import: the workload, and what was found.

use std::collections::{BTreeMap, HashMap};

use coreward_machine::Costs;
use coreward_workload::recorded::{Figures, Recorded, Step, Task as RecordedTask, class};

use super::attributes::Attributes;
use super::draft::{self, Style};
use super::report::{Class, LeftOut, Report};
use super::{Import, ImportError, Seen, State, means};
use super::{answer, attributes};
use crate::Recording;

fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// The first priority of the fair class (`MAX_RT_PRIO`).
const FAIR_PRIO: i32 = 100;

impl Import {
    /// The workload, and what was found; `recording` is where the events came from.
    ///
    /// # Errors
    /// No task is left.
    pub fn finish(mut self, recording: &Recording) -> Result<(Recorded, Report), ImportError> {
        for cpu in 0..self.cpus.len() {
            self.account(cpu, self.end);
        }
        for index in 0..self.tasks.len() {
            self.begin_batch(index, 0);
            self.step(index, None);
            draft::join(&mut self.tasks[index].drafts);
        }
        let numbers = self.numbers();
        if numbers.iter().all(Option::is_none) {
            let left = match self.start {
                _ if !self.tasks.is_empty() => "all are left out",
                Some(_) if self.report.events == 0 => "no event is between --from and --to",
                _ => "the recording has no scheduling events",
            };
            return Err(ImportError::Nothing(left));
        }
        if !self.switches {
            return Err(ImportError::Nothing("the recording has no sched_switch, so nobody is seen to run"));
        }
        let (mut tasks, sockets) = self.recorded_tasks(&numbers);
        let (cpu_sets, groups) = attributes::numbered(&mut tasks, &self.sets, recording);
        let classes = self.classes();
        self.report.groups = groups.iter().map(|group| group.name.clone()).collect();
        self.lacks(recording);
        self.report.format = recording.format().map_or("", crate::Format::name);
        self.report.cpus = self.cpus.len();
        self.report.speed_pct = self.speed.pct();
        let from = self.start.unwrap_or_default() + self.options.from_ns;
        self.report.duration_s = (self.end - from.min(self.end)) as f64 / 1e9;
        let Report { format, cpus, duration_s, .. } = &self.report;
        let on =
            self.options.machine.as_ref().map(|machine| format!(" ({})", machine.name)).unwrap_or_default();
        let origin = format!("{format}, {duration_s:.3} s on {cpus} CPUs{on}");
        let assumptions = self.report.lacks.iter().chain(&self.report.faults).cloned().collect();
        let duration_s = *duration_s;
        let recorded =
            Recorded { origin, assumptions, classes, duration_s, cpu_sets, groups, sockets, tasks };
        Ok((recorded, self.report))
    }

    /// The numbers of the tasks in the workload; of those that did nothing none.
    fn numbers(&self) -> Vec<Option<u32>> {
        let mut next = 0;
        let number = |task: &Seen| {
            let imported = task.left_out.is_none() && (task.parent.is_some() || !task.drafts.is_empty());
            imported.then(|| {
                next += 1;
                next - 1
            })
        };
        self.tasks.iter().map(number).collect()
    }

    /// The tasks, and which channels are sockets.
    fn recorded_tasks(&mut self, numbers: &[Option<u32>]) -> (Vec<RecordedTask>, Vec<u32>) {
        let start = self.start.unwrap_or_default() + self.options.from_ns;
        let costs =
            self.options.machine.as_ref().map_or_else(Costs::default, |machine| machine.costs.clone());
        self.report.channels = [self.channels.numbers().len() as u64, self.channels.shared()];
        let mut classes: HashMap<String, u32> = HashMap::new();
        let mut of_class = |task: &Seen| {
            let next = classes.len() as u32;
            *classes.entry(class(&task.comm.to_string())).or_insert(next)
        };
        let classes: Vec<u32> = self.tasks.iter().map(&mut of_class).collect();
        let mut drafts: Vec<_> = self.tasks.iter_mut().map(|task| &mut task.drafts).collect();
        let answers = answer::tie(&mut drafts, &classes, &mut self.channels, &self.connections);
        let channels = self.channels.numbers();
        // threads of a process that is not known are processes of their own
        let process =
            |index: usize| self.tasks[index].tgid.map_or((1, index as i64), |tgid| (0, tgid.into()));
        let mut processes: BTreeMap<(i64, i64), u32> = BTreeMap::new();
        let mut names: HashMap<String, u32> = HashMap::new();
        let mut tasks = Vec::new();
        for (index, task) in self.tasks.iter().enumerate().filter(|(index, _)| numbers[*index].is_some()) {
            let parent = task.parent.filter(|parent| numbers[*parent].is_some());
            let style = Style {
                costs: &costs,
                tick_ns: 1_000_000_000
                    / u64::from(self.options.machine.as_ref().map_or(250, |machine| machine.hz.max(1))),
                open_loop: self.options.open_loop,
                born: parent.and(task.born).unwrap_or(start),
                parent,
                started: parent.map(|parent| process(parent) != process(index)),
                leads: !processes.contains_key(&process(index)),
                ended: task.state == State::Dead,
            };
            let number =
                |other: usize| numbers[other].map(|number| (number, process(other) != process(index)));
            let steps = draft::steps(&task.drafts, &style, number, |via| channels.get(&via).copied());
            self.report.kernel_s += steps.kernel_ns as f64 / 1e9;
            self.report.kernel_missing_s += steps.missing_ns as f64 / 1e9;
            self.report.periodic += steps.periodic;
            self.report.waits.add(&task.waits);
            let next = processes.len() as u32;
            let number = *processes.entry(process(index)).or_insert(next);
            let nth = names.entry(task.comm.to_string()).or_default();
            *nth += 1;
            let name = format!("{}-{}", task.comm, *nth - 1);
            let Attributes { nice, allowed, group } = task.begins;
            let cpus = allowed.map(|set| self.sets.cpus(set)).unwrap_or_default();
            let answers = answers[index].and_then(|via| channels.get(&via).copied());
            tasks.push(RecordedTask {
                name,
                process: number,
                nice,
                cpus,
                group,
                answers,
                steps: steps.steps,
            });
        }
        let work = |step: &Step| if let Step::Run(ns) = step { *ns } else { 0 };
        let answer = |step: &&Step| matches!(step, Step::Answer);
        self.report.answers = tasks.iter().flat_map(|task| &task.steps).filter(answer).count() as u64;
        self.report.work_s = tasks.iter().flat_map(|task| &task.steps).map(work).sum::<u64>() as f64 / 1e9;
        let sockets = channels.iter().filter(|(via, _)| self.channels.has_sockets(**via));
        (tasks, sockets.map(|(_, channel)| *channel).collect())
    }

    fn classes(&mut self) -> Vec<Figures> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mut classes: BTreeMap<String, (Class, u64)> = BTreeMap::new();
        let mut left_out: BTreeMap<String, LeftOut> = BTreeMap::new();
        for task in &self.tasks {
            let name = class(&task.comm.to_string());
            if let Some(why) = task.left_out {
                let of = left_out.entry(name.clone()).or_insert(LeftOut { name, cpu_s: 0.0, why });
                of.cpu_s += seconds(task.cpu_ns);
                continue;
            }
            let (of, unknown_ns) =
                classes.entry(name.clone()).or_insert((Class { name, ..Class::default() }, 0));
            of.tasks += 1;
            of.cpu_s += seconds(task.cpu_ns);
            of.queued_s += seconds(task.queued_ns);
            of.blocked_s += seconds(task.blocked_ns);
            of.waits.add(&task.waits);
            *unknown_ns += task.unknown_ns;
        }
        let explained = |(mut class, unknown): (Class, u64)| {
            let all = class.cpu_s + class.queued_s + class.blocked_s;
            class.explained_pct = if all > 0.0 { 100.0 * (1.0 - seconds(unknown) / all) } else { 100.0 };
            class
        };
        self.report.classes = classes.into_values().map(explained).collect();
        self.report.classes.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s));
        self.report.left_out = left_out.into_values().collect();
        let tasks = &self.tasks;
        let imported = |index: usize| tasks.get(index).is_some_and(|task| task.left_out.is_none());
        self.report.wakeup_latency_us = self.watch.wakeup_latency_us(imported);
        let watched = std::mem::take(&mut self.watch)
            .figures(|index| imported(index).then(|| class(&tasks[index].comm.to_string())));
        let with_times = |class: &mut Class| {
            let of = watched.iter().find(|of| of.class == class.name).cloned().unwrap_or_default();
            (class.moves, class.wakeup_latency_us) = (of.moves, of.wakeup_latency_us);
            (class.requests, class.request_us) = (of.requests, of.request_us);
            // interrupts are in the watched time
            Figures { class: class.name.clone(), tasks: class.tasks, cpu_s: class.cpu_s, ..of }
        };
        self.report.classes.iter_mut().map(with_times).collect()
    }

    /// Says what the recording does not have, and what is wrong with it.
    fn lacks(&mut self, recording: &Recording) {
        let [wakings, wakeups] = self.wakings;
        let mut lacks = Vec::new();
        if wakings + wakeups == 0 {
            lacks.push("it has no wakeups: what ended a wait is not known, and waiting for a CPU counts as part of the wait".into());
        } else if wakings == 0 {
            lacks.push(
                "it has sched_wakeup, but no sched_waking: who wakes a task on another CPU may be hidden, and counts as an interrupt"
                    .into(),
            );
        }
        if self.unsure > 0 && !self.handlers {
            lacks.push(format!(
                "it does not say what happened in interrupts (ftrace's text does by its flags; with perf, record \
                 irq:softirq_entry, irq:softirq_exit, irq:irq_handler_entry, irq:irq_handler_exit, timer:hrtimer_expire_entry \
                 and timer:hrtimer_expire_exit, too): of {} wakeups by tasks some may be by interrupts of these",
                self.unsure
            ));
        }
        let imported = || self.tasks.iter().filter(|task| task.left_out.is_none());
        let alone = imported().filter(|task| task.tgid.is_none()).count();
        if alone > 0 {
            let belong = counted(alone, "task belongs", "tasks belong");
            lacks.push(format!(
                "it does not say which process {belong} to (perf script does with -F pid,tid, ftrace with the \
                 option record-tgid): each is taken for a process"
            ));
        }
        if self.options.machine.is_none() {
            lacks.push(
                "the machine of the recording was not given (--machine): its CPUs are taken to have capacity 1024, cores of \
                 their own and the default costs"
                    .into(),
            );
        }
        let real_time = imported().filter(|task| task.prio < FAIR_PRIO).count();
        if real_time > 0 {
            let have = counted(real_time, "task has", "tasks have");
            lacks.push(format!("{have} a real-time priority, which is taken for nice -20"));
        }
        let before = imported().filter(|task| !task.new && !task.drafts.is_empty()).count();
        if before > 0 {
            let were = counted(before, "task was", "tasks were");
            lacks.push(format!("{were} there before the recording began: all such tasks begin together"));
        }
        if self.report.groups.iter().any(|group| group[1..].contains('/')) {
            lacks.push(
                "task groups lie in other ones: each counts as one beside the others, with its own weight"
                    .into(),
            );
        }
        for (option, patterns) in [("--only", &self.options.only), ("--without", &self.options.without)] {
            let meant = |pattern: &str| self.names.iter().any(|name| means(pattern, &name.to_string()));
            for pattern in patterns.iter().filter(|pattern| !meant(pattern)) {
                lacks.push(format!("it has no task of the name that {option} says: {pattern}"));
            }
        }
        let mut faults = Vec::new();
        let (gaps, lost) = self.lost;
        if gaps > 0 {
            faults.push(format!(
                "the recorder lost events in {gaps} places ({lost} events, as far as it says)"
            ));
        }
        if self.inconsistent > 0 {
            faults.push(format!(
                "{} switches are away from a task that did not run there: switches are missing",
                self.inconsistent
            ));
        }
        if let Some((line, count)) = recording.unknown() {
            faults.push(format!("{count} lines were not understood, the first one is line {line}"));
        }
        if recording.late() > 0 {
            faults
                .push(format!("{} events stood after later ones, and were put into order", recording.late()));
        }
        (self.report.lacks, self.report.faults) = (lacks, faults);
    }
}
