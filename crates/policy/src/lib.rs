//! Bindings to the placement policy in `policy/`: the same C functions that a
//! kernel host runs, over the same structures.
//!
//! [`layout`] mirrors `policy/types.h`, [`profile`] says which kernel a set of
//! features stands for, and [`System`] is the safe face of the entry points.

mod assignment;
pub mod layout;
pub mod profile;
pub mod queue;
mod system;

pub use assignment::Assignment;
pub use layout::{
    Avg, Balance, Cpu, CpuMask, CpuSd, Decision, Domain, Group, Llc, Newidle, Periodic, Process, Runtime,
    SdStats, SgStats, Sys, Task, Wakeup,
};
pub use profile::{
    FEATURES, Feature, FeatureInfo, NR_TUNABLES, Profile, TUNABLES, Tunable, TunableInfo, default_tunables,
    feature_switch, tunable_index,
};
pub use system::{BalanceStep, Detach, Placement, Reason, System, util_est};
