//! The programs that do what was recorded.
//!
//! A task that wakes another one and the one that it wakes share a semaphore: the n-th wakeup ends the n-th wait for it,
//! however late it comes. So the order of cause and effect is that of the recording, and the times are the simulated
//! machine's. A channel is a semaphore, too, which any task may post to and take from. An answer goes to whoever made the
//! request that was taken in the simulation, which may be another task than in the recording. If nothing else can happen,
//! the longest wait for a channel ends nevertheless: another task may have taken what was meant for the one that waits.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Recorded, Step, Task};
use crate::program::{Attributes, CpuChoice, Footprint, Op, Program, Shared, Workload};
use crate::role::Role;

/// What a thread touches, and what threads of a process share: as of rt-app. assumption: a recording does not say it.
const PRIVATE_BYTES: u64 = 8 << 10;
const SHARED_BYTES: u64 = 8 << 10;
pub(super) const FOOTPRINT: &str =
    "how much memory the tasks touch is not recorded: 8 KiB each, and 8 KiB for each process";

/// What a semaphore stands for.
#[derive(PartialEq, Eq, Hash)]
enum Via {
    /// The first task wakes the second.
    Pair(u32, u32),
    Channel(u32),
}

impl Recorded {
    /// The workload under a name.
    ///
    /// # Errors
    /// A step names a task that there is not, a task is started twice or by none that runs, or waits for wakeups that
    /// do not come.
    pub fn workload(&self, name: &str) -> Result<Workload, String> {
        let births = self.births()?;
        let semaphores = self.semaphores()?;
        let mut cpu_sets = self.cpu_sets.clone();
        // the first task stands for the machine, which had all those tasks that no other starts; they begin together
        // when all are there, but for those that have to be woken first
        let at_start = |i: usize| births.parent[i].is_none() && begins(&self.tasks[i]);
        let together = (0..self.tasks.len()).filter(|i| at_start(*i)).count() as u32;
        let mut first: Vec<Op> = births.leaders.iter().map(|leader| spawn(*leader, true)).collect();
        first.push(Op::Barrier { barrier: 0, starts: true });
        let mut programs: Vec<Program> = vec![first.into()];
        let mut timers = 0;
        for index in 0..self.tasks.len() {
            let mut ops: Vec<Op> = births.threads[index].iter().map(|thread| spawn(*thread, false)).collect();
            ops.extend(set_affinity(&self.tasks[index], &mut cpu_sets));
            if at_start(index) {
                ops.push(Op::Barrier { barrier: 0, starts: true });
            }
            self.steps(index as u32, &semaphores, &mut timers, &mut ops)?;
            programs.push(ops.into());
        }
        let shared = Shared {
            barriers: vec![together + 1],
            semaphores: semaphores.len() as u32,
            channels: semaphores.keys().filter(|via| matches!(via, Via::Channel(_))).count() as u32,
            sockets: self
                .sockets
                .iter()
                .filter_map(|channel| semaphores.get(&Via::Channel(*channel)).copied())
                .collect(),
            timers,
            ..Shared::default()
        };
        let tasks = self.tasks.iter().map(|task| (task.name.clone(), attributes(task)));
        let mut workload = made(name, programs, tasks, shared, cpu_sets);
        workload.groups.clone_from(&self.groups);
        workload.assumptions.extend(self.assumptions.iter().cloned());
        workload.assumptions.push(FOOTPRINT.into());
        Ok(workload)
    }

