//! Builds a simulation from the names on the command line.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use coreward_engine::{Change, Outcome, Settings, SimError, Simulation, Trace};
use coreward_machine::{Costs, Machine, Partition, Preemption, Topology};
use coreward_policy::{Feature, Profile, Tunable};
use coreward_state::domain_options;
use coreward_workload::Workload;

use crate::assumed;
use crate::caller;
use crate::cli::Simulated;
use crate::policy::Policy;

/// The default simulated time after which a run is abandoned, in s.
pub(crate) const TIME_LIMIT_S: u64 = 1000;
/// The largest limit, in s.
pub(crate) const MAX_TIME_LIMIT_S: u64 = 1_000_000;

/// How well the rates of a run have to be known before its steady middle is skipped, in per cent.
pub(crate) const SKIP_STEADY_PCT: RangeInclusive<f64> = 0.1..=20.0;

/// A machine under a policy: what runs of one side of a comparison have in common.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) machine: Machine,
    pub(crate) topology: Arc<Topology>,
    pub(crate) policy: Policy,
    pub(crate) task_group_depth: u32,
    pub(crate) time_limit_s: u64,
    /// Length of the intervals that a run is also measured in.
    pub(crate) interval_ns: Option<u64>,
    /// The steady middle of a run is skipped once its rates are known to this many per cent.
    pub(crate) skip_steady_pct: Option<f64>,
    /// How the machine changes in the middle of each run.
    pub(crate) events: Vec<Change>,
    partitions: Vec<Partition>,
    /// Ends its runs early.
    /// Ends a run early.
    pub(crate) interrupt: Arc<AtomicBool>,
    /// What a reader has to know of how its policy was chosen.
    pub(crate) notes: Vec<String>,
}

impl Host {
    /// Applies a policy to a machine: its costs, and its request for a `relax_domain_level`.
    ///
    /// # Errors
    /// The machine has no such level.
    pub(crate) fn new(machine: Machine, policy: Policy) -> Result<Host> {
        Host::partitioned(machine, policy, &[])
    }

    /// The same on a machine that is divided; the workload runs in the first partition.
    ///
    /// # Errors
    /// The machine has no such level, or cannot be divided so.
    pub(crate) fn partitioned(
        mut machine: Machine,
        policy: Policy,
        partitions: &[Partition],
    ) -> Result<Host> {
        for (name, value) in &policy.costs {
            machine.costs.set(name, *value).map_err(anyhow::Error::msg)?;
        }
        let options = domain_options(policy.profile, &policy.settings());
        let topology = Topology::partitioned(&machine, &options, partitions)?;
        Ok(Host {
            machine,
            topology: Arc::new(topology),
            policy,
            task_group_depth: Settings::LOGIN_SESSION_DEPTH,
            time_limit_s: TIME_LIMIT_S,
            interval_ns: None,
            skip_steady_pct: None,
            events: Vec::new(),
            partitions: partitions.to_vec(),
            interrupt: caller::interrupt(),
            notes: Vec::new(),
        })
    }

    /// The same on a machine with other costs, except those that the policy sets.
    pub(crate) fn with_costs(&self, costs: &Costs) -> Host {
        let mut machine = Machine { costs: costs.clone(), ..self.machine.clone() };
        for (name, value) in &self.policy.costs {
            machine.costs.set(name, *value).expect("it was set before");
        }
        Host { machine, ..self.clone() }
    }

    /// Runs a workload to its end.
    ///
    /// # Errors
    /// The workload is stuck or does not end in time, or the policy has no room for the machine.
    pub(crate) fn run(&self, workload: &Workload, seed: u64, trace: &mut dyn Trace) -> Result<Outcome> {
        let settings = Settings {
            policy: self.policy.settings(),
            seed,
            task_group_depth: self.task_group_depth,
            limit_ns: self.time_limit_s * 1_000_000_000,
        };
        let mut simulation = Simulation::new(&self.machine, &self.topology, workload, &settings, trace)?
            .with_interrupt(&self.interrupt);
        if let Some(ns) = self.interval_ns {
            simulation = simulation.with_intervals(ns);
        }
        if !self.events.is_empty() {
            let options = domain_options(self.policy.profile, &settings.policy);
            simulation = simulation.with_changes(
                &self.machine,
                &options,
                &self.partitions,
                &settings.policy,
                &self.events,
            )?;
        }
        if let Some(percent) = self.skip_steady_pct {
            simulation = simulation.with_skip(percent, LEAST_STEADY_NS);
        }
        match simulation.run() {
            Err(SimError::Limit { .. }) => bail!(
                "the workload did not end within {} s of simulated time (--time-limit, or time_limit of an \
                 experiment, allowed are 1 to {MAX_TIME_LIMIT_S})",
                self.time_limit_s
            ),
            ended => Ok(ended?),
        }
    }
}

/// The shortest stretch that is called steady, in ns. The rates of yielding threads and of hackbench change from one
/// tenth of a second to the next (`coreward run --intervals`), so a shorter one would miss that.
const LEAST_STEADY_NS: u64 = 1_000_000_000;

/// The kernel that runs here.
pub(crate) fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The policy that is meant on a machine when no profile is named: that of the machine's kernel, as far as it is known.
pub(crate) struct Default {
    pub(crate) policy: Policy,
    /// What a reader has to know of the choice.
    pub(crate) notes: Vec<String>,
}

