//! Address space identifiers: which processes a CPU still holds translations of.
//!
//! On x86, a CPU tells the translations of a few address spaces apart. A switch to another one takes the identifier
//! from the next process in turn, whose translations are dropped (choose_new_asid(), arch/x86/mm/tlb.c). Kernel threads
//! and the idle task use what is loaded. A machine with identifiers for all processes, like arm64, has a
//! `tlb_refill_ns` of 0.
//!
//! A process whose identifier is still there has lost translations to the others that ran since: a sixth for each, so
//! that the way to the seventh, which drops all, has no step. Measured: of what a hop of a message among 16 processes
//! takes longer than among 16 threads, it is 28 % among 2, 37 % among 4, 95 % among 8 (`docs/results/pinned.md`).

use crate::sim::Simulation;
use coreward_metrics::Part;

/// Address spaces that a CPU tells apart (TLB_NR_DYN_ASIDS, arch/x86/include/asm/tlbflush.h).
const TLB_NR_DYN_ASIDS: usize = 6;

/// The identifiers of a CPU.
#[derive(Clone, Debug, Default)]
pub struct Asids {
    /// The process that has each, by the number of its first thread.
    process: [Option<u32>; TLB_NR_DYN_ASIDS],
    /// The identifier to be taken away next.
    next: usize,
    /// Those that have a process, that of the loaded address space last.
    recent: Vec<usize>,
}

impl Asids {
    /// Loads the address space of a process. Returns how long it refills its translations, where all of them take
    /// `tlb_refill_ns`.
    pub fn switch_mm(&mut self, process: u32, tlb_refill_ns: u64) -> u64 {
        tlb_refill_ns * self.load(process) as u64 / TLB_NR_DYN_ASIDS as u64
    }

    /// Returns how many others were loaded since the process was the last time, or [`TLB_NR_DYN_ASIDS`] if its
    /// translations have been dropped.
    fn load(&mut self, process: u32) -> usize {
        let held = self.recent.iter().position(|asid| self.process[*asid] == Some(process));
        let asid = held.map_or(self.next, |at| self.recent[at]);
        let others = held.map_or(TLB_NR_DYN_ASIDS, |at| self.recent.len() - 1 - at);
        if held.is_none() {
            self.process[asid] = Some(process);
            self.next = (asid + 1) % TLB_NR_DYN_ASIDS;
        }
        if others > 0 {
            self.recent.retain(|other| *other != asid);
            self.recent.push(asid);
        }
        others
    }
}

impl Simulation<'_> {
    /// `cpu` switches to the address space of `next` (switch_mm_irqs_off()).
    pub(crate) fn switch_mm(&mut self, cpu: usize, next: u32) {
        let process = self.tasks[next as usize].process;
        let ns = self.cpus[cpu].asids.switch_mm(process, self.costs.tlb_refill_ns);
        self.charge_stall(cpu, Part::Switch, ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of the processes loses, which are loaded one after the other.
    fn loads(asids: &mut Asids, processes: impl IntoIterator<Item = u32>) -> Vec<usize> {
        processes.into_iter().map(|process| asids.load(process)).collect()
    }

    #[test]
    fn the_seventh_process_takes_the_identifier_of_the_first() {
        let mut asids = Asids::default();
        assert_eq!(loads(&mut asids, 0..6), [6; 6]);
        assert_eq!(loads(&mut asids, 0..6), [5; 6]);
        assert_eq!(asids.load(6), 6);
        assert_eq!(loads(&mut asids, 1..7), [5; 6]);
        assert_eq!(loads(&mut asids, 0..2), [6; 2], "in turn, whoever used theirs last");
    }

    #[test]
    fn a_process_loses_translations_to_those_that_were_loaded_since() {
        let mut asids = Asids::default();
        assert_eq!(loads(&mut asids, 0..4), [6; 4]);
        assert_eq!(loads(&mut asids, [3, 2, 3, 3, 2, 0, 1]), [0, 1, 1, 0, 1, 3, 3]);
    }
}
