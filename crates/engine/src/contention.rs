//! Resources that one CPU at a time can hold: contended cache lines and locks.
//!
//! A line that one CPU has modified has to travel before another CPU can use it. It
//! travels to one CPU at a time, and under contention the others queue. The travel
//! time depends on the distance, see `docs/model.md`.

use coreward_machine::Machine;
use coreward_policy::Distance;

/// Time for a modified cache line to get from one CPU to another.
pub(crate) struct Distances {
    /// For each CPU: what it is in, from the outside in, and then itself, in 16 bits each: node and package, LLC, core.
    place: Vec<u64>,
    nodes: Vec<u16>,
    /// By distance: same CPU, same core, same LLC, same package and node, further.
    transfer_ns: [u64; 5],
    /// The same for one of several lines that are fetched together, in 1/1024 ns.
    overlapped: [u64; 5],
    /// The same for one more line of a sequential copy, in 1/1024 ns.
    streamed: [u64; 5],
    /// How long before it needs lines a core asks for them, in ns.
    lookahead_ns: u64,
}

impl Distances {
    pub(crate) fn new(machine: &Machine) -> Self {
        let c = &machine.costs;
        let transfer_ns =
            [0, c.transfer_smt_ns, c.transfer_llc_ns, c.transfer_package_ns, c.transfer_remote_ns];
        // an LLC is as near to another one as their first CPUs are
        let first_of =
            |llc| machine.cpus.iter().find(|cpu| cpu.llc == llc).map(|cpu| (cpu.package, cpu.node));
        let outermost: Vec<_> = machine.cpus.iter().map(|cpu| first_of(cpu.llc)).collect();
        let number = |of| outermost.iter().position(|other| other == of).unwrap_or(0);
        let place = machine.cpus.iter().zip(&outermost).enumerate().map(|(id, (cpu, outermost))| {
            let ids = [number(outermost), cpu.llc, cpu.core, id];
            ids.iter().fold(0, |place, id| place << 16 | u64::from(*id as u16))
        });
        Distances {
            place: place.collect(),
            nodes: machine.cpus.iter().map(|cpu| cpu.node as u16).collect(),
            transfer_ns,
            overlapped: transfer_ns.map(|ns| ns * 1024 * 100 / c.mlp_pct.max(1)),
            streamed: transfer_ns.map(|ns| ns * 1024 * 100 / c.stream_pct.max(1)),
            lookahead_ns: c.lookahead_ns,
        }
    }

    /// The distance between two CPUs, as an index: the outermost thing in which they differ. Without branches, because where
    /// the last user of a line ran cannot be predicted.
    #[inline]
    fn index(&self, a: usize, b: usize) -> usize {
        let differing = self.place[a] ^ self.place[b];
        4 - (differing.leading_zeros() / 16) as usize
    }

    /// The distance between two CPUs.
    #[inline]
    pub(crate) fn between(&self, a: usize, b: usize) -> Distance {
        Distance::ALL[self.index(a, b)]
    }

    /// One-way transfer time of a modified line, in ns.
    #[inline]
    pub(crate) fn transfer(&self, from: usize, to: usize) -> u64 {
        self.transfer_ns[self.index(from, to)]
    }

    /// Time to fetch `lines` modified lines, as many at a time as the core can have in flight.
    #[inline]
    pub(crate) fn fetch(&self, from: usize, to: usize, lines: u64) -> u64 {
        lines * self.overlapped[self.index(from, to)] / 1024
    }

    /// Time to copy `lines` modified lines in a row. From the second one on, the hardware fetches them ahead.
    #[inline]
    pub(crate) fn stream(&self, from: usize, to: usize, lines: u64) -> u64 {
        let distance = self.index(from, to);
        let first = if lines == 0 { 0 } else { self.transfer_ns[distance] };
        first + lines.saturating_sub(1) * self.streamed[distance] / 1024
    }

    /// What is left to wait for of the `ns` that lines take which the core has asked for ahead.
    #[inline]
    pub(crate) fn ahead(&self, ns: u64) -> u64 {
        ns.saturating_sub(self.lookahead_ns)
    }

    #[inline]
    pub(crate) fn node(&self, cpu: usize) -> u16 {
        self.nodes[cpu]
    }

    #[inline]
    pub(crate) fn llc(&self, cpu: usize) -> usize {
        (self.place[cpu] >> 32) as usize & 0xffff
    }
}

