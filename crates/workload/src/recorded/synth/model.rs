//! What tasks of each class do: the order of work, waits and wakeups of each recorded task, through places that are there
//! for any number of tasks.

use std::collections::{BTreeMap, BTreeSet};

use super::distribution::{self, Distribution};
use crate::program::Op;
use crate::recorded::{Recorded, Step, class_of_task};

/// Where something is put, and taken from. Tasks are the recorded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// What tasks of a class wake a task for.
    Mailbox { taker: usize, from: usize },
    /// A recorded channel.
    Channel(u32),
}

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Computes for a time of a distribution.
    Run(usize),
    /// Sleeps for a time of a distribution.
    Sleep(usize),
    /// Waits for a device, as long as a distribution says.
    Device(usize),
    /// Sleeps until so many ns after the last such time, or after its start.
    Until(u64),
    /// Puts something somewhere, and awaits the answer there.
    Send {
        to: Place,
        reply: Option<Place>,
    },
    Take {
        from: Place,
        request: bool,
    },
    /// Answers the last request.
    Answer,
    Start(usize),
    /// Changes its affinity, nice value or task group.
    Change(Op),
}

impl Act {
    /// Does a turn end with it?
    pub(super) fn waits(self) -> bool {
        matches!(self, Act::Sleep(_) | Act::Device(_) | Act::Until(_) | Act::Take { .. })
    }
}

pub(super) struct Model {
    /// The classes' names.
    pub(super) classes: Vec<String>,
    /// The class of each recorded task.
    pub(super) class: Vec<usize>,
    /// What each recorded task does.
    pub(super) acts: Vec<Vec<Act>>,
    pub(super) distributions: Vec<Distribution>,
    /// The recorded tasks that take from each place, and those that put something there other than an answer.
    pub(super) takers: BTreeMap<Place, BTreeSet<usize>>,
    pub(super) senders: BTreeMap<Place, BTreeSet<usize>>,
}

impl Model {
    /// `recorded` names tasks that there are only.
    pub(super) fn new(recorded: &Recorded) -> Model {
        let mut classes: Vec<String> = Vec::new();
        let mut class_of = |name: &str| {
            let class = class_of_task(name);
            classes.iter().position(|known| *known == class).unwrap_or_else(|| {
                classes.push(class);
                classes.len() - 1
            })
        };
        let class: Vec<usize> = recorded.tasks.iter().map(|task| class_of(&task.name)).collect();
        let (distributions, drawn) = distribution::all(recorded, &class);
        let (takers, senders) = (BTreeMap::new(), BTreeMap::new());
        let mut model = Model { classes, class, acts: Vec::new(), distributions, takers, senders };
        let servers = model.servers(recorded);
        let acts =
            drawn.into_iter().enumerate().map(|(index, drawn)| model.acts(recorded, index, drawn, &servers));
        model.acts = acts.collect();
        for (index, acts) in model.acts.iter().enumerate() {
            for act in acts {
                match *act {
                    Act::Send { to, .. } => model.senders.entry(to).or_default().insert(index),
                    Act::Take { from, .. } => model.takers.entry(from).or_default().insert(index),
                    _ => continue,
                };
            }
        }
        model
    }

    /// Of the classes whose tasks wake each other, which serves which: each of its tasks has more partners in the other
    /// class; of two with as many, the one that is recorded first.
    fn servers(&self, recorded: &Recorded) -> BTreeSet<(usize, usize)> {
        let (mut wakes, mut awaits) = (BTreeSet::new(), BTreeSet::new());
        for (index, task) in recorded.tasks.iter().enumerate() {
            for step in &task.steps {
                match *step {
                    Step::Wake(other) => wakes.insert((index, other as usize)),
                    Step::Await(other) => awaits.insert((index, other as usize)),
                    _ => continue,
                };
            }
        }
        // of two classes, how many tasks of the first have partners in the second, and how many
        let mut partners: BTreeMap<(usize, usize), (BTreeSet<usize>, usize)> = BTreeMap::new();
        for (task, other) in wakes.intersection(&awaits) {
            let (tasks, pairs) = partners.entry((self.class[*task], self.class[*other])).or_default();
            tasks.insert(*task);
            *pairs += 1;
        }
        let serves = |(a, b): (usize, usize)| {
            let of = |a, b| partners.get(&(a, b)).map(|(tasks, pairs)| *pairs as f64 / tasks.len() as f64);
            let (own, others) = (of(a, b).unwrap_or(0.0), of(b, a).unwrap_or(0.0));
            a != b && (own > others || (own == others && a < b))
        };
        partners.keys().copied().filter(|pair| serves(*pair)).collect()
    }

