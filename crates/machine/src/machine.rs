//! The machine: what every reader produces and everything else uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use coreward_input::many;
use serde::{Deserialize, Serialize};

use crate::costs::{CostField, Costs};
use crate::cpuset::{CpuSet, MAX_CPUS};
use crate::error::MachineError;
use crate::kernel::{self, Preemption};
use crate::shape::{Numbering, Shape};
use crate::{files, hwloc, json_read, presets, sysfs, toml_read};

/// The largest number of NUMA nodes with CPUs.
pub const MAX_NODES: usize = 64;

/// The largest number of different NUMA distances, the local one included. Each makes a level of
/// domains for every CPU.
const MAX_DISTANCES: usize = 16;

/// Full capacity: that of the biggest CPU at its highest frequency (`SCHED_CAPACITY_SCALE`).
pub const CAPACITY_SCALE: u32 = 1024;

/// Largest cache line, in bytes. Those of today's machines have 32 to 256.
const MAX_LINE_BYTES: u64 = 4096;

/// Distance of a node to itself, by the ACPI SLIT.
pub const LOCAL_DISTANCE: u32 = 10;

/// Distance of another node where nothing else is said (Linux `REMOTE_DISTANCE`).
pub(crate) const REMOTE_DISTANCE: u32 = 20;

/// The largest distance that the kernel takes for a connection.
pub(crate) const MAX_DISTANCE: u32 = 254;

/// Linux's default for `node_reclaim_distance` (`RECLAIM_DISTANCE`).
pub(crate) const RECLAIM_DISTANCE: u32 = 30;

/// How this machine's ticks a second are known.
const HZ_SOURCE: &str = "the running kernel: resolution of CLOCK_MONOTONIC_COARSE";

/// Processor family; it decides the kernel's table of topology levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// SMT, CLS, MC and PKG; without PKG if a package holds several nodes.
    #[default]
    X86,
    /// SMT, CLS, MC and PKG, always.
    Arm64,
    /// SMT, CACHE, MC and PKG.
    Power,
}

impl Arch {
    pub(crate) const ALL: [(&'static str, Arch); 3] =
        [("x86", Arch::X86), ("arm64", Arch::Arm64), ("power", Arch::Power)];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL[self as usize].0
    }
}

/// Where one CPU (hardware thread) sits. Ids are dense and machine-wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Core; its CPUs are SMT siblings.
    pub core: usize,
    /// Cores that share a cache (or its tags) below the last level, if there is such a cluster.
    pub cluster: Option<usize>,
    /// Last-level cache.
    pub llc: usize,
    /// Package (socket).
    pub package: usize,
    /// NUMA node.
    pub node: usize,
    /// Capacity, 1 to [`CAPACITY_SCALE`], as `cpu_capacity` in sysfs.
    pub capacity: u32,
}

/// Sizes of the caches, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// First-level data cache of a core.
    pub l1d_bytes: u64,
    /// Second-level cache of a core, or of a cluster if the machine has clusters.
    pub l2_bytes: u64,
    /// Last-level cache; [`Machine::llc_bytes`] has the size of each one.
    pub llc_bytes: u64,
    /// Cache line.
    pub line_bytes: u64,
}

impl Default for Caches {
    /// A server core without a description: 32 KiB, 1 MiB, 32 MiB, lines of 64 bytes (as EPYC 9004).
    fn default() -> Self {
        Self { l1d_bytes: 32 << 10, l2_bytes: 1 << 20, llc_bytes: 32 << 20, line_bytes: 64 }
    }
}

/// An idle state of a CPU, shallowest first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    /// Name, as in `cpuidle/state*/name`.
    pub name: String,
    /// Time from the wakeup to the first instruction, in ns.
    pub exit_ns: u64,
    /// Shortest idle time for which the governor picks this state (target residency), in ns; of a promoted state, the idle
    /// time after which it begins.
    pub residency_ns: u64,
    /// Whether a remote write of the need-resched flag ends it without an interrupt (POLL, MWAIT).
    pub polling: bool,
    /// Whether no governor picks it: the hardware, or the host of a virtual machine, moves an idle CPU on to it from the state
    /// before.
    #[serde(default)]
    pub promoted: bool,
    /// Where the figures come from; empty where a user's description gives none.
    pub source: String,
}

