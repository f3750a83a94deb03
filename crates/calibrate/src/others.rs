//! What other programs, and other guests of the same host, had of the CPUs meanwhile.

use std::fs;
use std::time::Instant;

use rustix::param::clock_ticks_per_second;

/// A point in time from which it is counted.
pub(crate) struct Others {
    start: Instant,
    busy_s: f64,
    own_s: f64,
}

impl Others {
    pub(crate) fn since_now() -> Others {
        Others { start: Instant::now(), busy_s: busy_s(), own_s: own_s() }
    }

    /// Their share of the time of so many CPUs since then, 0 to 1.
    pub(crate) fn share(&self, nr_cpus: usize) -> f64 {
        let (busy_s, own_s) = (busy_s() - self.busy_s, own_s() - self.own_s);
        share(busy_s, own_s, self.start.elapsed().as_secs_f64() * nr_cpus as f64)
    }
}

/// The share of `all_s` of the CPUs' time that they were busy and not for this process.
fn share(busy_s: f64, own_s: f64, all_s: f64) -> f64 {
    ((busy_s - own_s) / all_s).clamp(0.0, 1.0)
}

/// Time that all CPUs together were not idle, or belonged to another guest, since the machine started, in s.
fn busy_s() -> f64 {
    busy_ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()) / clock_ticks_per_second() as f64
}

/// From `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user.
fn busy_ticks(text: &str) -> f64 {
    let numbers = text.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
    let ticks = numbers.map(|word| word.parse().unwrap_or(0.0)).enumerate();
    ticks.filter(|(i, _)| ![3, 4].contains(i)).map(|(_, ticks)| ticks).sum()
}

/// CPU time of this process and of its children that have ended, in s.
fn own_s() -> f64 {
    let of = |who| {
        // SAFETY: all zeros is a valid rusage, and it outlives the call
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        [usage.ru_utime, usage.ru_stime].map(|t| t.tv_sec as f64 + t.tv_usec as f64 / 1e6).iter().sum::<f64>()
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_busy_and_waiting_for_disks_is_not() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 1 1\n"), 63.0);
        assert_eq!(busy_ticks(""), 0.0);
    }

    #[test]
    fn own_work_is_not_that_of_others() {
        // of 10 s of both CPUs 6 were busy, and 2 of these for this process
        assert_eq!(share(6.0, 2.0, 20.0), 0.2);
        // ticks are coarser than rusage
        assert_eq!(share(1.99, 2.0, 20.0), 0.0);
        let start = (Instant::now(), own_s());
        while start.0.elapsed().as_millis() < 50 {}
        assert!(own_s() > start.1);
    }
}