    /// What a task does. `drawn` has the distributions of its work and sleeps, in order.
    fn acts(
        &self,
        recorded: &Recorded,
        index: usize,
        drawn: Vec<usize>,
        servers: &BTreeSet<(usize, usize)>,
    ) -> Vec<Act> {
        let task = &recorded.tasks[index];
        let own = self.class[index];
        let mailbox = |taker: usize, from: usize| Place::Mailbox { taker, from };
        let mut drawn = drawn.into_iter();
        // the task that woke it last of those that it serves, and where it waited for that: a request, if it is answered
        let mut open: Option<(usize, usize)> = None;
        let (mut acts, mut until) = (Vec::new(), 0);
        for step in &task.steps {
            let act = match *step {
                Step::Run(0) => continue,
                Step::Run(_) => Act::Run(drawn.next().unwrap_or_default()),
                Step::Sleep(_) => Act::Sleep(drawn.next().unwrap_or_default()),
                Step::Device(_) => Act::Device(drawn.next().unwrap_or_default()),
                Step::Until(ns) => Act::Until(ns.saturating_sub(std::mem::replace(&mut until, ns))),
                Step::Wake(other) => {
                    let (other, class) = (other as usize, self.class[other as usize]);
                    let reply = servers.contains(&(class, own)).then(|| mailbox(index, class));
                    match open.take_if(|(asked, _)| *asked == other) {
                        Some((_, at)) => {
                            acts[at] = Act::Take { from: mailbox(index, class), request: true };
                            Act::Answer
                        }
                        None => Act::Send { to: mailbox(other, own), reply },
                    }
                }
                Step::Await(other) => {
                    let class = self.class[other as usize];
                    if servers.contains(&(own, class)) {
                        open = Some((other as usize, acts.len()));
                    }
                    Act::Take { from: mailbox(index, class), request: false }
                }
                Step::Post(channel) => {
                    Act::Send { to: Place::Channel(channel), reply: task.answers.map(Place::Channel) }
                }
                Step::Take(channel) => Act::Take { from: Place::Channel(channel), request: false },
                Step::Request(channel) => Act::Take { from: Place::Channel(channel), request: true },
                Step::Answer => Act::Answer,
                Step::Start(other) => Act::Start(other as usize),
                Step::Allow(set) => Act::Change(Op::SetAffinity { set }),
                Step::Nice(nice) => Act::Change(Op::SetNice { nice }),
                Step::Group(group) => Act::Change(Op::SetGroup { group }),
                // it begins again, or ends after its last act
                Step::Exit => continue,
            };
            acts.push(act);
        }
        acts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Task;

    fn model(tasks: &[(&str, &[Step])]) -> Model {
        let task = |(name, steps): &(&str, &[Step])| Task {
            name: (*name).into(),
            steps: steps.to_vec(),
            ..Task::default()
        };
        Model::new(&Recorded { tasks: tasks.iter().map(task).collect(), ..Recorded::default() })
    }

    #[test]
    fn work_is_told_apart_by_what_surrounds_it() {
        use Step::*;
        let m = model(&[
            (
                "a-0",
                &[Run(1), Wake(2), Run(2), Await(2), Run(3), Sleep(50), Run(4), Wake(2), Run(5), Sleep(60)],
            ),
            ("a-1", &[Run(6), Sleep(70)]),
            ("b-0", &[Await(0), Run(7), Wake(0), Run(8)]),
        ]);
        assert_eq!((&m.classes[..], &m.class[..]), (&["a".to_owned(), "b".to_owned()][..], &[0, 0, 1][..]));
        let values: Vec<_> = m.distributions.iter().map(|d| (d.class, d.sleeps, d.values.clone())).collect();
        assert_eq!(
            values,
            [
                (0, false, vec![1]),
                (0, false, vec![2]),
                (0, false, vec![3]),
                (0, true, vec![50]),
                (0, false, vec![4]),
                (0, false, vec![5]),
                (0, true, vec![60]),
                (0, false, vec![6]),
                (0, true, vec![70]),
                (1, false, vec![7]),
                (1, false, vec![8]),
            ]
        );
        // both have one partner, so that the first class counts as the server, and b awaits answers of it
        let (request, answer) = (Place::Mailbox { taker: 0, from: 1 }, Place::Mailbox { taker: 2, from: 0 });
        assert_eq!(m.acts[0][3], Act::Take { from: request, request: true });
        assert_eq!(m.acts[2][0], Act::Take { from: answer, request: false });
        assert_eq!(m.acts[2][2], Act::Send { to: request, reply: Some(answer) });
        // the first wakeup answers nothing, the second one the request
        assert_eq!(m.acts[0][1], Act::Send { to: answer, reply: None });
        assert_eq!(m.acts[0][7], Act::Answer);
        assert_eq!(m.takers[&answer], [2].into());
        assert_eq!(m.senders[&request], [2].into());
    }

    #[test]
    fn who_has_more_partners_serves() {
        use Step::*;
        let ask: &[Step] = &[Wake(3), Await(3)];
        let m = model(&[
            ("c-0", ask),
            ("c-1", ask),
            ("c-2", ask),
            ("s-0", &[Await(1), Wake(1), Wake(0), Await(2), Await(0), Wake(0), Wake(2)]),
        ]);
        let to = |taker| Act::Send { to: Place::Mailbox { taker, from: 1 }, reply: None };
        let take = |request| Act::Take { from: Place::Mailbox { taker: 3, from: 0 }, request };
        // an answer is for the request that was taken last; one that is not answered is none
        let wanted = [take(true), Act::Answer, to(0), take(false), take(true), Act::Answer, to(2)];
        assert_eq!(m.acts[3], wanted);
        let reply = Some(Place::Mailbox { taker: 0, from: 1 });
        assert_eq!(m.acts[0][0], Act::Send { to: Place::Mailbox { taker: 3, from: 0 }, reply });
    }
}
