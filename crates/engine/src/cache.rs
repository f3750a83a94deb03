//! Which footprints caches still hold, modelled by counting bytes.
//!
//! Each core's private cache and each LLC has an odometer of the bytes brought
//! into it. A footprint was last used when the odometer stood at m. Under
//! least-recently-used replacement, it is still there to the extent that the bytes
//! brought in since then leave room for it. A task remembers where it last ran. Its
//! footprint is modified data, so no second copy is left behind. Refilling costs
//! the missing lines times their latency, divided by the memory-level parallelism.

use crate::contention::Distances;
use coreward_machine::Machine;
use coreward_policy::Distance;

/// Where a footprint was last used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Residence {
    /// CPU + 1 where it was last used; 0: nowhere yet.
    cpu: u32,
    /// Node of its memory: where it was first used.
    home: u16,
    core_mark: u64,
    llc_mark: u64,
}

/// Odometers of all caches.
pub(crate) struct Caches {
    core_of: Vec<u32>,
    core_filled: Vec<u64>,
    llc_filled: Vec<u64>,
    l2_bytes: u64,
    llc_bytes: Vec<u64>,
    line_bytes: u64,
    mlp_pct: u64,
    llc_line_ns: u64,
    dram_line_ns: u64,
    dram_remote_line_ns: u64,
    /// Shared footprints: for each core, the processes that may have something left of theirs, in the order of last use, with the
    /// odometer readings at it.
    shared: Vec<Vec<(u32, u64)>>,
}

/// How much of `bytes` is still in a cache of `size` into which `since` bytes have come.
fn resident(bytes: u64, size: u64, since: u64) -> u64 {
    bytes.min(size.saturating_sub(since))
}

impl Caches {
    pub(crate) fn new(machine: &Machine) -> Self {
        let cores = machine.cpus.iter().map(|c| c.core + 1).max().unwrap_or(0);
        Caches {
            core_of: machine.cpus.iter().map(|c| c.core as u32).collect(),
            core_filled: vec![0; cores],
            llc_filled: vec![0; machine.llc_bytes.len()],
            l2_bytes: machine.caches.l2_bytes,
            llc_bytes: machine.llc_bytes.clone(),
            line_bytes: machine.caches.line_bytes.max(1),
            mlp_pct: machine.costs.mlp_pct.max(1),
            llc_line_ns: machine.costs.llc_line_ns,
            dram_line_ns: machine.costs.dram_line_ns,
            dram_remote_line_ns: machine.costs.dram_remote_line_ns,
            shared: vec![Vec::new(); cores],
        }
    }

    /// What one use of a queued message takes longer, in ns, where messages have used `queued` bytes since it was written:
    /// `ns`, and `lines` lines from the LLC, one after the other, if it has fallen out of the private caches. They are in those
    /// of the CPUs that write, which are taken to be half of all. Caches are hashed and hold other things, so some messages fall
    /// out from half of their size on, and not all with several times of it.
    ///
    /// Measured: one process that fills 3 to 40 sockets with 270 messages and empties them, on a Granite Rapids with 2 MiB of
    /// L2. With 0.4, 0.8, 1, 1.4, 2, 3 and 4 times as much queued, a read takes 10, 30, 65, 110, 155, 185 and 200 ns longer
    /// (docs/results/validation-granite-rapids.md).
    pub(crate) fn fallen_out(&self, lines: u64, ns: u64, queued: u64) -> u64 {
        let half = self.l2_bytes * (self.core_filled.len() as u64).div_ceil(2) / 2;
        let beyond = queued.saturating_sub(half);
        (lines * self.llc_line_ns + ns) * beyond / (queued + half).max(1)
    }

    fn lines_ns(&self, bytes: u64, line_ns: u64) -> u64 {
        bytes.div_ceil(self.line_bytes) * line_ns * 100 / self.mlp_pct
    }

