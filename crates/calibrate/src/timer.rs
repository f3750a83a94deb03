//! Timers: arming one, and its interrupt.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::sample::Sample;

/// Timers that are armed.
const TIMERS: usize = 100;
/// So soon that no other timer of the CPU expires before, as a rule.
const SOON: Duration = Duration::from_micros(50);
/// How long after that the interrupt is looked for.
const LOOK: Duration = Duration::from_micros(60);

/// What a timer takes.
pub(crate) struct Timer {
    /// The call that arms it.
    pub(crate) arm: Sample,
    /// The interruption of the task that runs when it expires.
    pub(crate) interrupt: Sample,
}

/// Measures timers on the CPU of the caller.
pub(crate) fn timer() -> io::Result<Timer> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let mut failed = Ok(());
    let [arm, interrupt] = Sample::repeat_all(TIMERS, || {
        let start = Instant::now();
        if let Err(error) = set(&timer) {
            failed = Err(error);
        }
        let armed = Instant::now();
        [armed - start, longest_gap(armed, start + SOON + LOOK)].map(|time| time.as_nanos() as f64)
    });
    failed?;
    Ok(Timer { arm, interrupt })
}

fn set(timer: &OwnedFd) -> io::Result<()> {
    let never = Timespec { tv_sec: 0, tv_nsec: 0 };
    let soon = Timespec { tv_sec: 0, tv_nsec: SOON.as_nanos() as _ };
    let once = Itimerspec { it_interval: never, it_value: soon };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &once)?;
    Ok(())
}

/// The longest time until `end` during which the caller did not run.
fn longest_gap(start: Instant, end: Instant) -> Duration {
    let (mut longest, mut last) = (Duration::ZERO, start);
    while last < end {
        let now = Instant::now();
        longest = longest.max(now - last);
        last = now;
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_takes_time_to_arm_and_when_it_expires() {
        let timer = timer().unwrap();
        assert!(timer.arm.ns > 50.0 && timer.interrupt.ns > 50.0, "{:?} {:?}", timer.arm, timer.interrupt);
    }
}