/// When an access is made: an event is handled at `now`, but the CPU that handles
/// it may have done other things first and get to the access `at` a later time.
/// Turns are granted in the order of events, so that what one CPU will do later
/// does not delay what another does now.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Time of the event, in ns.
    pub now: u64,
    /// Time of the access, in ns, not before that of the event.
    pub at: u64,
}

/// A lock and the line that it lives on. Holders are told apart by CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lock {
    free_at: u64,
    held_at: u64,
    owner: usize,
}

/// The time that it took to get a lock, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acquired {
    /// Waiting for earlier holders.
    pub(crate) waited: u64,
    /// Moving the lock's lines from the last holder.
    pub(crate) transfer: u64,
}

impl Acquired {
    /// How long the lock's line and others that take `others` ns are waited for. Who waits for the lock sees its line come
    /// and asks for the others then; who finds it free has asked for all of them ahead.
    #[inline]
    pub(crate) fn lines_with(self, others: u64, d: &Distances) -> u64 {
        match self.waited {
            0 => d.ahead(self.transfer + others),
            _ => self.transfer + d.ahead(others),
        }
    }
}

impl Lock {
    /// Takes the lock on `cpu`: after the holders before it and the transfer of
    /// `lines` lines from the last one.
    #[inline]
    pub(crate) fn acquire(&mut self, d: &Distances, cpu: usize, m: Moment, lines: u64) -> Acquired {
        let waited = self.free_at.saturating_sub(m.at);
        let transfer = lines * d.transfer(self.owner, cpu);
        self.owner = cpu;
        self.held_at = m.at + waited + transfer;
        self.free_at = self.free_at.max(m.now) + transfer;
        Acquired { waited, transfer }
    }

    /// Gives the lock back at `at`. That is before it was taken, by a CPU whose sibling has gone idle meanwhile: it has
    /// become faster, and with it all that it has to do in this event.
    #[inline]
    pub(crate) fn release(&mut self, at: u64) {
        self.free_at += at.saturating_sub(self.held_at);
    }

    /// Is it free, and was before this event?
    #[inline]
    fn is_free(&self, m: Moment) -> bool {
        self.free_at <= m.now
    }

    /// The CPU that took it last.
    #[inline]
    pub(crate) fn owner(&self) -> usize {
        self.owner
    }
}

/// A cache line that locked instructions modify.
///
/// A CPU that wants the line asks the one that has it, which goes on using it until the request has arrived. That takes
/// half of the transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    turns: Lock,
    /// The CPU that had it before the owner, and until when.
    previous: usize,
    leaves_at: u64,
}

impl Line {
    /// A locked instruction on `cpu`, which takes `ns`.
    #[inline]
    pub(crate) fn modify(&mut self, d: &Distances, cpu: usize, m: Moment, ns: u64) -> Acquired {
        if self.is_at(cpu, m, ns) { Acquired::default() } else { self.fetch(d, cpu, m, ns) }
    }

    /// Does `cpu` have the line, and need no turn for an instruction that takes `ns`?
    #[inline]
    fn is_at(&self, cpu: usize, m: Moment, ns: u64) -> bool {
        if cpu == self.turns.owner() {
            ns == 0 && self.turns.is_free(m)
        } else {
            cpu == self.previous && m.at < self.leaves_at
        }
    }

    fn fetch(&mut self, d: &Distances, cpu: usize, m: Moment, ns: u64) -> Acquired {
        let owner = self.turns.owner();
        let got = self.turns.acquire(d, cpu, m, 1);
        self.turns.release(m.at + got.waited + got.transfer + ns);
        if cpu != owner {
            self.previous = owner;
            self.leaves_at = m.at + got.waited + got.transfer / 2;
        }
        got
    }

    /// A load, and then a locked instruction: the load brings a copy of the line, and the instruction makes it the only one,
    /// which takes as long again.
    pub(crate) fn load_and_modify(&mut self, d: &Distances, cpu: usize, m: Moment, ns: u64) -> Acquired {
        let got = self.modify(d, cpu, m, ns);
        self.turns.free_at += got.transfer;
        Acquired { transfer: 2 * got.transfer, ..got }
    }
}