    /// The semaphore of each pair of which one wakes the other, and of each channel.
    fn semaphores(&self) -> Result<HashMap<Via, u32>, String> {
        let pairs = self.pairs()?;
        let (mut channels, mut answers) = (BTreeMap::<u32, (u64, u64)>::new(), 0);
        for step in self.tasks.iter().flat_map(|task| &task.steps) {
            match *step {
                Step::Post(channel) => channels.entry(channel).or_default().0 += 1,
                Step::Take(channel) | Step::Request(channel) => channels.entry(channel).or_default().1 += 1,
                Step::Answer => answers += 1,
                _ => {}
            }
        }
        let awaited: HashSet<u32> = self.tasks.iter().filter_map(|task| task.answers).collect();
        for channel in &awaited {
            channels.entry(*channel).or_default();
        }
        // any answer may come to any of those that await some
        let missing = |(posts, takes): (u64, u64)| takes.saturating_sub(posts);
        let mut unanswered = 0;
        for (channel, counts) in &channels {
            if awaited.contains(channel) {
                unanswered += missing(*counts);
            } else if missing(*counts) > 0 {
                let (posts, takes) = counts;
                return Err(format!("{takes} steps take from channel {channel}, to which {posts} post"));
            }
        }
        if unanswered > answers {
            return Err(format!("{unanswered} steps wait for answers, of which there are {answers}"));
        }
        let pairs = pairs.into_iter().map(|(waker, woken)| Via::Pair(waker, woken));
        Ok(pairs.chain(channels.into_keys().map(Via::Channel)).zip(0..).collect())
    }

    /// The pairs of which one wakes the other.
    fn pairs(&self) -> Result<Vec<(u32, u32)>, String> {
        let mut wakeups: HashMap<(u32, u32), (u64, u64)> = HashMap::new();
        for (index, _, step, other) in self.relations() {
            match step {
                Step::Wake(woken) => wakeups.entry((index as u32, woken)).or_default().0 += 1,
                Step::Await(waker) => wakeups.entry((waker, index as u32)).or_default().1 += 1,
                _ => continue,
            }
            if other as usize == index {
                return Err(format!("{}: it wakes itself, or waits for itself", self.named(index)));
            }
        }
        let mut pairs: Vec<_> = wakeups.into_iter().collect();
        pairs.sort_unstable();
        if let Some(((waker, woken), (wakes, waits))) = pairs.iter().find(|(_, (wakes, waits))| wakes < waits)
        {
            let [waker, woken] = [waker, woken].map(|task| self.named(*task as usize));
            return Err(format!("{woken} waits {waits} times for {waker}, which wakes it {wakes} times"));
        }
        Ok(pairs.into_iter().map(|(pair, _)| pair).collect())
    }

    fn steps(
        &self,
        index: u32,
        semaphores: &HashMap<Via, u32>,
        timers: &mut u32,
        ops: &mut Vec<Op>,
    ) -> Result<(), String> {
        let task = &self.tasks[index as usize];
        let reply = |channel: u32| semaphores[&Via::Channel(channel)];
        let up =
            |via, answers: Option<u32>| Op::Up { semaphore: semaphores[&via], reply: answers.map(reply) };
        let down = |via, request| Op::Down { semaphore: semaphores[&via], count: 1, request };
        let requests = |step: &Step| matches!(step, Step::Request(_));
        let first_request = task.steps.iter().position(requests).unwrap_or(usize::MAX);
        let mut until = 0;
        if task.steps.iter().any(|step| matches!(step, Step::Until(_))) {
            *timers += 1;
            ops.push(Op::Origin);
        }
        for (at, step) in task.steps.iter().enumerate() {
            let op = match *step {
                Step::Run(0) => continue,
                Step::Run(ns) => Op::Run { ns },
                Step::Wake(woken) => up(Via::Pair(index, woken), None),
                Step::Await(waker) => down(Via::Pair(waker, index), false),
                Step::Post(channel) => up(Via::Channel(channel), task.answers),
                Step::Take(channel) => down(Via::Channel(channel), false),
                Step::Request(channel) => down(Via::Channel(channel), true),
                Step::Answer if at < first_request => {
                    let task = self.named(index as usize);
                    return Err(format!("{task}: step {}: it answers before it takes a request", at + 1));
                }
                Step::Answer => Op::Answer,
                Step::Sleep(ns) => Op::Sleep { ns },
                Step::Device(ns) => Op::Device { ns },
                Step::Until(ns) if ns < until => {
                    let task = self.named(index as usize);
                    return Err(format!(
                        "{task}: step {}: u{ns} is before u{until} of an earlier step",
                        at + 1
                    ));
                }
                Step::Until(ns) => {
                    let period_ns = ns - std::mem::replace(&mut until, ns);
                    Op::Timer { timer: *timers - 1, period_ns, relative: false }
                }
                Step::Start(other) => match self.tasks[other as usize].process != task.process {
                    // it waits at once until the child has executed another program
                    true if task.steps.get(at + 1) == Some(&Step::Await(other)) => {
                        Op::Vfork { program: other + 1 }
                    }
                    process => spawn(other, process),
                },
                Step::Allow(set) => Op::SetAffinity { set },
                Step::Nice(nice) => Op::SetNice { nice },
                Step::Group(group) => Op::SetGroup { group },
                Step::Exit => Op::Exit,
            };
            // what it takes without doing anything in between, it takes when all of it is there
            match (ops.last_mut(), op) {
                (
                    Some(Op::Down { semaphore, count, request: false }),
                    Op::Down { semaphore: next, request: false, .. },
                ) if *semaphore == next => *count += 1,
                _ => ops.push(op),
            }
        }
        Ok(())
    }
}