impl Default {
    /// Preempts as a kernel does.
    pub(crate) fn preempts_as(&mut self, preemption: Preemption) {
        let full = matches!(preemption, Preemption::Full | Preemption::Rt);
        self.policy.changes.switch_feature(Feature::PREEMPT_LAZY, preemption == Preemption::Lazy);
        self.policy.changes.switch_feature(Feature::PREEMPT_FULL, full);
        let switched = self.policy.deviations();
        if !switched.is_empty() {
            self.notes.push(format!(
                "the machine's kernel runs with preempt={}: {}, unlike the profile",
                preemption.name(),
                switched.join(", ")
            ));
        }
    }

    /// Packs tasks on busy CPUs as a kernel does.
    pub(crate) fn packs(&mut self, bits: u8) {
        self.policy.changes.set_tunable(Tunable::vcpu_pack, bits.into());
        self.notes.push(format!(
            "the machine's kernel runs with sched_vcpu_pack={bits}: vcpu_pack={bits}, unlike any profile"
        ));
    }
}

/// The same on the machine that is named so. What is wrong with it is said where it is loaded to be used.
pub(crate) fn default_policy(machine: &str) -> Default {
    let loaded = Machine::load(machine).ok();
    let kernel = loaded.as_ref().and_then(|machine| machine.kernel.as_deref());
    let Some(kernel) = kernel else {
        return Default { policy: Policy::new(Profile::DEFAULT), notes: Vec::new() };
    };
    let (profile, nearest) = Profile::of_kernel(kernel);
    let policy = Policy::new(profile);
    let mut notes = Vec::new();
    if nearest {
        notes.push(format!(
            "there is no profile of the machine's kernel, {kernel}: {} is the nearest",
            profile.name()
        ));
    }
    let mut default = Default { policy, notes };
    if let Some(preemption) = loaded.as_ref().and_then(|machine| machine.preemption) {
        default.preempts_as(preemption);
    }
    let Default { policy, notes } = &mut default;
    let before = policy.deviations();
    for feature in loaded.iter().flat_map(|machine| &machine.features) {
        // the kernel has others, which nothing here stands for
        let _ = policy.changes.sched_feat(policy.code, feature);
    }
    let set: Vec<_> = policy.deviations().into_iter().filter(|what| !before.contains(what)).collect();
    if !set.is_empty() {
        notes.push(format!("the machine's kernel runs with {}, unlike the profile", set.join(", ")));
    }
    if let Some(bits) = loaded.as_ref().and_then(|machine| machine.vcpu_pack) {
        default.packs(bits);
    }
    default
}

/// The policy with the profile of that name, or the default on the machine.
pub(crate) fn policy(profile: Option<&str>, machine: &str) -> Result<Default> {
    match profile {
        Some(name) => {
            let profile = Profile::named(name).map_err(|what| anyhow::anyhow!("--profile: {what}"))?;
            Ok(Default { policy: Policy::new(profile), notes: Vec::new() })
        }
        None => Ok(default_policy(machine)),
    }
}

/// A note of what the machine's kernel runs with, and a policy whose profile was named does not.
pub(crate) fn left_out(policy: &Policy, machine: &str) -> Option<String> {
    let kernel = Policy { profile: policy.profile, ..default_policy(machine).policy };
    let own = policy.deviations();
    let more: Vec<_> = kernel.deviations().into_iter().filter(|what| !own.contains(what)).collect();
    (!more.is_empty())
        .then(|| format!("--profile leaves out what the machine's kernel runs with: {}", more.join(", ")))
}

/// The simulated machine with its policy, and the workload, that the command line names.
pub(crate) fn from_args(args: &Simulated) -> Result<(Host, Workload)> {
    let named = |option: &'static str| move |what: String| anyhow::anyhow!("{option}: {what}");
    let Default { mut policy, mut notes } = policy(args.profile.as_deref(), &args.machine)?;
    if let Some(directory) = &args.policy {
        policy.set_directory(directory).map_err(named("--policy"))?;
    }
    args.options.add_to(&mut policy.changes, policy.code).map_err(anyhow::Error::msg)?;
    policy.set_costs(&args.cost)?;
    if let Some(level) = args.relax_domain_level {
        policy.changes.set_tunable(Tunable::relax_domain_level, level.into());
    }
    notes.extend(args.profile.as_ref().and_then(|_| left_out(&policy, &args.machine)));
    let workload = assumed::workload(&args.workload, args.scale, args.strict)?;
    let machine = assumed::machine(&args.machine, args.strict).context("--machine")?;
    let mut host = Host::partitioned(machine, policy, &args.partition)?;
    host.task_group_depth = args.task_group_depth;
    host.time_limit_s = args.time_limit;
    host.events = args.event.clone();
    host.notes = notes;
    Ok((host, workload))
}

/// The files and directories that a machine and workloads are read from.
pub(crate) fn inputs<'a>(machine: &'a str, workloads: impl IntoIterator<Item = &'a str>) -> Vec<PathBuf> {
    let of_workloads = workloads.into_iter().flat_map(coreward_workload::paths);
    Machine::path(machine).into_iter().chain(of_workloads).map(PathBuf::from).collect()
}
