//! Where each CPU's time goes: every ns of every CPU is in exactly one part.
//!
//! What a CPU is charged goes on its bill, under a part. It is due when the CPU begins to do it, and settled when that
//! is over: stalls took what was charged, and all work together took the rest of the time, longer if a sibling had a
//! share of the core.

use coreward_metrics::{CpuTime, PARTS, Part};

/// What a read or write may wait for. Most of what is settled is of these parts alone, which are then gone through without
/// looking at which of them there are: that differs from op to op, so the processor predicts it wrongly.
const EVERY_OP: [Part; 3] = [Part::ChannelLock, Part::ChannelLines, Part::FileLines];
const OF_EVERY_OP: u32 = 1 << EVERY_OP[0] as u32 | 1 << EVERY_OP[1] as u32 | 1 << EVERY_OP[2] as u32;

/// Charges by part, in ns.
#[derive(Clone, Debug, Default)]
#[repr(C)]
struct Charges {
    /// The parts whose stalls may not be 0, one bit each, and those whose work may not be.
    stalled: u32,
    worked: u32,
    parts: [Charge; PARTS],
}

/// The charges of a part. They are beside each other for the sake of cache lines.
#[derive(Clone, Copy, Debug, Default)]
struct Charge {
    stall: u64,
    work: u64,
}

const _: () = assert!(PARTS <= 32);

impl Charges {
    #[inline]
    fn is_empty(&self) -> bool {
        self.stalled | self.worked == 0
    }

    fn take(&mut self, from: &mut Charges) {
        Bits(from.stalled)
            .for_each(|part| self.parts[part].stall += std::mem::take(&mut from.parts[part].stall));
        Bits(from.worked)
            .for_each(|part| self.parts[part].work += std::mem::take(&mut from.parts[part].work));
        self.stalled |= std::mem::take(&mut from.stalled);
        self.worked |= std::mem::take(&mut from.worked);
    }

    #[inline]
    fn clear(&mut self) {
        Bits(self.stalled).for_each(|part| self.parts[part].stall = 0);
        Bits(self.worked).for_each(|part| self.parts[part].work = 0);
        (self.stalled, self.worked) = (0, 0);
    }
}

/// What a CPU was charged.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Bill {
    /// The time until which its time is in the ledger.
    since: u64,
    /// The second one is due, not the first one.
    second_is_due: bool,
    /// What is due, and what it has not begun to do.
    charges: [Charges; 2],
}

impl Bill {
    pub(crate) fn new(since: u64) -> Self {
        Bill { since, second_is_due: false, charges: Default::default() }
    }

    #[inline]
    fn due(&mut self) -> &mut Charges {
        &mut self.charges[usize::from(self.second_is_due)]
    }

    #[inline]
    fn pending(&mut self) -> &mut Charges {
        &mut self.charges[usize::from(!self.second_is_due)]
    }

    #[inline]
    pub(crate) fn stall(&mut self, part: Part, ns: u64) {
        self.stalls([(part, ns)]);
    }

    /// Several stalls at once.
    #[inline]
    pub(crate) fn stalls<const N: usize>(&mut self, stalls: [(Part, u64); N]) {
        let pending = self.pending();
        for (part, ns) in stalls {
            pending.parts[part as usize].stall += ns;
            pending.stalled |= u32::from(ns > 0) << part as u32;
        }
    }

    #[inline]
    pub(crate) fn work(&mut self, part: Part, ns: u64) {
        let pending = self.pending();
        pending.parts[part as usize].work += ns;
        pending.worked |= u32::from(ns > 0) << part as u32;
    }

    /// The CPU begins to do what it was charged.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if self.due().is_empty() {
            self.second_is_due = !self.second_is_due;
        } else {
            let [first, second] = &mut self.charges;
            if self.second_is_due { second.take(first) } else { first.take(second) }
        }
    }

    /// The time until `now` was spent on what was due; what was due beyond it is not done.
    #[inline]
    pub(crate) fn settle(&mut self, now: u64, spent: &mut [u64; PARTS]) {
        let mut left = now - self.since;
        let due = self.due();
        if due.stalled & !OF_EVERY_OP == 0 && due.worked == 1 << Part::Task as u32 {
            for part in EVERY_OP {
                let ns = std::mem::take(&mut due.parts[part as usize].stall).min(left);
                spent[part as usize] += ns;
                left -= ns;
            }
            spent[Part::Task as usize] += left;
            due.parts[Part::Task as usize].work = 0;
            (due.stalled, due.worked) = (0, 0);
            self.since = now;
            return;
        }
        self.spend(now, spent);
        self.due().clear();
    }

    /// The time until `now` was spent on what is due, and the CPU goes on.
    pub(crate) fn spend(&mut self, now: u64, spent: &mut [u64; PARTS]) {
        let mut left = now - self.since;
        self.since = now;
        let due = self.due();
        for part in Bits(due.stalled) {
            let ns = due.parts[part].stall.min(left);
            due.parts[part].stall -= ns;
            spent[part] += ns;
            left -= ns;
        }
        if due.worked.is_power_of_two() {
            spent[due.worked.trailing_zeros() as usize] += left;
        } else {
            let rest = due.share_out(left, spent);
            // the rest of the divisions, or a segment that was settled in its middle
            spent[Part::Task as usize] += rest;
        }
    }

    /// The CPU was idle until `now`.
    pub(crate) fn idle(&mut self, now: u64, spent: &mut [u64; PARTS]) {
        spent[Part::Idle as usize] += now - self.since;
        self.since = now;
    }
}