/// Does a task that was there before the recording begin by itself, and need not be woken first?
pub(super) fn begins(task: &Task) -> bool {
    let timed = task.steps.iter().any(|step| matches!(step, Step::Until(_)));
    timed || !matches!(task.steps.first(), Some(Step::Await(_) | Step::Take(_) | Step::Request(_)))
}

/// What a task begins with.
pub(super) fn attributes(task: &Task) -> Attributes {
    Attributes { nice: task.nice, group: task.group, ..Attributes::default() }
}

/// A workload of programs, of which the first stands for the machine; `tasks` has the names of the others, and what they
/// begin with.
pub(super) fn made(
    name: &str,
    programs: Vec<Program>,
    tasks: impl Iterator<Item = (String, Attributes)>,
    shared: Shared,
    cpu_sets: Vec<Vec<u32>>,
) -> Workload {
    let first = (Role::One("start of the recording".into()), Attributes::default());
    let others = tasks.map(|(name, attributes)| (Role::One(name), attributes));
    let (roles, attributes) = std::iter::once(first).chain(others).unzip();
    Workload {
        name: name.to_owned(),
        programs,
        // what its tasks did before it was recorded is not known
        wakee_flips: 0,
        footprint: Footprint { private_bytes: PRIVATE_BYTES, shared_bytes: SHARED_BYTES },
        attributes,
        roles,
        cpu_sets: cpu_sets.into_iter().map(CpuChoice::These).collect(),
        shared,
        ..Workload::default()
    }
}

/// Lets a task run on its CPUs only, if it may not run on all.
pub(super) fn set_affinity(task: &Task, cpu_sets: &mut Vec<Vec<u32>>) -> Option<Op> {
    if task.cpus.is_empty() {
        return None;
    }
    let known = cpu_sets.iter().position(|set| *set == task.cpus);
    let set = known.unwrap_or_else(|| {
        cpu_sets.push(task.cpus.clone());
        cpu_sets.len() - 1
    });
    Some(Op::SetAffinity { set: Some(set as u32) })
}