/// A machine: its CPUs, caches, NUMA distances, idle states and costs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name of the preset, file or shorthand.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Processor family.
    pub arch: Arch,
    /// The CPUs; the index is the CPU number.
    pub cpus: Vec<Cpu>,
    /// Number of NUMA nodes, each with at least one CPU.
    pub nodes: usize,
    /// NUMA distances by the ACPI SLIT: square, symmetric, 10 on the diagonal.
    pub distances: Vec<Vec<u32>>,
    /// Distance beyond which the kernel does not balance on fork and exec
    /// (`node_reclaim_distance`): 30, and 32 on AMD since family 17h.
    pub reclaim_distance: u32,
    /// Cache sizes.
    pub caches: Caches,
    /// Size of each last-level cache in bytes; the index is the LLC.
    pub llc_bytes: Vec<u64>,
    /// Idle states, shallowest first; may be empty (idle CPUs then wake at no cost).
    pub idle_states: Vec<IdleState>,
    /// Costs.
    pub costs: Costs,
    /// Bounds of costs that have some of their own; [`Machine::cost_bounds`] has those of all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_bounds: BTreeMap<String, (u64, u64)>,
    /// Scheduler ticks a second (`CONFIG_HZ`).
    pub hz: u32,
    /// Release of the kernel that runs on it (`uname -r`), if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// How that kernel preempts, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption: Option<Preemption>,
    /// The scheduler's features as that kernel lists them (`NO_TTWU_QUEUE`), if that is known; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// Which tasks that kernel packs on busy CPUs (`sched_vcpu_pack=` on the command line of some guests' kernels), if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcpu_pack: Option<u8>,
    /// Where figures come from, by their path in a machine file (`costs.tick_ns`).
    pub sources: BTreeMap<String, String>,
    /// What had to be assumed because the description does not say it, one sentence each.
    #[serde(skip)]
    pub assumptions: Vec<String>,
}

/// Where a reader found a CPU. The labels only have to be equal for CPUs that share the thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) core: usize,
    pub(crate) cluster: Option<usize>,
    pub(crate) llc: usize,
    pub(crate) package: usize,
    pub(crate) node: usize,
}

/// Gives equal labels equal ids, dense in the order in which they are first seen.
#[derive(Default)]
struct Ids(BTreeMap<usize, usize>);

impl Ids {
    fn id(&mut self, label: usize) -> usize {
        let next = self.0.len();
        *self.0.entry(label).or_insert(next)
    }
}

/// The specification of the machine that this runs on.
pub const HERE: &str = "sysfs";

