//! Reads a machine from a sysfs tree: that of this machine, or a copy of another one's.
//!
//! It uses `devices/system/cpu` (`online`, and for each CPU `topology`, `cache`, `cpuidle`,
//! `cpu_capacity`) and `devices/system/node` (`online`, `cpulist`, `distance`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::cpuset::{CpuSet, MAX_CPUS};
use crate::error::MachineError;
use crate::files;
use crate::machine::{Arch, IdleState, Machine, Place};
use crate::online::{Online, parse_capacity, parse_distances};
use crate::toml_read::{MAX_CACHE_BYTES, MAX_IDLE_NS, parse_bytes};

type Result<T> = std::result::Result<T, MachineError>;

/// Reads the tree whose root is what is mounted on `/sys`.
pub(crate) fn read(root: &Path) -> Result<Machine> {
    let tree = Tree { cpu: root.join("devices/system/cpu"), node: root.join("devices/system/node") };
    let online = tree.list(&tree.cpu.join("online"))?;
    if online.is_empty() {
        return Err(invalid(&tree.cpu.join("online"), "no CPU is online"));
    }
    let nodes = tree.nodes()?;
    let mut found = Online::default();
    let mut llc_sizes = Vec::new();
    for cpu in online.iter() {
        let (place, llc_bytes) = tree.place(cpu, &nodes)?;
        llc_sizes.push(llc_bytes);
        found.places.insert(cpu, place);
        let file = tree.dir(cpu).join("cpu_capacity");
        if let Some(text) = optional(&file)? {
            let capacity = parse_capacity(&text).map_err(|what| invalid(&file, what))?;
            found.capacities.insert(cpu, capacity);
        }
    }
    tree.distances(&nodes, &mut found)?;
    let mut machine = found.into_machine("sysfs");
    let first = online.first().unwrap_or(0);
    tree.sizes(first, &llc_sizes, &mut machine)?;
    if let Some(states) = tree.idle_states(first)? {
        machine.idle_states = states;
    }
    machine.arch = tree.arch(first);
    if machine.description.is_empty() {
        machine.description = format!("{} CPUs of {}", machine.nr_cpus(), root.display());
    }
    machine.validate(&root.display().to_string())?;
    Ok(machine)
}

fn invalid(path: &Path, what: impl Into<String>) -> MachineError {
    MachineError::invalid(path.display().to_string(), what)
}

fn read_text(path: &Path) -> Result<String> {
    files::read_text(path, files::SYSFS_KIB)
}

/// The text of a file, or nothing if there is no such file.
fn optional(path: &Path) -> Result<Option<String>> {
    match path.exists() {
        true => read_text(path).map(Some),
        false => Ok(None),
    }
}

/// A cache directory (`cache/index*`) of a CPU.
struct Cache {
    level: u32,
    bytes: Option<u64>,
    line_bytes: Option<u64>,
    shared: CpuSet,
}

struct Tree {
    cpu: PathBuf,
    node: PathBuf,
}

impl Tree {
    fn dir(&self, cpu: usize) -> PathBuf {
        self.cpu.join(format!("cpu{cpu}"))
    }

    fn list(&self, path: &Path) -> Result<CpuSet> {
        CpuSet::parse_list(&read_text(path)?).map_err(|what| invalid(path, what))
    }

    /// The first of several files (old and new name) that there is, as a list that must hold
    /// the CPU itself.
    fn siblings(&self, cpu: usize, names: &[&str]) -> Result<Option<CpuSet>> {
        let paths = names.iter().map(|name| self.dir(cpu).join("topology").join(name));
        let Some(path) = paths.into_iter().find(|path| path.exists()) else {
            return Ok(None);
        };
        let set = self.list(&path)?;
        match set.contains(cpu) {
            true => Ok(Some(set)),
            false => Err(invalid(&path, format!("CPU {cpu} is not in its own list `{set}`"))),
        }
    }

    /// The nodes with their CPUs; none on a kernel without NUMA.
    fn nodes(&self) -> Result<Vec<(usize, CpuSet)>> {
        let online = self.node.join("online");
        if !online.exists() {
            return Ok(Vec::new());
        }
        let numbers = self.list(&online)?;
        let cpus = |node| Ok((node, self.list(&self.node.join(format!("node{node}/cpulist")))?));
        numbers.iter().map(cpus).collect()
    }

    fn place(&self, cpu: usize, nodes: &[(usize, CpuSet)]) -> Result<(Place, Option<u64>)> {
        let core = self.siblings(cpu, &["core_cpus_list", "thread_siblings_list"])?;
        let core = core.ok_or_else(|| {
            invalid(&self.dir(cpu).join("topology"), "core_cpus_list and thread_siblings_list are missing")
        })?;
        let package = self.siblings(cpu, &["package_cpus_list", "core_siblings_list"])?;
        let package = package.unwrap_or(core);
        let local = nodes.iter().find(|(_, cpus)| cpus.contains(cpu));
        let (node, node_cpus) = match local {
            Some((node, cpus)) => (*node, *cpus),
            None if nodes.is_empty() => (0, CpuSet::first_n(MAX_CPUS)),
            None => {
                return Err(invalid(&self.node, format!("CPU {cpu} is in no node's cpulist")));
            }
        };
        let last_level = self.caches(cpu)?.into_iter().max_by_key(|cache| cache.level);
        let bytes = last_level.as_ref().and_then(|cache| cache.bytes);
        // Where firmware says nothing of caches, the package counts as the LLC, as for the
        // kernel. A cache that reaches over nodes or packages is cut at them (sub-NUMA clusters).
        let llc = last_level.map_or(package, |cache| cache.shared);
        let llc = llc.union(&core).intersect(&package).intersect(&node_cpus).union(&CpuSet::single(cpu));
        let cluster = self.siblings(cpu, &["cluster_cpus_list"])?;
        let cluster = cluster.filter(|set| *set != core && set.is_subset(&llc) && *set != llc);
        let label = |set: &CpuSet| set.first().unwrap_or(cpu);
        let place = Place {
            core: label(&core),
            cluster: cluster.as_ref().map(label),
            llc: label(&llc),
            package: label(&package),
            node,
        };
        Ok((place, bytes))
    }

