//! Reads a machine from a sysfs tree: that of this machine, or a copy of another one's.
//!
//! It uses `devices/system/cpu` (`online`, and for each CPU `topology`, `cache`, `cpuidle`,
//! `cpu_capacity`, `cpufreq`), `devices/system/node` (`online`, `cpulist`, `distance`), and
//! `devices/cpu_core` and `devices/cpu_atom`. Older kernels have masks instead of lists, and no `online`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::capacity::{Core, Speed};
use crate::cpuset::{CpuSet, MAX_CPUS};
use crate::error::MachineError;
use crate::files;
use crate::machine::{Arch, IdleState, Machine, Place, halting};
use crate::online::{CacheSizes, Online, parse_capacity, parse_distances};
use crate::toml_read::{MAX_CACHE_BYTES, MAX_IDLE_NS, parse_bytes};

type Result<T> = std::result::Result<T, MachineError>;

/// Highest maximum frequency that is believed, in kHz.
const MAX_KHZ: u64 = 100_000_000;

/// Reads the tree whose root is what is mounted on `/sys`. Idle CPUs of which it says nothing are taken to halt if `halts`.
pub(crate) fn read(root: &Path, halts: bool) -> Result<Machine> {
    let tree = Tree {
        cpu: root.join("devices/system/cpu"),
        node: root.join("devices/system/node"),
        devices: root.join("devices"),
    };
    let online = tree.online()?;
    let nodes = tree.nodes()?;
    let intel_cores = tree.intel_cores()?;
    let mut found = Online::default();
    let mut llc_sizes = Vec::new();
    let (mut without_node, mut without_caches) = (CpuSet::new(), CpuSet::new());
    for cpu in online.iter() {
        let caches = tree.caches(cpu)?;
        let last_level = caches.iter().max_by_key(|cache| cache.level);
        if last_level.is_none() {
            without_caches.insert(cpu);
        }
        if !nodes.is_empty() && node_of(&nodes, cpu).is_none() {
            without_node.insert(cpu);
        }
        llc_sizes.push(last_level.and_then(|cache| cache.bytes));
        found.places.insert(cpu, tree.place(cpu, last_level, &nodes)?);
        let file = tree.dir(cpu).join("cpu_capacity");
        if let Some(text) = optional(&file)? {
            let capacity = parse_capacity(&text).map_err(|what| invalid(&file, what))?;
            found.capacities.insert(cpu, capacity);
        }
        let core = intel_cores.get(&cpu).copied();
        found.speeds.insert(cpu, Speed { core, max_khz: tree.max_khz(cpu)? });
    }
    if !without_node.is_empty() {
        let what =
            format!("CPUs {without_node} are in no node's cpulist: each is put into that of its package");
        found.assumptions.push(what);
    }
    if without_caches == online {
        let what = "no caches are described: the CPUs of a package are taken to share one";
        found.assumptions.push(what.to_owned());
    }
    tree.distances(&nodes, &mut found)?;
    let mut machine = found.into_machine("sysfs");
    let first = online.first().unwrap_or(0);
    tree.sizes(first, &llc_sizes, &mut machine)?;
    match tree.idle_states(first, &mut machine.assumptions)? {
        Some(states) => machine.idle_states = states,
        None => {
            if halts {
                machine.idle_states = vec![halting()];
            }
            let names: Vec<_> = machine.idle_states.iter().map(|state| state.name.as_str()).collect();
            let what = format!("no idle states are described: {} are assumed", names.join(" and "));
            machine.assumptions.push(what);
        }
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

/// The text of a file; some archivers end a copy with NUL bytes.
fn read_text(path: &Path) -> Result<String> {
    let text = files::read_text(path, files::SYSFS_KIB)?;
    Ok(text.trim_end_matches(['\0', ' ', '\n']).to_owned())
}

/// The CPUs that one of two files lists: the first one as a list, the second one as a mask.
fn cpus(dir: &Path, list: &str, mask: &str) -> Result<Option<CpuSet>> {
    type Parse = fn(&str) -> std::result::Result<CpuSet, String>;
    for (name, parse) in [(list, CpuSet::parse_list as Parse), (mask, CpuSet::parse_mask)] {
        let path = dir.join(name);
        if let Some(text) = optional(&path)? {
            return parse(&text).map(Some).map_err(|what| invalid(&path, what));
        }
    }
    Ok(None)
}

/// The numbers of the directories with this name before a number (`cpu7`).
fn numbered(dir: &Path, name: &str) -> Vec<usize> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_prefix(name)?.parse().ok();
    let mut numbers: Vec<usize> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

fn node_of(nodes: &[(usize, CpuSet)], cpu: usize) -> Option<usize> {
    nodes.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|(node, _)| *node)
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
    devices: PathBuf,
}

impl Tree {
    fn dir(&self, cpu: usize) -> PathBuf {
        self.cpu.join(format!("cpu{cpu}"))
    }

    /// The CPUs that are online.
    fn online(&self) -> Result<CpuSet> {
        let path = self.cpu.join("online");
        let listed = if self.cpu.is_dir() { optional(&path)? } else { Some(read_text(&path)?) };
        let online = match listed {
            Some(text) => CpuSet::parse_list(&text).map_err(|what| invalid(&path, what))?,
            None => {
                let mut online = CpuSet::new();
                for cpu in numbered(&self.cpu, "cpu") {
                    let dir = self.dir(cpu);
                    let is_off = optional(&dir.join("online"))?.is_some_and(|text| text.trim() == "0");
                    if dir.join("topology").exists() && !is_off {
                        if cpu >= MAX_CPUS {
                            return Err(invalid(&dir, format!("allowed are CPUs 0 to {}", MAX_CPUS - 1)));
                        }
                        online.insert(cpu);
                    }
                }
                online
            }
        };
        match online.is_empty() {
            true => Err(invalid(&self.cpu, "no CPU is online, or none has a topology")),
            false => Ok(online),
        }
    }

    /// The CPUs of the first of several topology files (old and new name); the CPU itself has to be one.
    fn siblings(&self, cpu: usize, names: &[&str]) -> Result<Option<CpuSet>> {
        let dir = self.dir(cpu).join("topology");
        for name in names {
            let Some(set) = cpus(&dir, &format!("{name}_list"), name)? else { continue };
            if !set.contains(cpu) {
                return Err(invalid(&dir.join(name), format!("CPU {cpu} is not in its own list `{set}`")));
            }
            return Ok(Some(set));
        }
        Ok(None)
    }

    /// The nodes with their CPUs; none on a kernel without NUMA.
    fn nodes(&self) -> Result<Vec<(usize, CpuSet)>> {
        let path = self.node.join("online");
        let numbers = match optional(&path)? {
            Some(text) => CpuSet::parse_list(&text).map_err(|what| invalid(&path, what))?.iter().collect(),
            None => numbered(&self.node, "node"),
        };
        let with_cpus = |node| {
            let dir = self.node.join(format!("node{node}"));
            Ok((node, cpus(&dir, "cpulist", "cpumap")?.unwrap_or_default()))
        };
        numbers.into_iter().map(with_cpus).collect()
    }

    /// The kinds of cores of a hybrid Intel processor.
    fn intel_cores(&self) -> Result<BTreeMap<usize, Core>> {
        let mut cores = BTreeMap::new();
        let kinds = [
            ("cpu_core", Core::IntelPerformance),
            ("cpu_atom", Core::IntelEfficient),
            ("cpu_lowpower", Core::IntelLowPower),
        ];
        for (name, core) in kinds {
            let path = self.devices.join(name).join("cpus");
            let set = CpuSet::parse_list(&optional(&path)?.unwrap_or_default());
            cores.extend(set.map_err(|what| invalid(&path, what))?.iter().map(|cpu| (cpu, core)));
        }
        Ok(cores)
    }

    /// Maximum frequency of a CPU in kHz.
    fn max_khz(&self, cpu: usize) -> Result<Option<u64>> {
        let path = self.dir(cpu).join("cpufreq/cpuinfo_max_freq");
        let Some(text) = optional(&path)? else { return Ok(None) };
        let khz = text.trim().parse().ok().filter(|khz| (1..=MAX_KHZ).contains(khz));
        let what = || format!("`{}` is not a frequency of up to {MAX_KHZ} kHz", text.trim());
        khz.map(Some).ok_or_else(|| invalid(&path, what()))
    }

    fn place(&self, cpu: usize, last_level: Option<&Cache>, nodes: &[(usize, CpuSet)]) -> Result<Place> {
        let core = self.siblings(cpu, &["core_cpus", "thread_siblings"])?.unwrap_or(CpuSet::single(cpu));
        let package = self.siblings(cpu, &["package_cpus", "core_siblings"])?.unwrap_or(core);
        let node = node_of(nodes, cpu).or_else(|| package.iter().find_map(|cpu| node_of(nodes, cpu)));
        let node = node.or(nodes.iter().map(|(node, _)| *node).min()).unwrap_or(0);
        let node_cpus = match nodes.iter().find(|(number, _)| *number == node) {
            // a CPU without a node is with those of its package that have one
            Some((_, cpus)) if cpus.contains(cpu) => *cpus,
            _ => CpuSet::first_n(MAX_CPUS),
        };
        // Where firmware says nothing of caches, the package counts as the LLC, as for the
        // kernel. A cache that reaches over nodes or packages is cut at them (sub-NUMA clusters).
        let llc = last_level.map_or(package, |cache| cache.shared);
        let llc = llc.union(&core).intersect(&package).intersect(&node_cpus).union(&CpuSet::single(cpu));
        let cluster = self.siblings(cpu, &["cluster_cpus"])?;
        let cluster = cluster.filter(|set| *set != core && set.is_subset(&llc) && *set != llc);
        let label = |set: &CpuSet| set.first().unwrap_or(cpu);
        Ok(Place {
            core: label(&core),
            cluster: cluster.as_ref().map(label),
            llc: label(&llc),
            package: label(&package),
            node,
        })
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
            let shared = cpus(&dir, "shared_cpu_list", "shared_cpu_map")?.unwrap_or(CpuSet::single(cpu));
            caches.push(Cache { level, bytes, line_bytes, shared });
        }
        Ok(caches)
    }

    /// Puts the sizes of the first CPU's caches and of all LLCs into the machine.
    fn sizes(&self, cpu: usize, llc_sizes: &[Option<u64>], machine: &mut Machine) -> Result<()> {
        let caches = self.caches(cpu)?;
        let of_level = |level| caches.iter().find(|cache| cache.level == level);
        let bytes = |level| of_level(level).and_then(|cache| cache.bytes);
        let known = CacheSizes {
            l1d: bytes(1),
            l2: bytes(2),
            llc: llc_sizes[0],
            line: caches.iter().find_map(|cache| cache.line_bytes),
        };
        known.put_into(machine);
        for (cpu, size) in machine.cpus.iter().zip(llc_sizes) {
            if let Some(bytes) = size {
                machine.llc_bytes[cpu.llc] = *bytes;
            }
        }
        Ok(())
    }

    fn distances(&self, nodes: &[(usize, CpuSet)], found: &mut Online) -> Result<()> {
        if nodes.len() < 2 {
            return Ok(());
        }
        for (from, _) in nodes {
            let path = self.node.join(format!("node{from}/distance"));
            let Some(text) = optional(&path)? else { return Ok(()) };
            let row = parse_distances(&text).map_err(|what| invalid(&path, what))?;
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
    fn idle_states(&self, cpu: usize, assumptions: &mut Vec<String>) -> Result<Option<Vec<IdleState>>> {
        let (mut states, mut without_residency) = (Vec::new(), Vec::new());
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
            let exit_ns = nanoseconds("latency")?;
            // kernels before 3.19 do not show it
            let has_residency = dir.join("residency").exists();
            if !has_residency {
                without_residency.push(name.clone());
            }
            states.push(IdleState {
                exit_ns,
                residency_ns: if has_residency { nanoseconds("residency")? } else { exit_ns },
                polling: ["POLL", "snooze"].contains(&name.as_str()) || description.contains("MWAIT"),
                promoted: false,
                source: "sysfs cpuidle: what the driver believes, an upper bound".to_owned(),
                name,
            });
        }
        if !without_residency.is_empty() {
            let names = without_residency.join(", ");
            let what =
                format!("the residencies of idle states {names} are not given: exit latencies are assumed");
            assumptions.push(what);
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
