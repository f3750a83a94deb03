//! Machines and their scheduling domains. (Documentation of the file format: `machines/README.md`.)

mod costs;
mod cpuset;
mod domains;
mod error;
mod files;
mod hwloc;
mod machine;
mod presets;
mod shape;
mod sysfs;
mod toml_read;
mod toml_write;

pub use costs::{CostField, Costs};
pub use cpuset::{CpuSet, MAX_CPUS};
pub use domains::{
    BUSY_FACTOR, Domain, DomainOptions, Group, KernelStyle, RelaxError, RelaxSemantics, SdFlags,
    Topology, render_domains, render_schedstat_masks,
};
pub use error::MachineError;
pub use machine::{
    Arch, CAPACITY_SCALE, Caches, Cpu, IdleState, LOCAL_DISTANCE, MAX_NODES, Machine,
};
