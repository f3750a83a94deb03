//! Who starts whom, and what is there from the start.

use std::collections::HashMap;

use super::{Recorded, Step, Task};

/// How tasks come to be.
pub(super) struct Births {
    /// Of each task, the one that starts it.
    pub(super) parent: Vec<Option<u32>>,
    /// All tasks, each after the one that starts it.
    pub(super) in_order: Vec<usize>,
    /// Of each task, those of its process that it starts first, because they were there before the recording.
    pub(super) threads: Vec<Vec<u32>>,
    /// The tasks that were there before the recording, and begin a process.
    pub(super) leaders: Vec<u32>,
}

impl Recorded {
    pub(super) fn named(&self, index: usize) -> String {
        format!("task {index} ({})", self.tasks[index].name)
    }

    /// The steps of a task that name another one.
    pub(super) fn relations(&self) -> impl Iterator<Item = (usize, usize, Step, u32)> + '_ {
        let of = |(index, task): (usize, &Task)| {
            let named = |(at, step): (usize, &Step)| match *step {
                Step::Wake(other) | Step::Await(other) | Step::Start(other) => {
                    Some((index, at, *step, other))
                }
                _ => None,
            };
            task.steps.iter().enumerate().filter_map(named).collect::<Vec<_>>()
        };
        self.tasks.iter().enumerate().flat_map(of)
    }

    /// How its tasks come to be.
    ///
    /// # Errors
    /// It has no tasks, a step names a task that there is not, or a task is started twice or by none that runs.
    pub(super) fn births(&self) -> Result<Births, String> {
        if self.tasks.is_empty() {
            return Err("it has no tasks".into());
        }
        let n = self.tasks.len();
        let mut parent: Vec<Option<u32>> = vec![None; n];
        for (index, at, step, other) in self.relations() {
            let refuse = |what: String| Err(format!("{}: step {}: {what}", self.named(index), at + 1));
            if other as usize >= n {
                return refuse(format!("there is no task {other} (allowed: 0 to {})", n - 1));
            }
            if matches!(step, Step::Start(_)) {
                if let Some(first) = parent[other as usize] {
                    let first = self.named(first as usize);
                    return refuse(format!("{} was started by {first} already", self.named(other as usize)));
                }
                parent[other as usize] = Some(index as u32);
            }
        }
        let mut threads = vec![Vec::new(); n];
        let mut leaders: Vec<u32> = Vec::new();
        let mut leader_of: HashMap<u32, u32> = HashMap::new();
        for index in (0..n as u32).filter(|i| parent[*i as usize].is_none()) {
            match leader_of.get(&self.tasks[index as usize].process) {
                Some(leader) => threads[*leader as usize].push(index),
                None => {
                    leader_of.insert(self.tasks[index as usize].process, index);
                    leaders.push(index);
                }
            }
        }
        // whoever is not reached from those is started in a circle
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); n];
        for (child, parent) in (0..).zip(&parent) {
            parent.iter().for_each(|parent| children[*parent as usize].push(child));
        }
        let mut reached = vec![false; n];
        let mut in_order = Vec::new();
        let mut next: Vec<u32> = (0..n as u32).rev().filter(|i| parent[*i as usize].is_none()).collect();
        while let Some(task) = next.pop() {
            reached[task as usize] = true;
            in_order.push(task as usize);
            next.append(&mut children[task as usize]);
        }
        if let Some(index) = reached.iter().position(|reached| !reached) {
            return Err(format!("{}: it is started by tasks that it starts", self.named(index)));
        }
        Ok(Births { parent, in_order, threads, leaders })
    }
}
