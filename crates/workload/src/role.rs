//! What tasks are called, by the part that they have in a workload.

use std::collections::BTreeMap;

use crate::program::Workload;

/// How the tasks of a program are called. Numbers begin with 1, in the order in which the tasks are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// There is one such task.
    One(String),
    /// `client 3`.
    Each(&'static str),
    /// `worker 3 of message thread 1`.
    Of {
        /// The role.
        name: &'static str,
        /// What has such tasks.
        whole: String,
    },
    /// `sender 3 of group 1`, where a group's tasks share channels.
    OfGroup {
        /// The role.
        name: &'static str,
        /// The first channel of the first group.
        first: u32,
        /// Channels of a group.
        channels: u32,
    },
    /// `name-0`, as rt-app calls the instances of a task.
    Instance(String),
}

/// Names the tasks of a workload, one by one.
#[derive(Debug)]
pub struct TaskNames<'a> {
    workload: &'a Workload,
    /// How many tasks have each name but for its number.
    numbers: BTreeMap<String, u32>,
}

impl<'a> TaskNames<'a> {
    /// No task has a name yet.
    pub fn new(workload: &'a Workload) -> TaskNames<'a> {
        TaskNames { workload, numbers: BTreeMap::new() }
    }

    /// The name of the next task, which runs a program on channels from `base`. A program without a role is the tool's.
    pub fn next(&mut self, program: u32, base: u32) -> String {
        let tool = self.workload.name.split(' ').next().unwrap_or_default();
        match self.workload.roles.get(program as usize) {
            None => tool.to_owned(),
            Some(Role::One(name)) => name.clone(),
            Some(Role::Each(name)) => self.number(name, ""),
            Some(Role::Of { name, whole }) => self.number(name, &format!(" of {whole}")),
            Some(Role::OfGroup { name, first, channels }) => {
                let group = base.saturating_sub(*first) / (*channels).max(1) + 1;
                self.number(name, &format!(" of group {group}"))
            }
            Some(Role::Instance(name)) => {
                let number = self.numbers.entry(format!("{name}-")).or_default();
                *number += 1;
                format!("{name}-{}", *number - 1)
            }
        }
    }

    fn number(&mut self, name: &str, whole: &str) -> String {
        let number = self.numbers.entry(format!("{name}{whole}")).or_default();
        *number += 1;
        format!("{name} {number}{whole}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, Scale, parse};

    /// The names of all tasks of a command line, in the order in which they are created.
    fn names(line: &str) -> Vec<String> {
        let workload = parse(line, Scale::FULL).unwrap();
        let mut names = TaskNames::new(&workload);
        let mut made = Vec::new();
        let mut waiting = vec![(0, 0)];
        while let Some((program, base)) = waiting.pop() {
            made.push(names.next(program, base));
            let mut times = vec![1];
            let mut spawned = Vec::new();
            for op in workload.programs[program as usize].iter() {
                match *op {
                    Op::Repeat { times: n } => times.push(times[times.len() - 1] * n),
                    Op::RepeatUntilStopped { .. } => times.push(0),
                    Op::End => drop(times.pop()),
                    Op::Spawn { program, base: first, .. } => {
                        let of_parent = if first == 0 { base } else { first };
                        spawned.extend((0..times[times.len() - 1]).map(|_| (program, of_parent)));
                    }
                    _ => {}
                }
            }
            waiting.extend(spawned.into_iter().rev());
        }
        made
    }

    #[test]
    fn tasks_are_called_by_their_roles() {
        assert_eq!(
            names("hackbench -g 2 -f 2"),
            [
                "hackbench",
                "receiver 1 of group 1",
                "receiver 2 of group 1",
                "sender 1 of group 1",
                "sender 2 of group 1",
                "receiver 1 of group 2",
                "receiver 2 of group 2",
                "sender 1 of group 2",
                "sender 2 of group 2",
            ]
        );
        assert_eq!(names("perf bench sched messaging -g 1")[40], "sender 20 of group 1");
        assert_eq!(
            names("sysbench threads --threads=2 run"),
            ["sysbench", "sysbench thread 1", "sysbench thread 2"]
        );
        assert_eq!(
            names("schbench -m 2 -t 2"),
            [
                "schbench",
                "message thread 1",
                "worker 1 of message thread 1",
                "worker 2 of message thread 1",
                "message thread 2",
                "worker 1 of message thread 2",
                "worker 2 of message thread 2",
            ]
        );
        assert_eq!(
            names("netperf -t TCP_RR --clients 2"),
            ["netperf", "server 1", "client 1", "server 2", "client 2"]
        );
        assert_eq!(names("perf bench sched pipe"), ["perf, writes first", "perf, reads first"]);
        assert_eq!(
            names("perf bench sched pipe -T"),
            ["perf", "thread that reads first", "thread that writes first"]
        );
    }

    #[test]
    fn every_program_has_a_role() {
        for line in [
            "hackbench",
            "sysbench threads run",
            "perf bench sched pipe",
            "perf bench sched pipe -T",
            "perf bench sched messaging",
            "schbench -t 2",
            "schbench-old",
            "netperf",
            "tbench 2",
            "encoder --streams 2",
            "server",
        ] {
            let workload = parse(line, Scale::FULL).unwrap();
            assert_eq!(workload.roles.len(), workload.programs.len(), "{line}");
        }
    }
}
