//! What tasks may change of themselves, or others for them: CPUs that they may run on, nice value, task group.

use std::collections::HashMap;
use std::hash::Hash;

use coreward_workload::TaskGroup;
use coreward_workload::recorded::{Step, Task};

use super::draft::Draft;
use super::{DEFAULT_PRIO, Import};
use crate::Recording;
use crate::event::CpuSet;

/// What a task has at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) nice: i8,
    /// The number of the set of CPUs, if it may not run everywhere.
    pub(super) allowed: Option<u32>,
    /// The recording's number of its task group, if that is not the root group.
    pub(super) group: Option<u32>,
}

/// The nice value of a priority. A real-time task counts as the most important fair one.
pub(super) fn nice(prio: i32) -> i8 {
    prio.saturating_sub(DEFAULT_PRIO).clamp(-20, 19) as i8
}

/// Different things, numbered in the order in which they come first.
pub(super) struct Numbers<T> {
    order: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Numbers<T> {
        Numbers { order: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Copy + Eq + Hash> Numbers<T> {
    pub(super) fn of(&mut self, one: T) -> u32 {
        *self.numbers.entry(one).or_insert_with(|| {
            self.order.push(one);
            self.order.len() as u32 - 1
        })
    }
}

impl Numbers<CpuSet> {
    /// The CPUs of a set.
    pub(super) fn cpus(&self, number: u32) -> Vec<u32> {
        let set = &self.order[number as usize];
        (0..64 * set.len() as u32).filter(|cpu| set[*cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect()
    }
}

impl Import {
    /// A task has other attributes from now on. Before it has run, they are those that it begins with.
    pub(super) fn becomes(&mut self, index: usize, at: u64, new: Attributes) {
        let task = &mut self.tasks[index];
        let old = std::mem::replace(&mut task.now, new);
        if task.cpu_ns == 0 {
            task.begins = new;
            return;
        }
        if old == new {
            return;
        }
        self.account_task(index, at);
        if old.nice != new.nice {
            self.step(index, Some(Draft::Nice(new.nice)));
        }
        if old.allowed != new.allowed {
            self.step(index, Some(Draft::Allow(new.allowed)));
        }
        if old.group != new.group {
            self.step(index, Some(Draft::Group(new.group)));
        }
    }
}

/// Gives numbers of their own to the sets and groups that are used in the workload, and returns what these are.
pub(super) fn numbered(
    tasks: &mut [Task],
    sets: &Numbers<CpuSet>,
    recording: &Recording,
) -> (Vec<Vec<u32>>, Vec<TaskGroup>) {
    let (mut used_sets, mut used_groups) = (Numbers::default(), Numbers::default());
    for task in tasks {
        task.group = task.group.map(|group| used_groups.of(group));
        for step in &mut task.steps {
            match step {
                Step::Allow(Some(set)) => *set = used_sets.of(*set),
                Step::Group(Some(group)) => *group = used_groups.of(*group),
                _ => {}
            }
        }
    }
    let group = |number: u32| {
        recording.group(number).cloned().unwrap_or_else(|| TaskGroup::new(&format!("/group-{number}")))
    };
    (
        used_sets.order.into_iter().map(|number| sets.cpus(number)).collect(),
        used_groups.order.into_iter().map(group).collect(),
    )
}