/// A cache line that many CPUs read and some write: the load average of a task group.
///
/// A write takes the line from its owner and invalidates all copies. The first
/// read after a write fetches it from the writer; both hold the line for the
/// whole transfer. From then on it is shared: reads find it in their LLC, as soon as
/// it has arrived there, or fetch a copy, which occupies its home for the time of a
/// cache lookup.
pub(crate) struct SharedLine {
    free_at: u64,
    owner: usize,
    version: u32,
    shared: bool,
    /// Time that the line's home is busy with a read of a shared line.
    lookup_ns: u64,
    /// Longest transfer to a reader since the last write, which an invalidation has to reach.
    reach_ns: u64,
    cpu_version: Vec<u32>,
    llc_version: Vec<u32>,
    /// When that version comes to the LLC.
    llc_ready_at: Vec<u64>,
}

impl SharedLine {
    pub(crate) fn new(cpus: usize, llcs: usize, lookup_ns: u64) -> Self {
        SharedLine {
            lookup_ns,
            free_at: 0,
            owner: 0,
            version: 1,
            shared: false,
            reach_ns: 0,
            cpu_version: vec![0; cpus],
            llc_version: vec![0; llcs],
            llc_ready_at: vec![0; llcs],
        }
    }

    /// Reads; returns the ns that the CPU waits.
    #[inline]
    pub(crate) fn read(&mut self, d: &Distances, cpu: usize, m: Moment) -> u64 {
        if self.cpu_version[cpu] == self.version {
            return 0;
        }
        let llc = d.llc(cpu);
        let in_llc = self.llc_version[llc] == self.version;
        self.cpu_version[cpu] = self.version;
        self.llc_version[llc] = self.version;
        let transfer = d.transfer(self.owner, cpu);
        self.reach_ns = self.reach_ns.max(transfer);
        if in_llc && self.shared {
            return self.llc_ready_at[llc].saturating_sub(m.at) + d.transfer_ns[Distance::Llc as usize];
        }
        let service = if self.shared { self.lookup_ns } else { transfer };
        self.shared = true;
        let wait = self.take_turn(m, service) - service + transfer;
        self.llc_ready_at[llc] = self.free_at - service + transfer;
        wait
    }

    /// Modifies; returns the ns that the CPU waits.
    #[inline]
    pub(crate) fn write(&mut self, d: &Distances, cpu: usize, m: Moment) -> u64 {
        let cost = d.transfer(self.owner, cpu).max(self.reach_ns);
        self.owner = cpu;
        self.version = self.version.wrapping_add(1);
        self.shared = false;
        self.reach_ns = 0;
        self.cpu_version[cpu] = self.version;
        let llc = d.llc(cpu);
        self.llc_version[llc] = self.version;
        let wait = self.take_turn(m, cost);
        self.llc_ready_at[llc] = self.free_at;
        wait
    }

