//! What runs on each CPU, and how fast.

use coreward_engine::Asids;
use coreward_machine::Machine;

use crate::event::Handler;

/// Nested handlers of interrupts that are kept; there are hardly more than three.
const MAX_NESTED: usize = 8;

/// Whom a CPU runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Current {
    /// The recording has not said it yet.
    #[default]
    Unknown,
    Idle,
    /// A task by its index.
    Task(usize),
}

#[derive(Clone, Default)]
struct Cpu {
    current: Current,
    /// Its time is accounted up to here.
    since: u64,
    /// When it became idle, if it is.
    idle_since: u64,
    handlers: Vec<Handler>,
    asids: Asids,
    /// Other CPUs of its core.
    siblings: Vec<usize>,
    capacity: u64,
}

/// The CPUs of a recording.
pub(super) struct Cpus {
    cpus: Vec<Cpu>,
    /// Throughput of two busy siblings together, in percent of one alone.
    smt_pct: u64,
    start: u64,
}

/// Work that a task has done.
pub(super) struct Done {
    pub(super) task: usize,
    /// Time on the CPU, in ns.
    pub(super) time: u64,
    /// The same as work: at full capacity, on a core of its own.
    pub(super) work: u64,
}

impl Cpus {
    /// Of a machine; without one, all CPUs are alike, and have their cores for themselves.
    pub(super) fn new(machine: Option<&Machine>) -> Cpus {
        let of = |machine: &Machine| {
            let cpu = |(cpu, c): (usize, &coreward_machine::Cpu)| Cpu {
                siblings: machine.smt_mask(cpu).iter().filter(|other| *other != cpu).collect(),
                capacity: c.capacity.into(),
                ..Cpu::default()
            };
            machine.cpus.iter().enumerate().map(cpu).collect()
        };
        Cpus {
            cpus: machine.map(of).unwrap_or_default(),
            smt_pct: machine.map_or(100, |m| m.costs.smt_pct),
            start: 0,
        }
    }

    /// The recording begins.
    pub(super) fn begin(&mut self, at: u64) {
        self.start = at;
        self.cpus.iter_mut().for_each(|cpu| cpu.since = at);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Makes room for a CPU that nothing was known about.
    pub(super) fn grow(&mut self, cpu: usize) {
        let new = Cpu { capacity: 1024, since: self.start, ..Cpu::default() };
        self.cpus.resize(self.cpus.len().max(cpu + 1), new);
    }

    pub(super) fn current(&self, cpu: usize) -> Current {
        self.cpus[cpu].current
    }

    /// What the current task of a CPU has done since it was last asked. Interrupts are not its work.
    pub(super) fn account(&mut self, cpu: usize, now: u64) -> Option<Done> {
        let c = &self.cpus[cpu];
        let busy = |sibling: &&usize| matches!(self.cpus[**sibling].current, Current::Task(_));
        let n = c.siblings.iter().filter(busy).count() as u64;
        // as the simulator shares a core
        let rate = c.capacity * (100 + n * (self.smt_pct.max(100) - 100)) / (100 * (n + 1));
        let c = &mut self.cpus[cpu];
        let time = now.saturating_sub(std::mem::replace(&mut c.since, now));
        match c.current {
            Current::Task(task) if c.handlers.is_empty() => {
                Some(Done { task, time, work: (u128::from(time) * u128::from(rate) / 1024) as u64 })
            }
            _ => None,
        }
    }

    /// Since when a CPU is idle; `None` if it is not.
    pub(super) fn idle_since(&self, cpu: usize) -> Option<u64> {
        (self.cpus[cpu].current == Current::Idle).then_some(self.cpus[cpu].idle_since)
    }

    /// A CPU runs another task. Its siblings' time has to be accounted before.
    pub(super) fn switch(&mut self, cpu: usize, to: Current) {
        self.cpus[cpu].idle_since = self.cpus[cpu].since;
        self.cpus[cpu].current = to;
        // a handler does not switch; its end was lost
        self.cpus[cpu].handlers.clear();
    }

    /// How long a process that a CPU switches to refills its translations.
    pub(super) fn switch_to(&mut self, cpu: usize, process: u32, tlb_refill_ns: u64) -> u64 {
        self.cpus[cpu].asids.switch_mm(process, tlb_refill_ns)
    }

    pub(super) fn siblings(&self, cpu: usize) -> Vec<usize> {
        self.cpus[cpu].siblings.clone()
    }

    pub(super) fn enter(&mut self, cpu: usize, handler: Handler) {
        let handlers = &mut self.cpus[cpu].handlers;
        if handlers.len() < MAX_NESTED {
            handlers.push(handler);
        }
    }

    pub(super) fn leave(&mut self, cpu: usize) {
        self.cpus[cpu].handlers.pop();
    }

    /// The innermost handler that a CPU is in.
    pub(super) fn handler(&self, cpu: usize) -> Option<Handler> {
        self.cpus[cpu].handlers.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(cpus: &mut Cpus, cpu: usize, now: u64) -> Option<(u64, u64)> {
        cpus.account(cpu, now).map(|done| (done.time, done.work))
    }

    #[test]
    fn time_becomes_work_by_capacity_and_share() {
        let mut machine = Machine::load("1c2t").unwrap();
        machine.costs.smt_pct = 150;
        machine.cpus.iter_mut().for_each(|cpu| cpu.capacity = 512);
        let mut cpus = Cpus::new(Some(&machine));
        cpus.begin(1000);
        cpus.switch(0, Current::Task(7));
        assert_eq!(work(&mut cpus, 0, 2000), Some((1000, 500)), "half the capacity");
        cpus.switch(1, Current::Task(8));
        assert_eq!(work(&mut cpus, 0, 3000), Some((1000, 375)), "and 75 % of the core");
        cpus.switch(1, Current::Idle);
        assert_eq!(work(&mut cpus, 0, 4000), Some((1000, 500)));
        assert_eq!(work(&mut cpus, 1, 4000), None);
    }

    #[test]
    fn interrupts_are_not_a_tasks_work() {
        let mut cpus = Cpus::new(None);
        cpus.begin(0);
        cpus.grow(0);
        cpus.switch(0, Current::Task(7));
        assert_eq!(work(&mut cpus, 0, 100), Some((100, 100)));
        cpus.enter(0, Handler::Other);
        cpus.enter(0, Handler::Network);
        assert_eq!((work(&mut cpus, 0, 150), cpus.handler(0)), (None, Some(Handler::Network)));
        cpus.leave(0);
        cpus.leave(0);
        assert_eq!((work(&mut cpus, 0, 170), cpus.handler(0)), (Some((20, 20)), None));
    }
}
