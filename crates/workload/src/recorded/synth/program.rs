//! The programs of a synthetic workload's tasks.

use std::collections::{BTreeMap, BTreeSet};

use super::distribution::Distribution;
use super::model::{Act, Model, Place};
use crate::program::{Op, Shared, Workload};
use crate::recorded::births::Births;
use crate::recorded::replay::{FOOTPRINT, attributes, begins, made, set_affinity, spawn};
use crate::recorded::{MAX_STEPS, MAX_TASKS, Recorded};

const DRAWN: &str = "synthetic: tasks repeat what recorded tasks of their class did, with times of work and sleep that \
                     are drawn from those recorded in the class, each independent of the others";

/// How large the workload is to be; by class.
pub(super) struct Size {
    /// Tasks; None for as many as were recorded.
    pub(super) tasks: Vec<Option<u32>>,
    pub(super) work: Vec<f64>,
    pub(super) sleep: Vec<f64>,
    pub(super) time_ns: u64,
}

/// A synthetic task: the recorded task that it does what of, and which of those that do so it is.
#[derive(Clone, Copy)]
struct Instance {
    member: usize,
    copy: u32,
}

struct Synth<'a> {
    recorded: &'a Recorded,
    births: &'a Births,
    model: &'a Model,
    size: &'a Size,
    /// How many tasks do what each recorded task did.
    copies: Vec<u32>,
    instances: Vec<Instance>,
    /// The first instance of each recorded task.
    first: Vec<u32>,
    /// How many there are of each place, and the first one's semaphore.
    places: BTreeMap<Place, (u32, u32)>,
    semaphores: u32,
}

/// The workload under a name.
///
/// # Errors
/// It has too many tasks or steps.
pub(super) fn workload(
    recorded: &Recorded,
    births: &Births,
    model: &Model,
    size: &Size,
    name: &str,
) -> Result<Workload, String> {
    let copies = copies(births, model, size);
    let all: u64 = copies.iter().copied().map(u64::from).sum();
    let steps: u64 = copies.iter().zip(&model.acts).map(|(n, acts)| u64::from(*n) * acts.len() as u64).sum();
    if all > MAX_TASKS as u64 || steps > MAX_STEPS as u64 {
        return Err(format!(
            "it has {all} tasks with {steps} steps (allowed: {MAX_TASKS} tasks with {MAX_STEPS} steps)"
        ));
    }
    let (mut instances, mut first) = (Vec::new(), Vec::new());
    for (member, copies) in copies.iter().enumerate() {
        first.push(instances.len() as u32);
        instances.extend((0..*copies).map(|copy| Instance { member, copy }));
    }
    let (places, semaphores) = (BTreeMap::new(), 0);
    let mut synth = Synth { recorded, births, model, size, copies, instances, first, places, semaphores };
    synth.number_places();
    Ok(synth.workload(name))
}

/// How many tasks do what each recorded task did: those of a class in turn, as many as are asked for; otherwise one, or
/// as many as there are of whoever starts it.
fn copies(births: &Births, model: &Model, size: &Size) -> Vec<u32> {
    let mut copies = vec![0; model.acts.len()];
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); model.classes.len()];
    (0..model.acts.len()).for_each(|task| members[model.class[task]].push(task));
    for task in births.in_order.iter().copied() {
        let class = model.class[task];
        copies[task] = match size.tasks[class] {
            Some(n) => {
                let (of, index) =
                    (members[class].len() as u32, members[class].iter().position(|m| *m == task));
                (n + of - 1 - index.map_or(0, |index| index as u32)) / of
            }
            None => births.parent[task].map_or(1, |parent| copies[parent as usize]),
        };
    }
    copies
}