    /// A task with a private footprint of `bytes` starts to run on `cpu`: returns
    /// the ns that it waits for the part that is no longer in the core's cache.
    pub(crate) fn refill(&mut self, d: &Distances, at: &mut Residence, cpu: usize, bytes: u64) -> u64 {
        let (core, llc) = (self.core_of[cpu] as usize, d.llc(cpu));
        let mut stall = 0;
        if at.cpu == 0 {
            at.home = d.node(cpu);
            stall += self.fill(core, llc, bytes, self.dram_line_ns, bytes);
        } else {
            let last = at.cpu as usize - 1;
            let last_core = self.core_of[last] as usize;
            let in_last_core = resident(bytes, self.l2_bytes, self.core_filled[last_core] - at.core_mark);
            if last_core == core {
                stall += self.fill_from_llc(d, at, cpu, bytes - in_last_core);
            } else {
                // the part that the other core still holds modified comes from there by line transfer
                let into_llc = if d.llc(last) == llc { 0 } else { in_last_core };
                stall += self.fill(core, llc, in_last_core, d.transfer(last, cpu), into_llc);
                stall += self.fill_from_llc(d, at, cpu, bytes - in_last_core);
            }
        }
        at.cpu = cpu as u32 + 1;
        at.core_mark = self.core_filled[core];
        at.llc_mark = self.llc_filled[llc];
        stall
    }

    /// Refills what the private cache lost: from the LLC of the last run if it is still there, otherwise from memory.
    fn fill_from_llc(&mut self, d: &Distances, at: &Residence, cpu: usize, bytes: u64) -> u64 {
        let (core, llc) = (self.core_of[cpu] as usize, d.llc(cpu));
        let last = at.cpu as usize - 1;
        let last_llc = d.llc(last);
        let in_llc = resident(bytes, self.llc_bytes[last_llc], self.llc_filled[last_llc] - at.llc_mark);
        let line =
            if d.between(last, cpu) <= Distance::Llc { self.llc_line_ns } else { d.transfer(last, cpu) };
        let memory = if d.node(cpu) == at.home { self.dram_line_ns } else { self.dram_remote_line_ns };
        let brought = if last_llc == llc { 0 } else { in_llc };
        self.fill(core, llc, in_llc, line, brought)
            + self.fill(core, llc, bytes - in_llc, memory, bytes - in_llc)
    }

    /// Moves the odometers for `bytes` into the core, `into_llc` of them new to the LLC too.
    fn fill(&mut self, core: usize, llc: usize, bytes: u64, line_ns: u64, into_llc: u64) -> u64 {
        self.core_filled[core] += bytes;
        self.llc_filled[llc] += into_llc;
        self.lines_ns(bytes, line_ns)
    }