    fn take_turn(&mut self, m: Moment, service: u64) -> u64 {
        self.free_at = self.free_at.max(m.now) + service;
        self.free_at.saturating_sub(m.at).max(service)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 nodes, 2 LLCs each, 2 cores, 2 threads, with transfers of 1, 10, 100 and 1000 ns.
    fn distances() -> Distances {
        let mut m = Machine::load("2n2l2c2t").unwrap();
        m.costs.transfer_smt_ns = 1;
        m.costs.transfer_llc_ns = 10;
        m.costs.transfer_package_ns = 100;
        m.costs.transfer_remote_ns = 1000;
        Distances::new(&m)
    }

    /// (self, sibling, other core, other LLC, other node) of CPU 0.
    fn neighbours(d: &Distances) -> [usize; 5] {
        [Distance::Same, Distance::Core, Distance::Llc, Distance::Node, Distance::Across]
            .map(|want| (0..16).find(|c| d.between(0, *c) == want).unwrap())
    }

    #[test]
    fn a_copy_that_becomes_the_only_one_takes_two_ways() {
        let d = distances();
        let core = neighbours(&d)[2];
        let mut line = Line::default();
        let at = |at| Moment { now: at, at };
        assert_eq!(line.load_and_modify(&d, core, at(0), 7).transfer, 20);
        assert_eq!(line.load_and_modify(&d, core, at(100), 7), Acquired::default(), "it has the line");
        let other = line.load_and_modify(&d, 0, at(100), 7);
        assert_eq!((other.waited, other.transfer), (7, 20), "after its instruction");
        let third = line.load_and_modify(&d, neighbours(&d)[3], at(100), 7);
        assert_eq!(third.waited, 7 + 20 + 7, "both ways, and the next instruction");
    }

    #[test]
    fn a_line_stays_until_the_request_for_it_arrives() {
        let d = distances();
        let [own, _, _, _, remote] = neighbours(&d);
        let mut line = Line::default();
        let mut modify = |cpu, now| line.modify(&d, cpu, at(now), 7);
        assert_eq!(modify(own, 0), Acquired::default());
        assert_eq!(modify(remote, 100), Acquired { waited: 0, transfer: 1000 });
        assert_eq!(modify(own, 599), Acquired::default(), "the request is on its way");
        assert_eq!(modify(own, 600), Acquired { waited: 507, transfer: 1000 }, "the line is");
    }

    #[test]
    fn transfers_grow_with_distance() {
        let d = distances();
        assert_eq!(neighbours(&d).map(|c| d.transfer(0, c)), [0, 1, 10, 100, 1000]);
    }

    fn at(now: u64) -> Moment {
        Moment { now, at: now }
    }

    #[test]
    fn a_lock_makes_the_second_wait_and_pay_for_the_line() {
        let d = distances();
        let far = neighbours(&d)[4];
        let mut lock = Lock::default();
        assert_eq!(lock.acquire(&d, 0, at(50), 1), Acquired::default(), "free and at home");
        lock.release(80);
        assert_eq!(lock.acquire(&d, far, at(60), 1), Acquired { waited: 20, transfer: 1000 });
        lock.release(1100);
        assert_eq!(lock.acquire(&d, far, at(2000), 3), Acquired::default(), "its own by now");
    }

    #[test]
    fn what_a_cpu_does_later_does_not_hold_up_another_now() {
        let d = distances();
        let mut lock = Lock::default();
        lock.acquire(&d, 0, Moment { now: 0, at: 1000 }, 1);
        lock.release(1040);
        assert_eq!(lock.acquire(&d, 0, at(10), 1).waited, 30, "40 ns of holding, not 1040");
        let mut line = SharedLine::new(16, 4, 5);
        let far = neighbours(&d)[4];
        assert_eq!(line.write(&d, far, Moment { now: 0, at: 5000 }), 1000);
        assert_eq!(line.write(&d, far, at(400)), 600, "the rest of the other's turn");
    }

    #[test]
    fn a_written_line_is_fetched_once_and_then_shared() {
        let d = distances();
        let [me, sibling, core, other, far] = neighbours(&d);
        let mut line = SharedLine::new(16, 4, 5);
        assert_eq!(line.write(&d, me, at(0)), 0);
        assert_eq!(line.read(&d, me, at(1)), 0);
        assert_eq!(line.read(&d, far, at(10)), 1000, "the first reader fetches it");
        assert_eq!(line.read(&d, far, at(1010)), 0, "and has it");
        assert_eq!(line.read(&d, other, at(1010)), 100, "a copy");
        assert_eq!(line.free_at, 1015, "for which its home was busy");
        assert_eq!(line.read(&d, core, at(1010)), 10, "the writer's LLC has it");
        assert_eq!(line.read(&d, sibling, at(1010)), 10);
        assert_eq!(line.write(&d, me, at(5000)), 1000, "copies as far as the other node go");
    }

    #[test]
    fn a_read_waits_for_the_copy_that_is_on_its_way_to_its_llc() {
        let d = distances();
        let [me, sibling, core, _, far] = neighbours(&d);
        let mut line = SharedLine::new(16, 4, 5);
        assert_eq!(line.write(&d, far, at(0)), 1000);
        assert_eq!(line.read(&d, me, at(10)), 990 + 1000, "after the writer");
        assert_eq!(line.read(&d, core, at(1500)), 500 + 10, "it comes to the LLC at 2000");
        assert_eq!(line.read(&d, sibling, at(2100)), 10, "and is there");
    }

    #[test]
    fn writers_queue() {
        let d = distances();
        let [me, _, _, other, _] = neighbours(&d);
        let mut line = SharedLine::new(16, 4, 5);
        assert_eq!(line.write(&d, other, at(0)), 100);
        assert_eq!(line.write(&d, me, at(10)), 90 + 100, "the rest of the other's turn and its own");
    }
}
