//! Bindings to the placement policy in `policy/`: the same C functions and
//! structures that the hosts in BPF use.
//!
//! [`layout`] is generated from `policy/native.h`, [`profile`] says which kernel a set of
//! features represents, and [`System`] is the safe interface to the entry points.

mod assignment;
mod distance;
mod generated;
pub mod profile;
pub mod queue;
mod settings;
mod system;

pub use assignment::Assignment;
pub use generated::layout::{
    self, Avg, Balance, Cpu, CpuMask, CpuSd, Decision, Detach, Distance, Domain, Entity, FairRq, Group, Lb,
    LbStep, Llc, Process, QueueDecision, Runtime, SdStats, SgStats, Sys, Task, Waiting, Wakeup,
};
pub use generated::tables::{
    BALANCE_EVENTS, DISTANCES, FEATURES, Feature, GROUP_TYPES, MIGRATION_TYPES, NOTES, NR_TUNABLES, TUNABLES,
    Tunable,
};
pub use profile::{FeatureInfo, Profile, TunableInfo, kernel_version};
pub use settings::{Changes, PolicySettings, default_tunables};
pub use system::{Placement, Reason, System, feature_words, util_est};
