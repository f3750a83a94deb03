//! `/proc/schedstat` text, versions 15 to 17, for the tools that read it (`perf sched stats`, monitors).
//!
//! The format is that of the kernel's `Documentation/scheduler/sched-stats.rst`:
//!
//! ```text
//! version 17
//! timestamp <jiffies>
//! cpu<N> <9 counters>
//! domain<N> <name> <mask> <3 x 11 balance counters> <12 counters>
//! ```
//!
//! The versions differ as follows:
//!
//! | version | kernels | balance counters | order of the idle types | domain name |
//! |---|---|---|---|---|
//! | 15 | to 6.9 | 8, one imbalance | idle, busy, newly idle | no |
//! | 16 | 6.10 to 6.13 | 8, one imbalance | busy, idle, newly idle | no |
//! | 17 | from 6.14 | 11, imbalance by kind | busy, idle, newly idle | yes |

use std::io::{self, Write};

/// Version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// To Linux 6.9.
    V15,
    /// Linux 6.10 to 6.13.
    V16,
    /// From Linux 6.14.
    V17,
}

impl Version {
    fn number(self) -> u32 {
        match self {
            Version::V15 => 15,
            Version::V16 => 16,
            Version::V17 => 17,
        }
    }
}

/// Counters of one CPU, in the order of its line. The second of the nine fields there is a relic that is always 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchedstatCpu {
    /// Calls of `sched_yield()` (field 1).
    pub yld_count: u64,
    /// Calls of `schedule()` (field 3).
    pub sched_count: u64,
    /// Calls of `schedule()` that left the CPU idle (field 4).
    pub sched_goidle: u64,
    /// Wakeups by this CPU (field 5).
    pub ttwu_count: u64,
    /// Wakeups by this CPU of a task placed on it (field 6).
    pub ttwu_local: u64,
    /// Time that tasks ran here, in ns (field 7).
    pub rq_cpu_time: u64,
    /// Time that tasks waited to run here, in ns (field 8).
    pub run_delay: u64,
    /// Timeslices run (field 9).
    pub pcount: u64,
    /// Domains of the CPU, the smallest first.
    pub domains: Vec<SchedstatDomain>,
}

/// Counters of one domain of one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SchedstatDomain {
    /// Name of the level, as `SMT` or `MC`; printed from version 17.
    pub name: String,
    /// CPUs of the domain as the kernel prints a mask: hexadecimal, a comma between groups of 32 bits.
    pub mask: String,
    /// Balancing while the CPU was busy.
    pub busy: BalanceCounters,
    /// Balancing while the CPU was idle.
    pub idle: BalanceCounters,
    /// Balancing when the CPU was about to become idle.
    pub newly_idle: BalanceCounters,
    /// Active balancing: the stopper was asked to push the running task away.
    pub alb_count: u64,
    /// Active balancing that moved nothing.
    pub alb_failed: u64,
    /// Active balancing that moved a task.
    pub alb_pushed: u64,
    /// Wakeups of a task that last ran on another CPU of this domain.
    pub ttwu_wake_remote: u64,
    /// Wakeups that moved the task to the waking CPU.
    pub ttwu_move_affine: u64,
    /// Wakeups that started passive balancing.
    pub ttwu_move_balance: u64,
}

/// Counters of load balancing for one idle type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BalanceCounters {
    /// Balancing attempts.
    pub lb_count: u64,
    /// Attempts that found no imbalance.
    pub lb_balanced: u64,
    /// Attempts that found an imbalance and moved nothing.
    pub lb_failed: u64,
    /// Sum of the imbalances of load that were found.
    pub lb_imbalance_load: u64,
    /// Sum of the imbalances of utilisation.
    pub lb_imbalance_util: u64,
    /// Sum of the imbalances of task numbers.
    pub lb_imbalance_task: u64,
    /// Sum of the imbalances by misfit tasks.
    pub lb_imbalance_misfit: u64,
    /// Tasks pulled.
    pub lb_gained: u64,
    /// Tasks pulled although they were cache-hot.
    pub lb_hot_gained: u64,
    /// Attempts that found no busier queue.
    pub lb_nobusyq: u64,
    /// Attempts that found no busier group.
    pub lb_nobusyg: u64,
}

impl BalanceCounters {
    fn fields(&self, version: Version) -> Vec<u64> {
        let imbalance = [
            self.lb_imbalance_load,
            self.lb_imbalance_util,
            self.lb_imbalance_task,
            self.lb_imbalance_misfit,
        ];
        let mut fields = vec![self.lb_count, self.lb_balanced, self.lb_failed];
        match version {
            // Before version 17 the kernel added up imbalances of every kind.
            Version::V15 | Version::V16 => {
                fields.push(imbalance.iter().fold(0, |sum, &i| sum.saturating_add(i)))
            }
            Version::V17 => fields.extend(imbalance),
        }
        fields.extend([self.lb_gained, self.lb_hot_gained, self.lb_nobusyq, self.lb_nobusyg]);
        fields
    }
}

