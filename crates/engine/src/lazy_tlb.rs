//! Lazy TLB: an idle CPU keeps the address space of the task that ran last, and a reference to it.
//!
//! The idle task has no address space of its own. A switch to it takes a reference to the previous task's, and the
//! switch to the next task gives that back. The count of references, `mm_count`, is one word for all threads of a
//! process, so CPUs that go idle and wake up often pull its line from each other (mmgrab_lazy_tlb() and
//! mmdrop_lazy_tlb() of context_switch(), kernel/sched/core.c). Such updates were seen on two Sapphire Rapids that ran
//! hackbench ("mm: move mm_count into its own cache line", c1753fd02a00, Linux 6.5). Avoiding them speeds
//! will-it-scale's context_switch1_threads up by 12 % with 48 threads and 28 % with 192 (lkml 20241008135034.1982519-1,
//! "Track lazy active mm existence with hazard pointers").

use crate::contention::Line;
use crate::sim::Simulation;
use coreward_metrics::Part;

/// The count of references to the address space of each process, by the number of its first thread.
#[derive(Default)]
pub(crate) struct MmCounts(Vec<Line>);

impl MmCounts {
    /// A process begins with this thread.
    pub(crate) fn add(&mut self, process: u32) {
        self.0.resize(process as usize + 1, Line::default());
    }
}

impl Simulation<'_> {
    /// `cpu` switches from `prev` to the idle task, which takes a reference to the address space.
    pub(crate) fn mmgrab_lazy_tlb(&mut self, cpu: usize, prev: u32) {
        let process = self.tasks[prev as usize].process;
        self.cpus[cpu].lazy_mm = Some(process);
        self.modify_mm_count(cpu, process);
    }

    /// `cpu` has switched from the idle task to another, and gives the reference back.
    pub(crate) fn mmdrop_lazy_tlb(&mut self, cpu: usize) {
        if let Some(process) = self.cpus[cpu].lazy_mm.take() {
            self.modify_mm_count(cpu, process);
        }
    }

    /// What counting takes without company is part of `context_switch_ns`.
    fn modify_mm_count(&mut self, cpu: usize, process: u32) {
        let m = self.moment(cpu);
        let got = self.mm_counts.0[process as usize].modify(&self.distances, cpu, m, 0);
        self.charge_stall(cpu, Part::MmCount, got.waited + got.transfer);
    }
}