impl Charges {
    /// Divides `time` among the parts by their work; returns what is left of it.
    fn share_out(&self, time: u64, spent: &mut [u64; PARTS]) -> u64 {
        let work: u64 = Bits(self.worked).map(|part| self.parts[part].work).sum();
        let mut left = time;
        for part in Bits(self.worked) {
            let own = self.parts[part].work;
            let ns = if work == time { own } else { share(time, own, work.max(1)) };
            spent[part] += ns;
            left -= ns;
        }
        left
    }
}

/// `time * part / whole`, which is at most `time`. A division of 128 bits is slow, and seldom needed.
#[inline]
fn share(time: u64, part: u64, whole: u64) -> u64 {
    match time.checked_mul(part) {
        Some(product) => product / whole,
        None => (u128::from(time) * u128::from(part) / u128::from(whole)) as u64,
    }
}

/// The parts of a set, one bit each.
struct Bits(u32);

impl Iterator for Bits {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let part = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(part)
    }
}

/// The parts of a run of `total_ns`, over all CPUs, of which `waiting_ns` of the idle time were idle while tasks waited.
/// Extrapolated numbers are rounded, for which the tasks' own part makes up.
pub(crate) fn cpu_time(spent: &[u64; PARTS], waiting_ns: u64, total_ns: u64) -> CpuTime {
    let mut ns = *spent;
    let idle = ns[Part::Idle as usize];
    ns[Part::IdleWaiting as usize] = waiting_ns.min(idle);
    ns[Part::Idle as usize] = idle - ns[Part::IdleWaiting as usize];
    let sum: u64 = ns.iter().sum();
    let task = &mut ns[Part::Task as usize];
    *task = (*task + total_ns).saturating_sub(sum);
    CpuTime::new(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(bill: &mut Bill, now: u64) -> [u64; PARTS] {
        let mut spent = [0; PARTS];
        bill.begin();
        bill.settle(now, &mut spent);
        spent
    }

    #[test]
    fn stalls_take_what_was_charged_and_work_is_stretched() {
        let mut bill = Bill::new(100);
        bill.stall(Part::Refill, 30);
        bill.work(Part::Task, 20);
        bill.work(Part::Switch, 10);
        // 30 ns of work took 60 ns beside a busy sibling
        let spent = settled(&mut bill, 190);
        assert_eq!([Part::Refill, Part::Task, Part::Switch].map(|p| spent[p as usize]), [30, 40, 20]);
        assert_eq!(settled(&mut bill, 190), [0; PARTS], "it was settled");
    }

    #[test]
    fn what_was_not_done_is_not_counted() {
        let mut bill = Bill::new(0);
        bill.stall(Part::Spin, 1_000_000_000);
        let spent = settled(&mut bill, 70);
        assert_eq!(spent[Part::Spin as usize], 70);
        assert_eq!(spent.iter().sum::<u64>(), 70);
    }

    #[test]
    fn an_ops_bill_is_settled_as_it_is_spent() {
        // too little time, some of the work, all of it, and more
        for now in [25, 95, 160, 500] {
            let mut bill = Bill::new(0);
            bill.stall(Part::ChannelLock, 30);
            bill.stall(Part::FileLines, 20);
            bill.work(Part::Task, 110);
            let mut other = bill.clone();
            let mut spent = [0; PARTS];
            other.begin();
            other.spend(now, &mut spent);
            assert_eq!(settled(&mut bill, now), spent, "until {now}");
            assert_eq!(settled(&mut bill, now), [0; PARTS], "it was settled");
        }
    }

    #[test]
    fn what_has_not_begun_is_not_due() {
        let mut bill = Bill::new(0);
        bill.work(Part::Interrupt, 10);
        bill.begin();
        bill.work(Part::Switch, 10);
        let mut spent = [0; PARTS];
        bill.settle(10, &mut spent);
        assert_eq!([spent[Part::Interrupt as usize], spent[Part::Switch as usize]], [10, 0]);
        assert_eq!(settled(&mut bill, 20)[Part::Switch as usize], 10);
    }

    #[test]
    fn a_bill_can_be_paid_in_two_parts() {
        let mut bill = Bill::new(0);
        bill.stall(Part::Refill, 30);
        bill.work(Part::Queue, 20);
        let mut spent = [0; PARTS];
        bill.begin();
        bill.spend(10, &mut spent);
        assert_eq!(spent[Part::Refill as usize], 10);
        bill.settle(50, &mut spent);
        assert_eq!([spent[Part::Refill as usize], spent[Part::Queue as usize]], [30, 20]);
    }

    #[test]
    fn the_tasks_own_part_makes_up_for_rounding() {
        let mut spent = [0; PARTS];
        spent[Part::Task as usize] = 101;
        spent[Part::Idle as usize] = 50;
        let time = cpu_time(&spent, 20, 150);
        assert_eq!([Part::Task, Part::IdleWaiting, Part::Idle].map(|p| time.ns(p)), [100, 20, 30]);
        assert_eq!(time.total_ns(), 150);
    }
}