/// What a specification names that is not of this program.
enum Source<'a> {
    Sysfs(&'a Path),
    Hwloc(&'a Path),
    Toml(&'a Path),
    Json(&'a Path),
}

impl<'a> Source<'a> {
    fn of(spec: &'a str) -> Option<Self> {
        let after = |prefix| spec.strip_prefix(prefix).filter(|path| !path.is_empty()).map(Path::new);
        let sysfs = after("sysfs:").or_else(|| (spec == HERE).then_some(Path::new("/sys")));
        let file = |ending| spec.ends_with(ending).then_some(Path::new(spec));
        sysfs
            .map(Source::Sysfs)
            .or_else(|| after("hwloc:").map(Source::Hwloc))
            .or_else(|| file(".toml").map(Source::Toml))
            .or_else(|| file(".json").map(Source::Json))
    }
}

impl Machine {
    /// Loads a machine: the name of a preset, a path that ends in `.toml` or `.json` (what
    /// `coreward topology --json` prints), `sysfs` (this machine), `sysfs:DIR` (DIR is what is mounted on `/sys`), `hwloc:FILE` (the XML that
    /// `lstopo` writes) or a shorthand like `2n4l8c2t`.
    ///
    /// # Errors
    /// [`MachineError`] names the source, what is wrong in it and what is allowed.
    pub fn load(spec: &str) -> Result<Self, MachineError> {
        if let Some(machine) = presets::load(spec) {
            return machine;
        }
        match Source::of(spec) {
            Some(Source::Sysfs(dir)) => {
                let mut machine = sysfs::read(dir, spec == HERE && kernel::halts())?;
                if spec == HERE {
                    machine.kernel = kernel::release();
                    machine.preemption = machine.kernel.as_deref().and_then(kernel::preemption);
                    machine.features = kernel::features();
                    machine.vcpu_pack = kernel::vcpu_pack();
                    if let Some(hz) = kernel::hz() {
                        machine.hz = hz;
                        machine.sources.insert("hz".to_owned(), HZ_SOURCE.to_owned());
                    }
                }
                return Ok(machine);
            }
            Some(Source::Hwloc(file)) => {
                let text = files::read_text(file, files::HWLOC_KIB)?;
                return Self::from_hwloc_str(&file.display().to_string(), &text);
            }
            Some(Source::Toml(file)) => {
                return Self::from_toml_str(spec, &files::read_text(file, files::MACHINE_KIB)?);
            }
            Some(Source::Json(file)) => {
                return Self::from_json_str(spec, &files::read_text(file, files::JSON_KIB)?);
            }
            None => {}
        }
        if spec.starts_with(|c: char| c.is_ascii_digit()) {
            return Self::from_shorthand(spec);
        }
        let presets: Vec<_> = presets::names().collect();
        let hint = coreward_input::did_you_mean(spec, presets.iter().copied());
        Err(MachineError::Unknown { spec: spec.to_owned(), hint, presets: presets.join(", ") })
    }

    /// The file or directory that [`Machine::load`] reads for a specification, if it reads one.
    pub fn path(spec: &str) -> Option<&Path> {
        let own = presets::names().any(|name| name == spec);
        Source::of(spec).filter(|_| !own).map(|source| match source {
            Source::Sysfs(path) | Source::Hwloc(path) | Source::Toml(path) | Source::Json(path) => path,
        })
    }

    /// The presets: name and one-line description, in alphabetical order.
    pub fn presets() -> Vec<(String, String)> {
        presets::list()
    }

    /// Reads a machine file. `path` is used in messages; its stem is the name unless the
    /// file gives one.
    ///
    /// # Errors
    /// [`MachineError::Invalid`] with the line and what is wrong.
    pub fn from_toml_str(path: &str, text: &str) -> Result<Self, MachineError> {
        toml_read::read(path, text)
    }

    /// Reads a machine as its `Serialize` writes it. `path` is used in messages.
    ///
    /// # Errors
    /// [`MachineError::Invalid`] with what is wrong, and the line if the text has not this form.
    pub fn from_json_str(path: &str, text: &str) -> Result<Self, MachineError> {
        json_read::read(path, text)
    }

    /// Reads a topology that `lstopo --of xml` wrote (hwloc 2 or 3). `path` is used in messages.
    ///
    /// # Errors
    /// [`MachineError::Invalid`] with the line and what is wrong.
    pub fn from_hwloc_str(path: &str, text: &str) -> Result<Self, MachineError> {
        hwloc::read(path, text)
    }

    /// Makes a regular machine from a shorthand: `2n4l8c2t` has 2 nodes (each a package) of
    /// 4 LLCs of 8 cores of 2 threads. `n`, `l` and `t` may be left out. First threads are
    /// numbered before second ones, as x86 servers do.
    ///
    /// # Errors
    /// [`MachineError::Invalid`] says which part is wrong.
    pub fn from_shorthand(text: &str) -> Result<Self, MachineError> {
        let place = format!("shorthand `{text}`");
        let shape = Shape::parse(text).map_err(|what| MachineError::invalid(&place, what))?;
        let places = shape.places(shape.nodes, None, Numbering::CoresFirst);
        let mut machine = Self::from_places(text, &places);
        let counts =
            [(shape.nodes, "node"), (shape.llcs, "LLC"), (shape.cores, "core"), (shape.threads, "thread")];
        machine.description = counts.map(|(count, what)| many(count, what)).join(" of ");
        machine.validate(&place)?;
        Ok(machine)
    }

    /// A machine with the given places and defaults for everything else.
    pub(crate) fn from_places(name: &str, places: &[Place]) -> Self {
        let (mut cores, mut clusters, mut llcs, mut packages) =
            (Ids::default(), Ids::default(), Ids::default(), Ids::default());
        let cpu = |place: &Place| Cpu {
            core: cores.id(place.core),
            cluster: place.cluster.map(|cluster| clusters.id(cluster)),
            llc: llcs.id(place.llc),
            package: packages.id(place.package),
            node: place.node,
            capacity: CAPACITY_SCALE,
        };
        let cpus: Vec<_> = places.iter().map(cpu).collect();
        let nodes = cpus.iter().map(|cpu| cpu.node + 1).max().unwrap_or(0);
        let caches = Caches::default();
        Self {
            name: name.to_owned(),
            description: String::new(),
            arch: Arch::default(),
            nodes,
            distances: flat_distances(nodes),
            reclaim_distance: RECLAIM_DISTANCE,
            llc_bytes: vec![caches.llc_bytes; llcs.0.len()],
            caches,
            idle_states: default_idle_states(),
            costs: Costs::default(),
            own_bounds: BTreeMap::new(),
            hz: 250,
            kernel: None,
            preemption: None,
            features: Vec::new(),
            vcpu_pack: None,
            sources: BTreeMap::new(),
            assumptions: Vec::new(),
            cpus,
        }
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Number of packages.
    pub fn nr_packages(&self) -> usize {
        self.cpus.iter().map(|cpu| cpu.package + 1).max().unwrap_or(0)
    }

    /// Number of last-level caches.
    pub fn nr_llcs(&self) -> usize {
        self.llc_bytes.len()
    }

    /// All CPUs.
    pub fn all_cpus(&self) -> CpuSet {
        CpuSet::first_n(self.cpus.len())
    }

    /// The CPUs whose place satisfies a condition.
    pub fn cpus_where(&self, condition: impl Fn(&Cpu) -> bool) -> CpuSet {
        let cpus = self.cpus.iter().enumerate();
        cpus.filter(|(_, cpu)| condition(cpu)).map(|(number, _)| number).collect()
    }

    /// The cost that a modified line has on its way from one CPU to another: between the siblings of a core, in a last-level
    /// cache, in a node, or further. `None` if both are the same CPU.
    pub fn transfer_cost(&self, from: usize, to: usize) -> Option<&'static str> {
        let (a, b) = (&self.cpus[from], &self.cpus[to]);
        (from != to).then_some(match () {
            () if a.core == b.core => "transfer_smt_ns",
            () if a.llc == b.llc => "transfer_llc_ns",
            () if a.package == b.package && a.node == b.node => "transfer_package_ns",
            () => "transfer_remote_ns",
        })
    }

    /// The SMT siblings of a CPU, itself included. Panics if there is no such CPU, as do the
    /// other masks by CPU.
    pub fn smt_mask(&self, cpu: usize) -> CpuSet {
        let core = self.cpus[cpu].core;
        self.cpus_where(|other| other.core == core)
    }

    /// The CPUs of a CPU's cluster; its core if it is in no cluster.
    pub fn cluster_mask(&self, cpu: usize) -> CpuSet {
        match self.cpus[cpu].cluster {
            Some(cluster) => self.cpus_where(|other| other.cluster == Some(cluster)),
            None => self.smt_mask(cpu),
        }
    }

    /// The CPUs that share a CPU's last-level cache.
    pub fn llc_mask(&self, cpu: usize) -> CpuSet {
        let llc = self.cpus[cpu].llc;
        self.cpus_where(|other| other.llc == llc)
    }

    /// The CPUs of a CPU's package.
    pub fn package_mask(&self, cpu: usize) -> CpuSet {
        let package = self.cpus[cpu].package;
        self.cpus_where(|other| other.package == package)
    }

    /// The CPUs of a node.
    pub fn node_mask(&self, node: usize) -> CpuSet {
        self.cpus_where(|cpu| cpu.node == node)
    }

    /// Where a figure comes from, by its path in a machine file (`costs.tick_ns`,
    /// `caches.l2_bytes`, `shape`, `distances`, `capacity.0-3`). A cost that has its default
    /// value and no source of its own has the default's.
    pub fn source(&self, path: &str) -> Option<&str> {
        let default = || {
            let field = Costs::field(path.strip_prefix("costs.")?)?;
            (self.costs.get(field.name) == Some(field.default)).then_some(field.source)
        };
        self.sources.get(path).map(String::as_str).or_else(default)
    }

    /// The bounds of a cost: in four of five cases, it is from the first to the second, both included. A cost without bounds
    /// of its own has those of the table if it has the table's default, and otherwise bounds by what its source is:
    /// wide ones if it is assumed, narrow ones if it was published or measured.
    pub fn cost_bounds(&self, field: &CostField) -> (u64, u64) {
        let value = self.costs.get(field.name).expect("a cost of the table");
        let source = self.sources.get(&format!("costs.{}", field.name)).map(String::as_str);
        // calibration says why it did not measure a cost, and then what the default rests on
        let as_default = source.is_none_or(|source| source.contains(field.source));
        match self.own_bounds.get(field.name) {
            Some(bounds) => *bounds,
            None if value == field.default && as_default => (field.low, field.high),
            None => field.bounds_of(value, source),
        }
    }

    /// Checks everything that the readers do not check as they read.
    pub(crate) fn validate(&self, place: &str) -> Result<(), MachineError> {
        let checks = [Self::check_counts, Self::check_nesting, Self::check_distances, Self::check_line];
        let result = checks.iter().try_for_each(|check| check(self));
        result.map_err(|what| MachineError::invalid(place, what))
    }

    fn check_counts(&self) -> Result<(), String> {
        let cpus = self.cpus.len();
        if cpus == 0 || cpus > MAX_CPUS {
            return Err(format!("{cpus} CPUs, allowed are 1 to {MAX_CPUS}"));
        }
        if self.nodes > MAX_NODES {
            return Err(format!("{} NUMA nodes, allowed are 1 to {MAX_NODES}", self.nodes));
        }
        match (0..self.nodes).find(|&node| self.node_mask(node).is_empty()) {
            Some(node) => Err(format!("node {node} has no CPU; nodes are numbered from 0 without gaps")),
            None => Ok(()),
        }
    }

    /// Cores lie within clusters, clusters within LLCs, LLCs within one package and node.
    fn check_nesting(&self) -> Result<(), String> {
        type Inner = fn(&Cpu) -> Option<usize>;
        type Outer = fn(&Cpu) -> usize;
        let rules: [(&str, Inner, &str, Outer); 6] = [
            ("core", |c| Some(c.core), "cluster", |c| c.cluster.map_or(0, |id| id + 1)),
            ("core", |c| Some(c.core), "LLC", |c| c.llc),
            ("core", |c| Some(c.core), "capacity", |c| c.capacity as usize),
            ("cluster", |c| c.cluster, "LLC", |c| c.llc),
            ("LLC", |c| Some(c.llc), "package", |c| c.package),
            ("LLC", |c| Some(c.llc), "node", |c| c.node),
        ];
        for (inner_name, inner, outer_name, outer) in rules {
            let mut first = BTreeMap::new();
            for (number, cpu) in self.cpus.iter().enumerate() {
                let Some(id) = inner(cpu) else { continue };
                let (other, value) = *first.entry(id).or_insert((number, outer(cpu)));
                if value != outer(cpu) {
                    return Err(format!(
                        "CPUs {other} and {number} are of one {inner_name} but differ in {outer_name}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_distances(&self) -> Result<(), String> {
        let nodes = self.nodes;
        let rows = &self.distances;
        if rows.len() != nodes || rows.iter().any(|row| row.len() != nodes) {
            return Err(format!("distances must be {nodes} rows of {nodes} numbers, one a node"));
        }
        for (from, row) in rows.iter().enumerate() {
            for (to, &distance) in row.iter().enumerate() {
                if from == to && distance != LOCAL_DISTANCE {
                    return Err(format!("distance of node {from} to itself is {distance}, it must be 10"));
                }
                if from != to && !(LOCAL_DISTANCE + 1..=MAX_DISTANCE).contains(&distance) {
                    return Err(format!(
                        "distance of node {from} to node {to} is {distance}, allowed are 11 to 254"
                    ));
                }
                if distance != rows[to][from] {
                    return Err(format!(
                        "distances of nodes {from} and {to} are {distance} and {}, they must be equal",
                        rows[to][from]
                    ));
                }
            }
        }
        let different: BTreeSet<u32> = rows.iter().flatten().copied().collect();
        match different.len() {
            count if count > MAX_DISTANCES => {
                Err(format!("{count} different distances, allowed are up to {MAX_DISTANCES}"))
            }
            _ => Ok(()),
        }
    }

    /// Addresses are cut into lines by their lowest bits.
    fn check_line(&self) -> Result<(), String> {
        match self.caches.line_bytes {
            bytes if bytes.is_power_of_two() && bytes <= MAX_LINE_BYTES => Ok(()),
            bytes => Err(format!(
                "caches.line_bytes is {bytes}, it must be a power of two, at most {MAX_LINE_BYTES}"
            )),
        }
    }
}

/// Distances of nodes that are all equally far from each other.
pub(crate) fn flat_distances(nodes: usize) -> Vec<Vec<u32>> {
    let distance = |from, to| {
        if from == to { LOCAL_DISTANCE } else { REMOTE_DISTANCE }
    };
    (0..nodes).map(|from| (0..nodes).map(|to| distance(from, to)).collect()).collect()
}

/// The idle state of a CPU that halts: an interrupt has to wake it.
pub(crate) fn halting() -> IdleState {
    IdleState {
        name: "HLT".to_owned(),
        exit_ns: 83,
        residency_ns: 0,
        polling: false,
        promoted: false,
        source: "assumption: as long as from C1, which halts the core likewise".to_owned(),
    }
}

/// Idle states of a machine whose description gives none: those of a server without deep sleep.
fn default_idle_states() -> Vec<IdleState> {
    let measured = "lkml 035c23b4-118e-6a35-36d9-1b11e3d679f8, futex wakeups on AMD, Linux 5.14";
    vec![
        IdleState {
            name: "POLL".to_owned(),
            exit_ns: 0,
            residency_ns: 0,
            polling: true,
            promoted: false,
            source: format!("{measured}: the reference"),
        },
        IdleState {
            name: "C1".to_owned(),
            exit_ns: 83,
            residency_ns: 2_000,
            polling: true,
            promoted: false,
            source: format!("{measured}: 1154 ns against 1071 from POLL; residency of the ACPI table"),
        },
    ]
}
