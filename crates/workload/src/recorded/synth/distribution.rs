//! How long work and sleeps of a kind take in each class.

use std::collections::BTreeMap;

use crate::recorded::{Recorded, Step};

/// How long work or sleeps of a kind take.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Distribution {
    pub(super) class: usize,
    pub(super) sleeps: bool,
    /// All recorded times, in ns.
    pub(super) values: Vec<u64>,
}

/// What makes work of a kind: what came before it, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Begin,
    Wake(usize),
    Await(usize),
    /// Of a channel, who takes from it: the first class of them.
    Post(usize),
    Take(usize),
    Request(usize),
    Answer,
    Sleep,
    Device,
    Until,
    Start(usize),
    End,
}

/// Reads which kind a step is.
struct Kinds<'a> {
    /// The class of each task.
    class: &'a [usize],
    /// The first class of those that take from each channel.
    takers: BTreeMap<u32, usize>,
}

impl Kinds<'_> {
    /// None of work, and of what only changes the task.
    fn of(&self, step: &Step) -> Option<Kind> {
        let class = |task: u32| self.class[task as usize];
        let takers = |channel: u32| self.takers.get(&channel).copied().unwrap_or(usize::MAX);
        Some(match *step {
            Step::Run(_) | Step::Allow(_) | Step::Nice(_) | Step::Group(_) | Step::Exit => return None,
            Step::Wake(task) => Kind::Wake(class(task)),
            Step::Await(task) => Kind::Await(class(task)),
            Step::Post(channel) => Kind::Post(takers(channel)),
            Step::Take(channel) => Kind::Take(takers(channel)),
            Step::Request(channel) => Kind::Request(takers(channel)),
            Step::Answer => Kind::Answer,
            Step::Sleep(_) => Kind::Sleep,
            Step::Device(_) => Kind::Device,
            Step::Until(_) => Kind::Until,
            Step::Start(task) => Kind::Start(class(task)),
        })
    }
}

/// All distributions, and of each task those of its steps that compute or sleep, in order. `class` has the class of each
/// task.
pub(super) fn all(recorded: &Recorded, class: &[usize]) -> (Vec<Distribution>, Vec<Vec<usize>>) {
    let mut kinds = Kinds { class, takers: BTreeMap::new() };
    for (index, task) in recorded.tasks.iter().enumerate() {
        for step in &task.steps {
            if let Step::Take(channel) | Step::Request(channel) = step {
                kinds.takers.entry(*channel).or_insert(class[index]);
            }
        }
    }
    let mut known: BTreeMap<(usize, Kind, Kind, bool), usize> = BTreeMap::new();
    let mut distributions: Vec<Distribution> = Vec::new();
    let mut drawn = Vec::new();
    for (task, class) in recorded.tasks.iter().zip(class) {
        let (mut before, mut of_task) = (Kind::Begin, Vec::new());
        for (at, step) in task.steps.iter().enumerate() {
            let (ns, sleeps, after) = match *step {
                Step::Run(ns) if ns > 0 => {
                    let after = task.steps[at + 1..].iter().find_map(|step| kinds.of(step));
                    (ns, false, after.unwrap_or(Kind::End))
                }
                // what follows a sleep does not matter to it
                Step::Sleep(ns) => (ns, true, Kind::Sleep),
                Step::Device(ns) => (ns, true, Kind::Device),
                _ => {
                    before = kinds.of(step).unwrap_or(before);
                    continue;
                }
            };
            let of = *known.entry((*class, before, after, sleeps)).or_insert_with(|| {
                distributions.push(Distribution { class: *class, sleeps, values: Vec::new() });
                distributions.len() - 1
            });
            distributions[of].values.push(ns);
            of_task.push(of);
            before = kinds.of(step).unwrap_or(before);
        }
        drawn.push(of_task);
    }
    (distributions, drawn)
}
