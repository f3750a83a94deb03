//! Machines and their scheduling domains.
//!
//! A [`Machine`] comes from a preset, a machine file, a sysfs tree, an hwloc XML file or a
//! shorthand like `2n4l8c2t`; see [`Machine::load`]. A [`Topology`] is what the kernel makes
//! of it: sched domains and groups, with their flags.
//!
//! ```
//! use coreward_machine::{DomainOptions, Machine, Topology};
//!
//! let machine = Machine::load("e5-2680v3-2s").unwrap();
//! let topology = Topology::build(&machine, &DomainOptions::default()).unwrap();
//! let names: Vec<_> = topology.domains_of(0).map(|domain| domain.name).collect();
//! assert_eq!(names, ["SMT", "MC", "NUMA"]);
//! ```
//!
//! # Machine files
//!
//! The presets in `machines/` are examples, and `machines/README.md` describes the format: a
//! regular machine has a `shape`, any other one has an `[[llc]]` table for each last-level
//! cache. Every figure is written plainly or as `{ value = …, source = "…" }`.

mod capacity;
mod costs;
mod cpuset;
mod domains;
mod error;
mod files;
mod hwloc;
mod json_read;
mod kernel;
mod machine;
mod online;
mod presets;
mod render;
mod shape;
mod sysfs;
mod toml_read;
mod toml_write;
mod xml;

pub use costs::{CostField, Costs};
pub use cpuset::{CpuSet, MAX_CPUS};
pub use domains::{
    Domain, DomainOptions, Group, KernelStyle, Partition, PartitionError, RelaxError, RelaxSemantics,
    SdFlags, Topology, render_domains, render_schedstat_masks,
};
pub use error::MachineError;
pub use kernel::{Preemption, VCPU_PACK_MAX};
pub use machine::{Arch, CAPACITY_SCALE, Caches, Cpu, HERE, IdleState, LOCAL_DISTANCE, MAX_NODES, Machine};
pub use render::render_topology;
