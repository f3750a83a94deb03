//! What a CPU is busy with, and how long it takes.

/// Something a CPU has to do: `work` ns at capacity 1024 on an idle core, and
/// `stall` ns of waiting (for a line, a lock, an idle exit) that no faster core shortens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) work: u64,
    pub(crate) stall: u64,
}

impl Work {
    pub(crate) fn is_zero(self) -> bool {
        self == Work::default()
    }

    /// Time that it takes at `rate` (1024 is full speed).
    #[inline]
    pub(crate) fn duration(self, rate: u64) -> u64 {
        // most cores run at full speed, and a division is the slowest thing that an event does
        let work = if rate == 1024 { self.work } else { (self.work * 1024).div_ceil(rate) };
        self.stall + work
    }
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        self.work += other.work;
        self.stall += other.stall;
    }
}

/// A stretch of a CPU's time: what is left to do since `start`, stalls first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    start: u64,
    left: Work,
    rate: u64,
    end: u64,
    /// When it began, and with how much work.
    begun: u64,
    work: u64,
}

impl Segment {
    #[inline]
    pub(crate) fn new(start: u64, left: Work, rate: u64) -> Self {
        let end = start + left.duration(rate);
        Segment { start, left, rate, end, begun: start, work: left.work }
    }

    /// When it ends, at the present rate.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Accounts what is done by `now`, and continues at `rate`.
    pub(crate) fn retime(&mut self, now: u64, rate: u64) {
        let elapsed = now - self.start;
        let stalled = elapsed.min(self.left.stall);
        self.left.stall -= stalled;
        let done = (elapsed - stalled) * self.rate / 1024;
        self.left.work -= done.min(self.left.work);
        self.start = now;
        self.rate = rate;
        self.end = now + self.left.duration(rate);
    }

    /// Puts `more` in front of what is left at `now`.
    pub(crate) fn interrupt(&mut self, now: u64, more: Work) {
        self.retime(now, self.rate);
        self.left += more;
        self.end = now + self.left.duration(self.rate);
    }

    /// The work that is left if the segment is abandoned at `now`. In reality, stalls do not come
    /// first but are spread over the segment, so the work done is the share of the time that has
    /// passed. Lines that were waited for are fetched again if they are gone by the next time.
    pub(crate) fn work_left(mut self, now: u64) -> u64 {
        self.retime(now, self.rate);
        let rest = u128::from(self.end - now);
        let total = rest + u128::from(now - self.begun);
        (u128::from(self.work) * rest).checked_div(total).unwrap_or(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_stretches_with_the_rate_and_stalls_do_not() {
        let w = Work { work: 1000, stall: 300 };
        assert_eq!(w.duration(1024), 1300);
        assert_eq!(w.duration(512), 2300);
        assert_eq!(w.duration(446), 300 + 2296, "1000 * 1024 / 446 rounded up");
    }

    #[test]
    fn a_slower_second_half_takes_longer() {
        let mut s = Segment::new(0, Work { work: 1000, stall: 0 }, 1024);
        s.retime(500, 512);
        assert_eq!(s.end(), 500 + 1000);
        s.retime(1000, 1024);
        assert_eq!(s.end(), 1000 + 250);
    }

    #[test]
    fn work_given_up_in_the_middle_of_a_stall_is_done_in_part() {
        let s = Segment::new(100, Work { work: 500, stall: 1500 }, 1024);
        assert_eq!(s.work_left(100), 500);
        assert_eq!(s.work_left(600), 375, "a quarter of 2000 ns has passed");
        assert_eq!(s.work_left(2100), 0);
    }

    #[test]
    fn an_interrupt_delays_the_rest() {
        let mut s = Segment::new(100, Work { work: 50, stall: 20 }, 1024);
        s.interrupt(110, Work { work: 5, stall: 7 });
        assert_eq!(s.end(), 170 + 12);
        assert_eq!(s.work_left(s.end()), 0);
    }
}
