//! The policy's settings, and its state of this machine as the BPF programs start with it.

use std::fmt;
use std::mem::size_of;

use anyhow::Result;
use coreward_engine::{PolicySettings, policy_system};
use coreward_machine::{DomainOptions, KernelStyle};
use coreward_policy::{
    Assignment, Profile, Sys, System, Tunable, default_tunables, feature_switch, tunable_index,
};

use crate::cli;
use crate::machine::LiveMachine;

/// What the user asked for cannot be meant.
#[derive(Debug)]
pub(crate) struct WrongArgument(pub(crate) String);

impl fmt::Display for WrongArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongArgument {}

/// The settings of a policy as it was named, and the kernel whose sched domains it is given.
///
/// # Errors
/// A name is unknown, or a value out of its range.
pub(crate) fn settings(named: &cli::Policy) -> Result<(PolicySettings, KernelStyle), WrongArgument> {
    let option = |option: &'static str| move |wrong| WrongArgument(format!("{option}: {wrong}"));
    let profile = Profile::named(&named.profile).map_err(option("--profile"))?;
    let mut settings = PolicySettings { features: profile.features(), tunables: default_tunables() };
    for name in &named.sched_feat {
        let (bit, on) = feature_switch(name).map_err(option("--sched-feat"))?;
        settings.features = settings.features & !bit | if on { bit } else { 0 };
    }
    for Assignment { name, value } in &named.set {
        settings.tunables[tunable_index(name, *value).map_err(option("--set"))?] = *value;
    }
    let (major, minor) = profile.version();
    Ok((settings, KernelStyle::new(major, minor)))
}

/// The policy's state of the machine, on which nothing runs yet.
///
/// # Errors
/// The kernel refuses the `relax_domain_level`, or the policy has no room for the machine.
pub(crate) fn system(live: &LiveMachine, settings: &PolicySettings, names: KernelStyle) -> Result<System> {
    let request = settings.tunables[Tunable::relax_domain_level as usize];
    let options = DomainOptions {
        // the range of the tunable is within i32
        relax_domain_level: i32::try_from(request).ok(),
        relax_semantics: names.relax_semantics(),
        names,
    };
    let topology = live.topology(&options).map_err(|error| WrongArgument(format!("{error:#}")))?;
    Ok(policy_system(&live.machine, &topology, settings, 0)?)
}

/// Copies the state to where a BPF program has its own.
///
/// # Panics
/// The program was compiled with another layout.
pub(crate) fn copy_system<T>(to: &mut T, from: &System) {
    assert_eq!(size_of::<T>(), size_of::<Sys>());
    // SAFETY: both are the same C structure, plain integers of the same size, one compiled for BPF
    unsafe {
        std::ptr::copy_nonoverlapping(
            (&raw const **from).cast::<u8>(),
            (&raw mut *to).cast::<u8>(),
            size_of::<T>(),
        )
    };
}
