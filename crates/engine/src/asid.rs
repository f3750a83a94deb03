//! Address space identifiers: which processes a CPU still holds translations of.
//!
//! On x86, a CPU tells the translations of a few address spaces apart. A switch to another one takes the identifier
//! from the next process in turn, whose translations are dropped (choose_new_asid(), arch/x86/mm/tlb.c). Kernel threads
//! and the idle task use what is loaded. A machine with identifiers for all processes, like arm64, has a
//! `tlb_refill_ns` of 0.

use crate::sim::Simulation;
use coreward_metrics::Part;

/// Address spaces that a CPU tells apart (TLB_NR_DYN_ASIDS, arch/x86/include/asm/tlbflush.h).
const TLB_NR_DYN_ASIDS: usize = 6;

/// The identifiers of a CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asids {
    /// The process that has each, by the number of its first thread.
    process: [Option<u32>; TLB_NR_DYN_ASIDS],
    /// The identifier to be taken away next.
    next: usize,
}

impl Asids {
    /// Loads the address space of `process`: returns whether its translations are still there.
    fn load(&mut self, process: u32) -> bool {
        let held = self.process.contains(&Some(process));
        if !held {
            self.process[self.next] = Some(process);
            self.next = (self.next + 1) % TLB_NR_DYN_ASIDS;
        }
        held
    }
}

impl Simulation<'_> {
    /// `cpu` switches to the address space of `next` (switch_mm_irqs_off()).
    pub(crate) fn switch_mm(&mut self, cpu: usize, next: u32) {
        let process = self.tasks[next as usize].process;
        if !self.cpus[cpu].asids.load(process) {
            self.charge_stall(cpu, Part::Switch, self.costs.tlb_refill_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seventh_process_takes_the_identifier_of_the_first() {
        let mut asids = Asids::default();
        assert!((0..6).all(|process| !asids.load(process)));
        assert!((0..6).all(|process| asids.load(process)));
        assert!(!asids.load(6));
        assert!((1..7).all(|process| asids.load(process)));
        assert!(!asids.load(0) && !asids.load(1), "in turn, whoever used theirs last");
    }
}