    /// The data and unified caches of a CPU.
    fn caches(&self, cpu: usize) -> Result<Vec<Cache>> {
        let mut caches = Vec::new();
        // The kernel numbers them from 0 without gaps; no CPU has as many as 16.
        for index in 0..16 {
            let dir = self.dir(cpu).join(format!("cache/index{index}"));
            if !dir.exists() {
                break;
            }
            if optional(&dir.join("type"))?.is_some_and(|kind| kind.trim() == "Instruction") {
                continue;
            }
            let level = read_text(&dir.join("level"))?;
            let level = level.trim().parse().map_err(|_| {
                invalid(&dir.join("level"), format!("`{}` is not a cache level", level.trim()))
            })?;
            let size = |name: &str| {
                let path = dir.join(name);
                let Some(text) = optional(&path)? else {
                    return Ok(None);
                };
                let bytes = parse_bytes(&text).filter(|bytes| (1..=MAX_CACHE_BYTES).contains(bytes));
                let what = || format!("`{}` is not a size like 32K", text.trim());
                bytes.map(Some).ok_or_else(|| invalid(&path, what()))
            };
            let (bytes, line_bytes) = (size("size")?, size("coherency_line_size")?);
            let shared = self.list(&dir.join("shared_cpu_list"))?;
            caches.push(Cache { level, bytes, line_bytes, shared });
        }
        Ok(caches)
    }

    /// Puts the sizes of the first CPU's caches and of all LLCs into the machine.
    fn sizes(&self, cpu: usize, llc_sizes: &[Option<u64>], machine: &mut Machine) -> Result<()> {
        let caches = self.caches(cpu)?;
        let of_level = |level| caches.iter().find(|cache| cache.level == level);
        let bytes = |level| of_level(level).and_then(|cache| cache.bytes);
        machine.caches.l1d_bytes = bytes(1).unwrap_or(machine.caches.l1d_bytes);
        machine.caches.l2_bytes = bytes(2).unwrap_or(machine.caches.l2_bytes);
        machine.caches.llc_bytes = llc_sizes[0].unwrap_or(machine.caches.llc_bytes);
        let line = caches.iter().find_map(|cache| cache.line_bytes);
        machine.caches.line_bytes = line.unwrap_or(machine.caches.line_bytes);
        machine.llc_bytes.fill(machine.caches.llc_bytes);
        for (cpu, size) in machine.cpus.iter().zip(llc_sizes) {
            if let Some(bytes) = size {
                machine.llc_bytes[cpu.llc] = *bytes;
            }
        }
        Ok(())
    }

    fn distances(&self, nodes: &[(usize, CpuSet)], found: &mut Online) -> Result<()> {
        for (from, _) in nodes {
            let path = self.node.join(format!("node{from}/distance"));
            let row = parse_distances(&read_text(&path)?).map_err(|what| invalid(&path, what))?;
            if row.len() != nodes.len() {
                let what = format!("{} distances for {} nodes", row.len(), nodes.len());
                return Err(invalid(&path, what));
            }
            for ((to, _), distance) in nodes.iter().zip(row) {
                found.distances.insert((*from, *to), distance);
            }
        }
        Ok(())
    }

    /// The idle states of a CPU; nothing if it has no cpuidle driver.
    fn idle_states(&self, cpu: usize) -> Result<Option<Vec<IdleState>>> {
        let mut states = Vec::new();
        // The kernel has at most ten (CPUIDLE_STATE_MAX).
        for index in 0..10 {
            let dir = self.dir(cpu).join(format!("cpuidle/state{index}"));
            if !dir.exists() {
                break;
            }
            let name = read_text(&dir.join("name"))?.trim().to_owned();
            let nanoseconds = |file: &str| {
                let path = dir.join(file);
                let text = read_text(&path)?;
                let time = text.trim().parse::<u64>().ok().and_then(|us| us.checked_mul(1000));
                let what = || format!("`{}` is not a time of up to 1000000 us", text.trim());
                time.filter(|&ns| ns <= MAX_IDLE_NS).ok_or_else(|| invalid(&path, what()))
            };
            let description = optional(&dir.join("desc"))?.unwrap_or_default();
            states.push(IdleState {
                exit_ns: nanoseconds("latency")?,
                residency_ns: nanoseconds("residency")?,
                polling: ["POLL", "snooze"].contains(&name.as_str()) || description.contains("MWAIT"),
                source: "sysfs cpuidle: what the driver believes, an upper bound".to_owned(),
                name,
            });
        }
        Ok((!states.is_empty()).then_some(states))
    }

    /// Arm shows its identification registers, POWER its PURR register; x86 neither.
    fn arch(&self, cpu: usize) -> Arch {
        let has = |file: &str| fs::exists(self.dir(cpu).join(file)).unwrap_or(false);
        match () {
            _ if has("regs/identification/midr_el1") => Arch::Arm64,
            _ if has("purr") => Arch::Power,
            _ => Arch::X86,
        }
    }
}