/// Writes the counters of CPUs 0, 1, ...; the timestamp is in jiffies.
///
/// # Errors
/// Those of the writer.
pub fn write<W: Write>(
    mut out: W,
    version: Version,
    timestamp: u64,
    cpus: &[SchedstatCpu],
) -> io::Result<()> {
    writeln!(out, "version {}", version.number())?;
    writeln!(out, "timestamp {timestamp}")?;
    for (number, cpu) in cpus.iter().enumerate() {
        write_cpu(&mut out, number, cpu)?;
        for (level, domain) in cpu.domains.iter().enumerate() {
            write_domain(&mut out, version, level, domain)?;
        }
    }
    Ok(())
}

fn write_cpu(out: &mut impl Write, number: usize, cpu: &SchedstatCpu) -> io::Result<()> {
    let SchedstatCpu { yld_count, sched_count, sched_goidle, ttwu_count, ttwu_local, .. } = cpu;
    let SchedstatCpu { rq_cpu_time, run_delay, pcount, .. } = cpu;
    writeln!(
        out,
        "cpu{number} {yld_count} 0 {sched_count} {sched_goidle} {ttwu_count} {ttwu_local} {rq_cpu_time} {run_delay} {pcount}"
    )
}

fn write_domain(
    out: &mut impl Write,
    version: Version,
    level: usize,
    domain: &SchedstatDomain,
) -> io::Result<()> {
    write!(out, "domain{level}")?;
    if version == Version::V17 {
        write!(out, " {}", domain.name)?;
    }
    write!(out, " {}", domain.mask)?;
    let idle_types = match version {
        Version::V15 => [&domain.idle, &domain.busy, &domain.newly_idle],
        Version::V16 | Version::V17 => [&domain.busy, &domain.idle, &domain.newly_idle],
    };
    for field in idle_types.iter().flat_map(|counters| counters.fields(version)) {
        write!(out, " {field}")?;
    }
    // The six counters of exec and fork balancing have long been unused; the kernel prints zeros.
    let SchedstatDomain { alb_count, alb_failed, alb_pushed, .. } = domain;
    let SchedstatDomain { ttwu_wake_remote, ttwu_move_affine, ttwu_move_balance, .. } = domain;
    writeln!(
        out,
        " {alb_count} {alb_failed} {alb_pushed} 0 0 0 0 0 0 {ttwu_wake_remote} {ttwu_move_affine} {ttwu_move_balance}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters numbered from `first` on, so that every field can be told from its place.
    fn balance(first: u64) -> BalanceCounters {
        BalanceCounters {
            lb_count: first,
            lb_balanced: first + 1,
            lb_failed: first + 2,
            lb_imbalance_load: first + 3,
            lb_imbalance_util: first + 4,
            lb_imbalance_task: first + 5,
            lb_imbalance_misfit: first + 6,
            lb_gained: first + 7,
            lb_hot_gained: first + 8,
            lb_nobusyq: first + 9,
            lb_nobusyg: first + 10,
        }
    }

    fn text(version: Version) -> String {
        let domain = SchedstatDomain {
            name: "SMT".into(),
            mask: "00000000,00000003".into(),
            busy: balance(1),
            idle: balance(12),
            newly_idle: balance(23),
            alb_count: 34,
            alb_failed: 35,
            alb_pushed: 36,
            ttwu_wake_remote: 43,
            ttwu_move_affine: 44,
            ttwu_move_balance: 45,
        };
        let cpu = SchedstatCpu {
            yld_count: 1,
            sched_count: 3,
            sched_goidle: 4,
            ttwu_count: 5,
            ttwu_local: 6,
            rq_cpu_time: 7,
            run_delay: 8,
            pcount: 9,
            domains: vec![domain],
        };
        let mut out = Vec::new();
        write(&mut out, version, 4_294_892_296, &[cpu, SchedstatCpu::default()]).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn version_17_numbers_its_fields_as_documented() {
        let want = "version 17\ntimestamp 4294892296\ncpu0 1 0 3 4 5 6 7 8 9\n\
            domain0 SMT 00000000,00000003 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 \
            23 24 25 26 27 28 29 30 31 32 33 34 35 36 0 0 0 0 0 0 43 44 45\n\
            cpu1 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(text(Version::V17), want);
    }

    #[test]
    fn version_16_adds_up_the_imbalances() {
        // 4+5+6+7 = 22, 15+16+17+18 = 66, 26+27+28+29 = 110.
        let want = "version 16\ntimestamp 4294892296\ncpu0 1 0 3 4 5 6 7 8 9\n\
            domain0 00000000,00000003 1 2 3 22 8 9 10 11 12 13 14 66 19 20 21 22 23 24 25 110 30 31 32 33 \
            34 35 36 0 0 0 0 0 0 43 44 45\n\
            cpu1 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(text(Version::V16), want);
    }

    #[test]
    fn version_15_has_idle_before_busy() {
        let want = "version 15\ntimestamp 4294892296\ncpu0 1 0 3 4 5 6 7 8 9\n\
            domain0 00000000,00000003 12 13 14 66 19 20 21 22 1 2 3 22 8 9 10 11 23 24 25 110 30 31 32 33 \
            34 35 36 0 0 0 0 0 0 43 44 45\n\
            cpu1 0 0 0 0 0 0 0 0 0\n";
        assert_eq!(text(Version::V15), want);
    }
}