impl Synth<'_> {
    /// The task that does what a recorded one did; of one that none does, one of its class.
    fn stand_in(&self, member: usize) -> usize {
        if self.copies[member] > 0 {
            return member;
        }
        let class = self.model.class[member];
        let alike = |task: &usize| self.model.class[*task] == class && self.copies[*task] > 0;
        let present: Vec<usize> = (0..self.copies.len()).filter(alike).collect();
        if present.is_empty() { member } else { present[member % present.len()] }
    }

    /// Where what is sent to a place comes if nobody takes from there.
    fn reached(&self, place: Place) -> Place {
        match place {
            Place::Mailbox { taker, from } => Place::Mailbox { taker: self.stand_in(taker), from },
            Place::Channel(_) => {
                let takers = |place: &Place| self.model.takers.get(place).into_iter().flatten();
                if takers(&place).any(|taker| self.copies[*taker] > 0) {
                    return place;
                }
                let stand_ins: BTreeSet<usize> = takers(&place).map(|taker| self.stand_in(*taker)).collect();
                let others = self.model.takers.iter().filter(|(other, _)| matches!(other, Place::Channel(_)));
                let alike =
                    others.filter(|(other, _)| self.sender_classes(**other) == self.sender_classes(place));
                let found = alike.filter(|(_, takers)| takers.iter().any(|taker| stand_ins.contains(taker)));
                found.map(|(other, _)| *other).next().unwrap_or(place)
            }
        }
    }

    fn sender_classes(&self, place: Place) -> BTreeSet<usize> {
        let senders = self.model.senders.get(&place).into_iter().flatten();
        senders.map(|sender| self.model.class[*sender]).collect()
    }

    /// Numbers all places. What several recorded tasks take from, any task takes from; what one takes from, there is as
    /// often as that task, but not more often than those that send something there: each is to get its part.
    fn number_places(&mut self) {
        let most = |tasks: Option<&BTreeSet<usize>>| {
            tasks.into_iter().flatten().map(|task| self.copies[*task]).max().unwrap_or(0)
        };
        let mut counts: BTreeMap<Place, u32> = BTreeMap::new();
        let named = |act: &Act| match *act {
            Act::Send { to, reply } => [Some(self.reached(to)), reply],
            Act::Take { from, .. } => [Some(from), None],
            _ => [None; 2],
        };
        let places: BTreeSet<Place> = self.model.acts.iter().flatten().flat_map(named).flatten().collect();
        for place in places {
            let (takers, senders) = (self.model.takers.get(&place), self.model.senders.get(&place));
            let count = match takers.map_or(0, BTreeSet::len) {
                1 => most(takers).min(senders.map_or(u32::MAX, |_| most(senders))),
                _ => 1,
            };
            counts.insert(place, count.max(1));
        }
        let mut next = 0;
        self.places = counts
            .into_iter()
            .map(|(place, count)| {
                next += count;
                (place, (count, next - count))
            })
            .collect();
        self.semaphores = next;
    }

    /// The semaphores that stand for sockets.
    fn sockets(&self) -> Vec<u32> {
        let channels = self.recorded.sockets.iter().map(|channel| Place::Channel(*channel));
        let of = |place: Place| self.places.get(&place).map(|(count, first)| *first..first + count);
        channels.filter_map(of).flatten().collect()
    }

    fn semaphore(&self, place: Place, copy: u32) -> u32 {
        let (count, first) = self.places[&place];
        first + copy % count
    }

    /// The instance that a task of that number belongs to.
    fn of(&self, member: usize, copy: u32) -> u32 {
        self.first[member] + copy % self.copies[member].max(1)
    }

    /// The instances that are there from the start: those that begin a process, and the threads that each of these starts.
    fn processes(&self) -> (Vec<u32>, Vec<Vec<u32>>) {
        let (mut leaders, mut threads) = (Vec::new(), vec![Vec::new(); self.instances.len()]);
        let mut leader_of: BTreeMap<u32, usize> = BTreeMap::new();
        for (index, Instance { member, copy }) in (0..).zip(&self.instances) {
            if self.births.parent[*member].is_some() {
                continue;
            }
            let leader = *leader_of.entry(self.recorded.tasks[*member].process).or_insert(*member);
            match leader == *member {
                true => leaders.push(index),
                false => threads[self.of(leader, *copy) as usize].push(index),
            }
        }
        (leaders, threads)
    }

    fn workload(&self, name: &str) -> Workload {
        let (leaders, threads) = self.processes();
        let mut cpu_sets = self.recorded.cpu_sets.clone();
        let (mut timers, mut together) = (0, 1);
        let mut programs = vec![self.start(&leaders).into()];
        for (index, Instance { member, .. }) in self.instances.iter().enumerate() {
            let task = &self.recorded.tasks[*member];
            let mut ops: Vec<Op> = threads[index].iter().map(|thread| spawn(*thread, false)).collect();
            ops.extend(set_affinity(task, &mut cpu_sets));
            if self.births.parent[*member].is_none() && begins(task) {
                together += 1;
                ops.push(Op::Barrier { barrier: 0, starts: true });
            }
            self.acts(index, !threads[index].is_empty(), &mut timers, &mut ops);
            programs.push(ops.into());
        }
        let shared = Shared {
            barriers: vec![together],
            semaphores: self.semaphores,
            channels: self.semaphores,
            sockets: self.sockets(),
            timers,
            distributions: self.distributions(),
            ..Shared::default()
        };
        let begin_with = |instance: &Instance| attributes(&self.recorded.tasks[instance.member]);
        let tasks = self.names().into_iter().zip(self.instances.iter().map(begin_with));
        let mut workload = made(name, programs, tasks, shared, cpu_sets);
        workload.groups.clone_from(&self.recorded.groups);
        workload.assumptions.extend(self.recorded.assumptions.iter().cloned());
        workload.assumptions.extend([DRAWN.into(), FOOTPRINT.into()]);
        workload
    }

    /// What the task does that starts all others, and ends the measured time.
    fn start(&self, leaders: &[u32]) -> Vec<Op> {
        let mut ops: Vec<Op> = leaders.iter().map(|leader| spawn(*leader, true)).collect();
        ops.push(Op::Barrier { barrier: 0, starts: true });
        ops.extend([Op::Sleep { ns: self.size.time_ns }, Op::MarkEnd, Op::Stop]);
        ops
    }

    /// The recorded names, with numbers of their own.
    fn names(&self) -> Vec<String> {
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        let name = |instance: &Instance| {
            let name = self.recorded.tasks[instance.member].name.as_str();
            let name = match name.rsplit_once('-') {
                Some((name, number)) if number.parse::<u32>().is_ok() => name,
                _ => name,
            };
            let number = numbers.entry(name).or_default();
            *number += 1;
            format!("{name}-{}", *number - 1)
        };
        self.instances.iter().map(name).collect()
    }

    fn distributions(&self) -> Vec<Vec<u64>> {
        let scaled = |of: &Distribution| {
            let by = if of.sleeps { self.size.sleep[of.class] } else { self.size.work[of.class] };
            of.values.iter().map(|ns| scaled(*ns, by)).collect()
        };
        self.model.distributions.iter().map(scaled).collect()
    }

    /// Whether a repetition of what a recorded task did takes any time.
    fn takes_time(&self, acts: &[Act]) -> bool {
        acts.iter().any(|act| match act {
            Act::Run(of) | Act::Sleep(of) | Act::Device(of) => {
                self.model.distributions[*of].values.iter().any(|ns| *ns > 0)
            }
            Act::Until(ns) => *ns > 0,
            _ => false,
        })
    }

    /// What a task does. Whoever is there from the start repeats it until the end; but for what it does before it waits
    /// for the first time for a point in time, which is the task's phase.
    fn acts(&self, index: usize, has_threads: bool, timers: &mut u32, ops: &mut Vec<Op>) {
        let Instance { member, copy } = self.instances[index];
        let acts = &self.model.acts[member];
        if acts.iter().any(|act| matches!(act, Act::Until(_))) {
            *timers += 1;
            ops.push(Op::Origin);
        }
        let timer = timers.saturating_sub(1);
        let there = self.births.parent[member].is_none();
        let first =
            acts.iter().position(|act| act.waits()).filter(|at| there && matches!(acts[*at], Act::Until(_)));
        let (before, repeated) = acts.split_at(first.map_or(0, |at| at + 1));
        for act in before {
            // tasks that do the same on timers do it one after the other
            let later = |period: u64| period * u64::from(copy) / u64::from(self.copies[member]);
            match *act {
                Act::Until(ns) => {
                    let period_ns = ns + later(mean_period(repeated));
                    ops.push(Op::Timer { timer, period_ns, relative: false });
                }
                act => self.act(act, index, timer, ops),
            }
        }
        let repeats = there && self.takes_time(repeated);
        if repeats {
            ops.push(Op::RepeatUntilStopped { times: u64::MAX });
        }
        for turn in repeated.split_inclusive(|act| act.waits()) {
            let (done, wait) = match turn {
                [done @ .., wait] if wait.waits() => (done, Some(*wait)),
                done => (done, None),
            };
            if let ([], Some(wait)) = (done, wait)
                && self.takes_more(wait, index, ops)
            {
                continue;
            }
            ops.extend([Op::RepeatUntilStopped { times: 1 }, Op::EventStart]);
            done.iter().for_each(|act| self.act(*act, index, timer, ops));
            ops.push(Op::EventEnd);
            wait.into_iter().for_each(|act| self.act(act, index, timer, ops));
            ops.push(Op::End);
        }
        if repeats {
            // before it starts the same tasks again, those have ended
            if !has_threads && repeated.iter().any(|act| matches!(act, Act::Start(_))) {
                ops.push(Op::WaitChildren);
            }
            ops.push(Op::End);
        }
    }

    /// What is taken without doing anything in between is taken when all of it is there: adds that to the turn before.
    fn takes_more(&self, wait: Act, index: usize, ops: &mut [Op]) -> bool {
        match (wait, ops) {
            (
                Act::Take { from, request: false },
                [.., Op::Down { semaphore, count, request: false }, Op::End],
            ) if *semaphore == self.semaphore(from, self.instances[index].copy) => {
                *count += 1;
                true
            }
            _ => false,
        }
    }

    fn act(&self, act: Act, index: usize, timer: u32, ops: &mut Vec<Op>) {
        let Instance { member, copy } = self.instances[index];
        let class = self.model.class[member];
        match act {
            Act::Run(of) => ops.push(Op::RunDrawn { of: of as u32 }),
            Act::Sleep(of) => ops.push(Op::SleepDrawn { of: of as u32, device: false }),
            Act::Device(of) => ops.push(Op::SleepDrawn { of: of as u32, device: true }),
            Act::Until(ns) => {
                let period_ns = scaled(ns, self.size.sleep[class]);
                ops.push(Op::Timer { timer, period_ns, relative: false });
            }
            Act::Send { to, reply } => {
                let reply = reply.map(|place| self.semaphore(place, copy));
                ops.push(Op::Up { semaphore: self.semaphore(self.reached(to), copy), reply });
            }
            Act::Take { from, request } => {
                ops.push(Op::Down { semaphore: self.semaphore(from, copy), count: 1, request });
            }
            Act::Answer => ops.push(Op::Answer),
            Act::Change(op) => ops.push(op),
            Act::Start(child) => {
                let process = self.recorded.tasks[child].process != self.recorded.tasks[member].process;
                let copies = (0..self.copies[child]).filter(|of| self.of(member, *of) == index as u32);
                ops.extend(copies.map(|copy| spawn(self.first[child] + copy, process)));
            }
        }
    }
}

fn scaled(ns: u64, by: f64) -> u64 {
    ((ns as f64 * by) as u64).max(ns.min(1))
}

/// The mean time from one point in time to the next, in ns.
fn mean_period(acts: &[Act]) -> u64 {
    let periods: Vec<u64> =
        acts.iter().filter_map(|act| if let Act::Until(ns) = act { Some(*ns) } else { None }).collect();
    periods.iter().sum::<u64>() / (periods.len() as u64).max(1)
}
