//! The running scheduler's memory: the policy's state, its settings and the counters.

use std::collections::BTreeMap;
use std::mem::size_of;
use std::ptr::{read_volatile, write_volatile};

use anyhow::Result;
use coreward_policy::{Changes, Code, FEATURES, PolicySettings, Profile, Sys, TUNABLES, feature_words};

use crate::machine::LiveMachine;
use crate::policy::{self, WrongArgument};
use crate::skel::live::types::{bss, live_stats};
use crate::stats::{CpuMetrics, Metrics, ReasonMetrics};

/// The programs' variables, which the kernel maps into this process.
pub(crate) struct Running<'a> {
    sys: *mut Sys,
    stats: &'a [live_stats],
    machine: &'a LiveMachine,
    settings: &'a mut PolicySettings,
    profile: Profile,
}

impl<'a> Running<'a> {
    /// The scheduler that was loaded with these settings for the machine, and sched domains of that
    /// profile's kernel.
    pub(crate) fn new(
        bss: &'a mut bss,
        machine: &'a LiveMachine,
        settings: &'a mut PolicySettings,
        profile: Profile,
    ) -> Self {
        assert_eq!(size_of_val(&bss.sys), size_of::<Sys>());
        let sys = (&raw mut bss.sys).cast();
        Running { sys, stats: &bss.stats, machine, settings, profile }
    }

    /// The value of a feature (0, 1) or tunable, or of all that have an effect if none is named.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn get(&self, name: Option<&str>) -> Result<BTreeMap<String, i64>, WrongArgument> {
        let features = FEATURES.iter().enumerate();
        let features = features.map(|(i, f)| (f.name, (self.settings.features >> i & 1) as i64));
        let tunables = TUNABLES.iter().zip(self.settings.tunables).map(|(t, value)| (t.name, value));
        let all = features.chain(tunables).map(|(name, value)| (name.to_owned(), value));
        let wanted = |own: &str| policy::has_effect(own) && name.is_none_or(|name| name == own);
        let found: BTreeMap<_, _> = all.filter(|(own, _)| wanted(own)).collect();
        match name {
            Some(name) if found.is_empty() => Err(WrongArgument(format!(
                "there is no feature or tunable `{name}` here: `coreward get` lists all"
            ))),
            _ => Ok(found),
        }
    }

    /// Sets a feature (0 or 1) or a tunable; decisions use the value from then on.
    ///
    /// # Errors
    /// There is none of that name, it has no effect, or it cannot have the value.
    pub(crate) fn set(&mut self, name: &str, value: i64) -> Result<()> {
        let mut changes = Changes::default();
        if TUNABLES.iter().any(|t| t.name == name) {
            changes.set(Code::built_in(), name, value).map_err(WrongArgument)?;
        } else {
            let off = match name.strip_prefix("NO_") {
                Some(plain) => plain.to_owned(),
                None => format!("NO_{name}"),
            };
            changes
                .sched_feat(Code::built_in(), if value == 0 { &off } else { name })
                .map_err(WrongArgument)?;
            if !(0..=1).contains(&value) {
                return Err(WrongArgument(format!("{name} is {value}, allowed are 0 and 1")).into());
            }
        }
        let settings = changes.apply(self.settings);
        if !policy::has_effect(name) {
            return Err(WrongArgument(policy::without_effect(name)).into());
        }
        // some settings act through the flags of the domains
        let system = policy::system(self.machine, &settings, self.profile)?;
        // SAFETY: the mapping lives as long as `self`; each word is written in one piece, and the
        // programs may read old and new ones side by side
        unsafe {
            for (i, domain) in system.domain.iter().enumerate() {
                write_volatile(&raw mut (*self.sys).domain[i].flags, domain.flags);
            }
            for (i, value) in settings.tunables.iter().enumerate() {
                write_volatile(&raw mut (*self.sys).tunable[i], *value);
            }
            for (i, word) in feature_words(settings.features).into_iter().enumerate() {
                write_volatile(&raw mut (*self.sys).features[i], word);
            }
        }
        *self.settings = settings;
        Ok(())
    }

    /// When the averages of the CPU were brought up to date, ns.
    fn clock(&self, cpu: usize) -> u64 {
        // SAFETY: a plain integer that only programs write
        unsafe { read_volatile(&raw const (*self.sys).cpu[cpu].clock_task) }
    }

    fn cpu(&self, cpu: usize, now: u64) -> CpuMetrics {
        // SAFETY: the mapping lives as long as `self`, and holds plain integers
        let rq = unsafe { read_volatile(&raw const (*self.sys).cpu[cpu]) };
        let stats = self.stat(cpu);
        CpuMetrics {
            node: rq.node.into(),
            llc: rq.llc.into(),
            core: rq.core.into(),
            nr_running: rq.nr_running.into(),
            util: decayed(rq.avg.util_avg, now.saturating_sub(self.clock(cpu))),
            capacity: rq.capacity_orig.into(),
            switches: stats.switches,
            pulled: stats.pulled_newidle + stats.pulled_balance,
        }
    }

    fn stat(&self, cpu: usize) -> live_stats {
        // SAFETY: plain integers that only programs write
        unsafe { read_volatile(&raw const self.stats[cpu]) }
    }

    /// What was counted since the start.
    pub(crate) fn metrics(&self) -> Metrics {
        // SAFETY: as above
        let nr_cpus = unsafe { read_volatile(&raw const (*self.sys).nr_cpus) } as usize;
        // some CPU has just switched to this process
        let now = (0..nr_cpus).map(|cpu| self.clock(cpu)).max().unwrap_or(0);
        let mut sum = Metrics::default();
        let reasons: Vec<_> = Code::built_in().reasons().collect();
        let mut placements = vec![0; reasons.len()];
        for cpu in 0..nr_cpus {
            let stats = self.stat(cpu);
            placements.iter_mut().zip(stats.reasons).for_each(|(sum, n)| *sum += n);
            sum.add(&stats);
            sum.cpus.insert(cpu.to_string(), self.cpu(cpu, now));
        }
        sum.placements = placements.iter().sum();
        let named = reasons.iter().zip(placements).filter(|(_, n)| *n > 0);
        sum.reasons =
            named.map(|(reason, n)| (reason.name.to_owned(), ReasonMetrics { placements: n })).collect();
        sum
    }
}

/// The half-life of an average on an idle CPU, ns: 32 periods of 1,024 us
/// (`policy/track/pelt.h`).
const HALF_LIFE_NS: f64 = 32.0 * 1_048_576.0;

/// What is left of a utilisation after this much time, during which it was not updated because the
/// CPU was idle.
fn decayed(util: u64, idle_ns: u64) -> u64 {
    (util as f64 * 0.5_f64.powf(idle_ns as f64 / HALF_LIFE_NS)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_cpu_loses_its_utilisation() {
        assert_eq!(decayed(1024, 0), 1024);
        assert_eq!(decayed(1024, 33_554_432), 512, "32 periods");
        assert_eq!(decayed(1024, 2 * 33_554_432), 256);
        assert_eq!(decayed(1024, 1_000_000_000), 0);
    }
}