/// Starts a task; its program comes after that of the first one.
pub(super) fn spawn(task: u32, process: bool) -> Op {
    Op::Spawn { program: task + 1, base: 0, process }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(tasks: &[(u32, &[Step])]) -> Recorded {
        let task = |(index, (process, steps)): (usize, &(u32, &[Step]))| Task {
            name: format!("t{index}"),
            process: *process,
            nice: 0,
            steps: steps.to_vec(),
            ..Task::default()
        };
        Recorded { tasks: tasks.iter().enumerate().map(task).collect(), ..Recorded::default() }
    }

    #[test]
    fn tasks_become_programs() {
        use Step::*;
        let r = recorded(&[
            (0, &[Run(5), Wake(1), Start(2), Start(3), Until(100), Until(150)]),
            (1, &[Await(0), Run(0), Sleep(9)]),
            (0, &[Run(1)]),
            (2, &[Run(2)]),
            (1, &[Run(3)]),
        ]);
        let workload = r.workload("x.cww").unwrap();
        let barrier = Op::Barrier { barrier: 0, starts: true };
        let timer = |period_ns| Op::Timer { timer: 0, period_ns, relative: false };
        let wanted: [&[Op]; 6] = [
            &[spawn(0, true), spawn(1, true), barrier],
            &[
                barrier,
                Op::Origin,
                Op::Run { ns: 5 },
                Op::Up { semaphore: 0, reply: None },
                spawn(2, false),
                spawn(3, true),
                timer(100),
                timer(50),
            ],
            // a thread that was there before is started by the first of its process
            &[spawn(4, false), Op::Down { semaphore: 0, count: 1, request: false }, Op::Sleep { ns: 9 }],
            &[Op::Run { ns: 1 }],
            &[Op::Run { ns: 2 }],
            &[barrier, Op::Run { ns: 3 }],
        ];
        for (program, ops) in workload.programs.iter().zip(wanted) {
            assert_eq!(**program, *ops);
        }
        assert_eq!(workload.programs.len(), 6);
        assert_eq!((workload.shared.barriers, workload.shared.semaphores), (vec![3], 1));
    }

    #[test]
    fn channels_and_affinity_become_semaphores_and_sets() {
        use Step::*;
        let mut r =
            recorded(&[(0, &[Post(7), Post(7), Wake(1)]), (1, &[Take(7), Await(0)]), (2, &[Take(7)])]);
        (r.tasks[1].cpus, r.tasks[2].cpus) = (vec![1, 3], vec![1, 3]);
        let workload = r.workload("x.cww").unwrap();
        let up = |semaphore| Op::Up { semaphore, reply: None };
        let down = |semaphore| Op::Down { semaphore, count: 1, request: false };
        let barrier = Op::Barrier { barrier: 0, starts: true };
        let set = Op::SetAffinity { set: Some(0) };
        let wanted: [&[Op]; 3] = [&[barrier, up(1), up(1), up(0)], &[set, down(1), down(0)], &[set, down(1)]];
        for (program, ops) in workload.programs[1..].iter().zip(wanted) {
            assert_eq!(**program, *ops);
        }
        assert_eq!(workload.cpu_sets, [CpuChoice::These(vec![1, 3])]);
        assert_eq!((workload.shared.semaphores, workload.shared.channels), (2, 1));
    }

    #[test]
    fn a_process_that_is_waited_for_at_once_is_of_vfork() {
        use Step::*;
        let down = Op::Down { semaphore: 0, count: 1, request: false };
        let first = |process: u32, steps: &[Step]| {
            let r = recorded(&[(0, steps), (process, &[Wake(0), Run(1)])]);
            r.workload("x.cww").unwrap().programs[1][1..].to_vec()
        };
        assert_eq!(first(1, &[Start(1), Await(1)]), [Op::Vfork { program: 2 }, down]);
        // a thread, and one that the parent works beside
        assert_eq!(first(0, &[Start(1), Await(1)]), [spawn(1, false), down]);
        assert_eq!(first(1, &[Start(1), Run(5), Await(1)]), [spawn(1, true), Op::Run { ns: 5 }, down]);
    }

    #[test]
    fn sockets_are_semaphores_whose_messages_have_lines() {
        use Step::*;
        let mut r =
            recorded(&[(0, &[Post(7), Wake(1), Post(9)]), (1, &[Take(7), Await(0), Device(5), Take(9)])]);
        // a channel that nobody uses is none
        r.sockets = vec![8, 9];
        let workload = r.workload("x.cww").unwrap();
        let last = workload.programs[2].last().copied();
        let Some(Op::Down { semaphore, .. }) = last else { panic!("{last:?}") };
        assert_eq!(workload.shared.sockets, [semaphore]);
        assert!(workload.programs[2].contains(&Op::Device { ns: 5 }));
    }

    #[test]
    fn what_is_taken_at_once_is_waited_for_at_once() {
        use Step::*;
        let mut r = recorded(&[
            (0, &[Post(7), Post(7), Post(7), Post(8), Post(9), Post(9), Take(6)]),
            (1, &[Take(7), Take(7), Take(8), Run(5), Take(7), Request(9), Request(9), Answer]),
        ]);
        r.tasks[0].answers = Some(6);
        let workload = r.workload("x.cww").unwrap();
        let down = |semaphore, count, request| Op::Down { semaphore, count, request };
        // each request is answered by itself
        let wanted = [
            down(1, 2, false),
            down(2, 1, false),
            Op::Run { ns: 5 },
            down(1, 1, false),
            down(3, 1, true),
            down(3, 1, true),
            Op::Answer,
        ];
        assert_eq!(*workload.programs[2], wanted);
    }

    #[test]
    fn a_request_carries_where_its_answer_goes() {
        use Step::*;
        let mut r = recorded(&[(0, &[Post(7), Take(8)]), (1, &[Request(7), Run(5), Answer])]);
        r.tasks[0].answers = Some(8);
        let workload = r.workload("x.cww").unwrap();
        let barrier = Op::Barrier { barrier: 0, starts: true };
        let (down, request) = (
            Op::Down { semaphore: 1, count: 1, request: false },
            Op::Down { semaphore: 0, count: 1, request: true },
        );
        let wanted: [&[Op]; 2] = [
            &[barrier, Op::Up { semaphore: 0, reply: Some(1) }, down],
            &[request, Op::Run { ns: 5 }, Op::Answer],
        ];
        for (program, ops) in workload.programs[1..].iter().zip(wanted) {
            assert_eq!(**program, *ops);
        }
        r.tasks[0].answers = None;
        assert_eq!(r.workload("x").unwrap_err(), "1 steps take from channel 8, to which 0 post");
        r.tasks[0].answers = Some(8);
        r.tasks[1].steps.pop();
        assert_eq!(r.workload("x").unwrap_err(), "1 steps wait for answers, of which there are 0");
        r.tasks[1].steps = vec![Answer, Request(7)];
        assert_eq!(r.workload("x").unwrap_err(), "task 1 (t1): step 1: it answers before it takes a request");
    }

    #[test]
    fn what_cannot_happen_is_refused() {
        use Step::*;
        let refusal = |tasks: &[(u32, &[Step])]| recorded(tasks).workload("x").unwrap_err();
        assert_eq!(refusal(&[]), "it has no tasks");
        assert_eq!(
            refusal(&[(0, &[Run(1), Wake(1)])]),
            "task 0 (t0): step 2: there is no task 1 (allowed: 0 to 0)"
        );
        assert_eq!(
            refusal(&[(0, &[Await(1)]), (1, &[])]),
            "task 0 (t0) waits 1 times for task 1 (t1), which wakes it 0 times"
        );
        assert_eq!(
            refusal(&[(0, &[Take(3)]), (0, &[Post(3), Take(3)])]),
            "2 steps take from channel 3, to which 1 post"
        );
        assert_eq!(refusal(&[(0, &[Wake(0)])]), "task 0 (t0): it wakes itself, or waits for itself");
        assert_eq!(
            refusal(&[(0, &[Start(1), Start(1)]), (1, &[])]),
            "task 0 (t0): step 2: task 1 (t1) was started by task 0 (t0) already"
        );
        assert_eq!(
            refusal(&[(0, &[]), (0, &[Start(2)]), (0, &[Start(1)])]),
            "task 1 (t1): it is started by tasks that it starts"
        );
        assert_eq!(
            refusal(&[(0, &[Until(9), Until(8)])]),
            "task 0 (t0): step 2: u8 is before u9 of an earlier step"
        );
    }
}
