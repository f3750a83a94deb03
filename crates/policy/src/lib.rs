//! Bindings to the placement policy in `policy/`: the same C functions and
//! structures that the hosts in BPF use.
//!
//! [`layout`] is generated from `policy/native.h`, [`profile`] says which kernel a set of
//! features represents, and [`System`] is the safe interface to the entry points. [`Code`] is a policy's
//! code: the built-in one, or that of a directory of the user's own.

mod assignment;
mod code;
mod directory;
mod distance;
mod generated;
pub mod profile;
pub mod queue;
mod settings;
mod system;

pub use assignment::Assignment;
pub use code::{Code, Reason};
pub use directory::Tree;
pub use generated::layout::{
    self, Avg, Balance, Cpu, CpuMask, CpuSd, Decision, Detach, Distance, Domain, Entity, FairRq, Group, Lb,
    LbStep, Llc, Process, QueueDecision, Runtime, SdStats, SgStats, Sys, Task, Waiting, Wakeup,
};
pub use generated::tables::{
    BALANCE_EVENTS, DISTANCES, FEATURES, Feature, GROUP_TYPES, MIGRATION_TYPES, NOTES, TUNABLES, Tunable,
};
pub use profile::{FeatureInfo, Profile, TunableInfo, kernel_version};
pub use settings::{Changes, PolicySettings};
pub use system::{Placement, System, feature_words, util_est};
