//! The counters of a run as a `/proc/schedstat` file.

use std::io::Write;

use anyhow::Result;
use coreward_engine::{CpuSchedstat, DomainSchedstat, Outcome};
use coreward_machine::{Domain, KernelStyle};
use coreward_metrics::schedstat::{self, BalanceCounters, SchedstatCpu, SchedstatDomain, Version};
use coreward_policy::Profile;
use coreward_state::kernel_style;

use crate::setup::Host;

/// The version that the profile's kernel writes.
pub(crate) fn version(profile: Profile) -> Version {
    let kernel = kernel_style(profile);
    if kernel >= KernelStyle::new(6, 14) {
        Version::V17
    } else if kernel >= KernelStyle::new(6, 10) {
        Version::V16
    } else {
        Version::V15
    }
}

pub(crate) fn write(out: impl Write, version: Version, host: &Host, outcome: &Outcome) -> Result<()> {
    let nr_cpus = host.machine.nr_cpus();
    let cpus: Vec<_> = outcome
        .schedstat
        .iter()
        .enumerate()
        .map(|(number, stat)| cpu(stat, host.topology.domains_of(number), nr_cpus))
        .collect();
    let jiffies = u128::from(outcome.end_ns) * u128::from(host.machine.hz) / 1_000_000_000;
    Ok(schedstat::write(out, version, jiffies as u64, &cpus)?)
}

fn cpu<'a>(stat: &CpuSchedstat, domains: impl Iterator<Item = &'a Domain>, nr_cpus: usize) -> SchedstatCpu {
    SchedstatCpu {
        yld_count: stat.yld_count,
        sched_count: stat.sched_count,
        sched_goidle: stat.sched_goidle,
        ttwu_count: stat.ttwu_count,
        ttwu_local: stat.ttwu_local,
        rq_cpu_time: stat.rq_cpu_time,
        run_delay: stat.run_delay,
        pcount: stat.pcount,
        domains: domains.zip(&stat.domains).map(|(d, counters)| domain(d, counters, nr_cpus)).collect(),
    }
}

fn domain(domain: &Domain, stat: &DomainSchedstat, nr_cpus: usize) -> SchedstatDomain {
    SchedstatDomain {
        name: domain.name.into(),
        mask: domain.span.to_mask(nr_cpus),
        busy: balance(stat, 0),
        idle: balance(stat, 1),
        newly_idle: balance(stat, 2),
        alb_count: stat.alb_count,
        alb_failed: stat.alb_failed,
        alb_pushed: stat.alb_pushed,
        ttwu_wake_remote: stat.ttwu_wake_remote,
        ttwu_move_affine: stat.ttwu_move_affine,
        ..SchedstatDomain::default()
    }
}

/// The counters of one idle type. The simulator adds up imbalances of every kind, as kernels
/// before 6.14 do; version 17 shows the sum as one of load.
fn balance(stat: &DomainSchedstat, kind: usize) -> BalanceCounters {
    BalanceCounters {
        lb_count: stat.lb_count[kind],
        lb_balanced: stat.lb_balanced[kind],
        lb_failed: stat.lb_failed[kind],
        lb_imbalance_load: stat.lb_imbalance[kind],
        lb_gained: stat.lb_gained[kind],
        lb_nobusyq: stat.lb_nobusyq[kind],
        lb_nobusyg: stat.lb_nobusyg[kind],
        ..BalanceCounters::default()
    }
}