    /// A thread of `process` runs on `cpu`: returns the ns that it waits for the part
    /// of the process's shared footprint that the core lacks. It is mostly read, so
    /// every core that uses it has a copy, and the LLC has one too.
    pub(crate) fn refill_shared(&mut self, cpu: usize, process: u32, bytes: u64) -> u64 {
        let core = self.core_of[cpu] as usize;
        let now = self.core_filled[core];
        let entries = &mut self.shared[core];
        let found = entries.iter().rposition(|(p, _)| *p == process).map(|i| entries.remove(i).1);
        let held = found.map_or(0, |used| resident(bytes, self.l2_bytes, now - used));
        let mark = now + (bytes - held);
        let gone = entries.iter().take_while(|(_, used)| mark - used >= self.l2_bytes).count();
        entries.drain(..gone);
        entries.push((process, mark));
        self.core_filled[core] = mark;
        self.lines_ns(bytes - held, self.llc_line_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of 64 bytes, no parallelism: LLC 20 ns, memory 100 (of the other node 150), sibling 1, LLC mate 10, package 50, remote 70.
    fn setup() -> (Caches, Distances) {
        let mut m = Machine::load("2n2l2c2t").unwrap();
        m.caches.l2_bytes = 4096;
        m.caches.line_bytes = 64;
        m.llc_bytes = vec![16384; 4];
        let c = &mut m.costs;
        (c.mlp_pct, c.llc_line_ns, c.dram_line_ns, c.dram_remote_line_ns) = (100, 20, 100, 150);
        (c.transfer_smt_ns, c.transfer_llc_ns, c.transfer_package_ns, c.transfer_remote_ns) = (1, 10, 50, 70);
        (Caches::new(&m), Distances::new(&m))
    }

    fn at(d: &Distances, want: Distance) -> usize {
        (0..16).find(|c| d.between(0, *c) == want).unwrap()
    }

    #[test]
    fn a_footprint_is_fetched_once_and_kept() {
        let (mut c, d) = setup();
        let mut t = Residence::default();
        assert_eq!(c.refill(&d, &mut t, 0, 640), 10 * 100, "first from memory");
        assert_eq!(c.refill(&d, &mut t, 0, 640), 0, "then it is there");
        assert_eq!(c.refill(&d, &mut t, at(&d, Distance::Core), 640), 0, "for the sibling too");
    }

    #[test]
    fn queued_messages_fall_out_as_the_caches_fill() {
        let (c, _) = setup();
        // 8 caches of 4 KiB, 20 ns a line
        assert_eq!(
            [0, 8192, 16384, 32768, 1 << 30].map(|queued| c.fallen_out(3, 20, queued)),
            [0, 0, 26, 48, 79]
        );
    }

    #[test]
    fn a_move_costs_what_it_makes_cold() {
        for (to, ns) in [(Distance::Llc, 10), (Distance::Node, 50), (Distance::Across, 70)] {
            let (mut c, d) = setup();
            let mut t = Residence::default();
            c.refill(&d, &mut t, 0, 640);
            assert_eq!(c.refill(&d, &mut t, at(&d, to), 640), 10 * ns, "{to:?}");
        }
    }

    #[test]
    fn others_evict_least_recently_used_first() {
        let (mut c, d) = setup();
        let mut t = Residence::default();
        c.refill(&d, &mut t, 0, 1024);
        let mut other = Residence::default();
        c.refill(&d, &mut other, 0, 3072);
        assert_eq!(c.refill(&d, &mut t, 0, 1024), 0, "4096 bytes hold both");
        let mut third = Residence::default();
        c.refill(&d, &mut third, 0, 3584);
        assert_eq!(
            c.refill(&d, &mut t, 0, 1024),
            8 * 20,
            "512 of 1024 bytes are left, the rest is in the LLC"
        );
    }

    #[test]
    fn an_evicted_footprint_costs_no_less_at_home_than_it_does_elsewhere() {
        let (mut c, d) = setup();
        let mut t = Residence::default();
        c.refill(&d, &mut t, 0, 640);
        let mut flood = Residence::default();
        c.refill(&d, &mut flood, 0, 1 << 20);
        assert_eq!(c.refill(&d, &mut t, 0, 640), 10 * 100, "gone from the LLC too: memory");
    }

    #[test]
    fn what_comes_from_the_cores_of_another_llc_evicts_like_all_else() {
        let (mut c, d) = setup();
        let there = at(&d, Distance::Node);
        let mut t = Residence::default();
        c.refill(&d, &mut t, there, 640);
        // five that have run on this side: 20 KiB for an LLC of 16
        for _ in 0..5 {
            let mut other = Residence::default();
            c.refill(&d, &mut other, 0, 4096);
            assert_eq!(c.refill(&d, &mut other, there, 4096), 64 * 50);
        }
        assert_eq!(c.refill(&d, &mut t, there, 640), 10 * 100);
    }

    #[test]
    fn memory_stays_on_the_node_of_its_first_use() {
        let (mut c, d) = setup();
        let mut t = Residence::default();
        c.refill(&d, &mut t, 0, 640);
        let mut flood = Residence::default();
        c.refill(&d, &mut flood, 0, 1 << 20);
        assert_eq!(c.refill(&d, &mut t, at(&d, Distance::Across), 640), 10 * 150);
    }

    #[test]
    fn threads_share_what_their_process_shares() {
        let (mut c, d) = setup();
        assert_eq!(c.refill_shared(0, 1, 640), 10 * 20);
        assert_eq!(c.refill_shared(at(&d, Distance::Core), 1, 640), 0);
        assert_eq!(c.refill_shared(0, 2, 640), 10 * 20, "another process has its own");
        assert_eq!(c.refill_shared(at(&d, Distance::Llc), 1, 640), 10 * 20);
    }

    #[test]
    fn a_core_keeps_as_many_processes_as_fit_its_cache() {
        let (mut c, _) = setup();
        let round = |c: &mut Caches| (0..64).map(|process| c.refill_shared(0, process, 64)).sum::<u64>();
        assert_eq!(round(&mut c), 64 * 20, "4096 bytes of footprints");
        assert_eq!(round(&mut c), 0, "all are there");
        assert_eq!(c.refill_shared(0, 64, 4096), 64 * 20);
        assert_eq!(c.refill_shared(0, 0, 64), 20, "gone");
    }
}
