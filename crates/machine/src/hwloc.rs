//! Reads the topology that `lstopo --of xml` writes (hwloc 2 and 3).

use std::collections::{BTreeMap, BTreeSet};

use roxmltree::{Document, Node};

use crate::capacity::{self, Core, Speed};
use crate::cpuset::{CpuSet, MAX_CPUS};
use crate::error::MachineError;
use crate::machine::{Arch, Machine, Place};
use crate::online::{CacheSizes, Online, parse_capacity, parse_distances};
use crate::toml_read::MAX_CACHE_BYTES;
use crate::xml;

type Result<T> = std::result::Result<T, MachineError>;

/// Reads the text of an XML file.
pub(crate) fn read(path: &str, text: &str) -> Result<Machine> {
    let document = xml::parse(text).map_err(|what| MachineError::invalid(path, what))?;
    let reader = Reader { path, document: &document };
    reader.machine()
}

struct Reader<'a, 'input> {
    path: &'a str,
    document: &'a Document<'input>,
}

type Element<'a, 'input> = Node<'a, 'input>;

/// Highest frequency that is believed, in MHz.
const MAX_MHZ: u64 = 100_000;

/// The node that a CPU is in. Memory that several nodes' CPUs share (HBM, CXL) is a node of its own for
/// hwloc; that of the CPU is the one of the fewest CPUs.
fn node_of(nodes: &[(usize, CpuSet)], cpu: usize) -> Option<usize> {
    let around = nodes.iter().filter(|(_, cpus)| cpus.contains(cpu));
    around.min_by_key(|(node, cpus)| (cpus.len(), *node)).map(|(node, _)| *node)
}

fn kind<'a>(node: &Element<'a, '_>) -> &'a str {
    node.attribute("type").unwrap_or_default()
}

/// The objects around an object, innermost first.
fn enclosing<'a, 'input>(node: &Element<'a, 'input>) -> impl Iterator<Item = Element<'a, 'input>> {
    let outer = node.ancestors().skip(1);
    outer.take_while(|node| node.has_tag_name("object"))
}

/// Level of a data or unified cache object (`L3Cache`), nothing for other objects.
fn cache_level(node: &Element) -> Option<u32> {
    kind(node).strip_prefix('L')?.strip_suffix("Cache")?.parse().ok()
}

impl<'a, 'input> Reader<'a, 'input> {
    /// File and line of an element.
    fn position(&self, node: &Element) -> String {
        let line = self.document.text_pos_at(node.range().start).row;
        format!("{}:{line}", self.path)
    }

    fn error(&self, node: &Element, what: impl Into<String>) -> MachineError {
        MachineError::invalid(self.position(node), what)
    }

    fn machine(&self) -> Result<Machine> {
        let root = self.document.root_element();
        if root.tag_name().name() != "topology" {
            let what = format!("<{}> is not a hwloc topology", root.tag_name().name());
            return Err(self.error(&root, what));
        }
        // hwloc 1 writes no version; hwloc 3 writes what hwloc 2 does, and some more
        let version = root.attribute("version").unwrap_or("1");
        if !["2.", "3."].iter().any(|known| version.starts_with(known)) {
            let what = format!(
                "this is XML of hwloc {version}, allowed are 2 and 3: convert it with lstopo of hwloc 2 (lstopo -i OLD.xml NEW.xml)"
            );
            return Err(self.error(&root, what));
        }
        let nodes = self.numa_nodes()?;
        let clusters = self.clusters();
        let mut found = Online::default();
        let mut llcs = BTreeMap::new();
        let mut without_node = CpuSet::new();
        for pu in self.objects("PU") {
            let cpu = self.number(&pu, "os_index", MAX_CPUS as u64 - 1)? as usize;
            let node = match node_of(&nodes, cpu) {
                Some(node) => node,
                None => {
                    if !nodes.is_empty() {
                        without_node.insert(cpu);
                    }
                    self.nearest_node(&pu, &nodes)
                }
            };
            let (place, llc) = self.place(&pu, node, &clusters);
            llcs.insert(cpu, llc);
            if found.places.insert(cpu, place).is_some() {
                return Err(self.error(&pu, format!("PU {cpu} appears twice")));
            }
        }
        if found.places.is_empty() {
            return Err(self.error(&root, "no object of type PU"));
        }
        if !without_node.is_empty() {
            let what =
                format!("CPUs {without_node} are in no NUMANode's cpuset: each is put into the nearest node");
            found.assumptions.push(what);
        }
        if llcs.values().all(Option::is_none) {
            let what = "no caches are described: the CPUs of a package are taken to share one";
            found.assumptions.push(what.to_owned());
        }
        self.distances(&mut found)?;
        self.speeds(&mut found)?;
        let mut machine = found.into_machine(self.path);
        self.sizes(&llcs.into_values().collect::<Vec<_>>(), &mut machine)?;
        self.describe(&mut machine);
        machine.validate(self.path)?;
        Ok(machine)
    }

    fn elements(&self, name: &'static str) -> impl Iterator<Item = Element<'a, 'input>> {
        self.document.descendants().filter(move |node| node.has_tag_name(name))
    }

    fn objects(&self, wanted: &'static str) -> impl Iterator<Item = Element<'a, 'input>> {
        self.elements("object").filter(move |node| kind(node) == wanted)
    }

    fn info(&self, name: &str) -> Option<&'a str> {
        let mut infos = self.elements("info");
        infos.find(|node| node.attribute("name") == Some(name))?.attribute("value")
    }

    fn number(&self, node: &Element, attribute: &str, max: u64) -> Result<u64> {
        let text = node.attribute(attribute);
        let text = text.ok_or_else(|| self.error(node, format!("{} has no {attribute}", kind(node))))?;
        let number = text.parse().ok().filter(|number| *number <= max);
        let what = || format!("{attribute} is `{text}`, allowed are 0 to {max}");
        number.ok_or_else(|| self.error(node, what()))
    }

    fn cpuset(&self, node: &Element) -> Result<CpuSet> {
        let text = node.attribute("cpuset").unwrap_or_default();
        CpuSet::parse_mask(text).map_err(|what| self.error(node, format!("cpuset: {what}")))
    }

    fn numa_nodes(&self) -> Result<Vec<(usize, CpuSet)>> {
        let entry = |node: Element| {
            let number = self.number(&node, "os_index", MAX_CPUS as u64 - 1)?;
            Ok((number as usize, self.cpuset(&node)?))
        };
        self.objects("NUMANode").map(entry).collect()
    }

    /// Ids of the groups that Linux calls clusters and of the L2 caches that several cores share.
    fn clusters(&self) -> BTreeSet<usize> {
        let mut cores: BTreeMap<usize, usize> = BTreeMap::new();
        for core in self.objects("Core") {
            let shared = enclosing(&core);
            for cache in shared.filter(|node| cache_level(node) == Some(2)) {
                *cores.entry(cache.id().get_usize()).or_default() += 1;
            }
        }
        let caches = cores.into_iter().filter(|(_, cores)| *cores > 1).map(|(id, _)| id);
        let groups = self.objects("Group").filter(|node| node.attribute("subtype") == Some("Cluster"));
        caches.chain(groups.map(|node| node.id().get_usize())).collect()
    }

    /// The node of the CPUs in the smallest object around a PU that has any, for a PU without memory.
    fn nearest_node(&self, pu: &Element<'a, 'input>, nodes: &[(usize, CpuSet)]) -> usize {
        let placed = nodes.iter().fold(CpuSet::new(), |all, (_, cpus)| all.union(cpus));
        let near = |around: Element| {
            let cpus = self.cpuset(&around).ok()?;
            node_of(nodes, cpus.intersect(&placed).first()?)
        };
        let lowest = nodes.iter().map(|(node, _)| *node).min();
        enclosing(pu).find_map(near).or(lowest).unwrap_or(0)
    }

    /// Where a PU of a node sits, and its last-level cache object.
    fn place(
        &self,
        pu: &Element<'a, 'input>,
        node: usize,
        clusters: &BTreeSet<usize>,
    ) -> (Place, Option<Element<'a, 'input>>) {
        let above = || enclosing(pu);
        let core = above().find(|node| kind(node) == "Core").unwrap_or(*pu);
        let package = above().find(|node| kind(node) == "Package");
        let machine = above().last().unwrap_or(*pu);
        let last_level = above().filter_map(|node| Some((cache_level(&node)?, node)));
        let llc = last_level.max_by_key(|(level, _)| *level).map(|(_, node)| node);
        let cluster = above().find(|node| clusters.contains(&node.id().get_usize()) && Some(*node) != llc);
        let id = |node: Element| node.id().get_usize();
        let place = Place {
            core: id(core),
            cluster: cluster.map(id),
            // An LLC that reaches over nodes is cut at them, as the kernel does.
            llc: id(llc.or(package).unwrap_or(machine)) * MAX_CPUS + node,
            package: id(package.unwrap_or(machine)),
            node,
        };
        (place, llc)
    }

    fn distances(&self, found: &mut Online) -> Result<()> {
        let is_latency = |node: &Element| {
            kind(node) == "NUMANode" && matches!(node.attribute("name"), None | Some("NUMALatency"))
        };
        let Some(matrix) = self.elements("distances2").find(is_latency) else {
            return Ok(());
        };
        let text = |name: &str| -> String {
            let parts = matrix.children().filter(|node| node.has_tag_name(name));
            parts.filter_map(|node| node.text()).collect()
        };
        let indexes: Option<Vec<usize>> =
            text("indexes").split_whitespace().map(|word| word.parse().ok()).collect();
        let indexes = indexes.ok_or_else(|| self.error(&matrix, "indexes must be node numbers"))?;
        let values = parse_distances(&text("u64values")).map_err(|what| self.error(&matrix, what))?;
        if values.len() != indexes.len() * indexes.len() {
            let what = format!("{} distances for {} nodes", values.len(), indexes.len());
            return Err(self.error(&matrix, what));
        }
        for (row, &from) in values.chunks(indexes.len().max(1)).zip(&indexes) {
            for (&distance, &to) in row.iter().zip(&indexes) {
                found.distances.insert((from, to), distance);
            }
        }
        Ok(())
    }

    /// What `cpukind` elements say of how fast CPUs are: the capacity that Linux reports
    /// (`LinuxCapacity`), the kind of core, the maximum frequency.
    fn speeds(&self, found: &mut Online) -> Result<()> {
        let mut kinds = 0;
        for cpukind in self.elements("cpukind") {
            let cpus = self.cpuset(&cpukind)?;
            kinds += 1;
            let info = |name: &'static str| {
                let mut infos = cpukind.children().filter(|node| node.has_tag_name("info"));
                infos.find(|node| node.attribute("name") == Some(name))
            };
            if let Some(info) = info("LinuxCapacity") {
                let text = info.attribute("value").unwrap_or_default();
                let capacity = parse_capacity(text).map_err(|what| self.error(&info, what))?;
                found.capacities.extend(cpus.iter().map(|cpu| (cpu, capacity)));
            }
            let max_khz = match info("FrequencyMaxMHz") {
                // 0 is not known, as of caches
                Some(info) => Some(self.number(&info, "value", MAX_MHZ)? * 1000).filter(|khz| *khz > 0),
                None => None,
            };
            let core = info("CoreType").and_then(|info| Core::named(info.attribute("value")?));
            found.speeds.extend(cpus.iter().map(|cpu| (cpu, Speed { core, max_khz })));
        }
        // a CPU of no kind is not known to be as fast as any other
        for cpu in found.places.keys() {
            found.speeds.entry(*cpu).or_default();
        }
        found.speeds.retain(|cpu, _| found.places.contains_key(cpu));
        let unknown = match kinds {
            _ if !found.capacities.is_empty() || capacity::infer(&found.speeds).is_some() => None,
            0 => Some("the file says nothing of capacities".to_owned()),
            1 => None,
            kinds => Some(format!("the CPUs are of {kinds} kinds, but nothing says how fast they are")),
        };
        found.assumptions.extend(unknown.map(|what| format!("{what}: all CPUs are taken as equally fast")));
        Ok(())
    }

    fn sizes(&self, llcs: &[Option<Element<'a, 'input>>], machine: &mut Machine) -> Result<()> {
        let size = |node: &Element, attribute: &str| match node.attribute(attribute) {
            // hwloc writes 0 for what it does not know.
            None | Some("0") => Ok(None),
            Some(_) => {
                self.number(node, attribute, MAX_CACHE_BYTES).map(|bytes| Some(bytes).filter(|&b| b > 0))
            }
        };
        let of_level = |level: u32| {
            let mut caches = self.elements("object").filter(|node| cache_level(node) == Some(level));
            caches.next().map_or(Ok(None), |node| size(&node, "cache_size"))
        };
        let llc = llcs.first().copied().flatten();
        let of_llc = |attribute| llc.map_or(Ok(None), |llc| size(&llc, attribute));
        let known = CacheSizes {
            l1d: of_level(1)?,
            l2: of_level(2)?,
            llc: of_llc("cache_size")?,
            line: of_llc("cache_linesize")?,
        };
        known.put_into(machine);
        for (cpu, llc) in machine.cpus.iter().zip(llcs) {
            if let Some(bytes) = llc.map_or(Ok(None), |llc| size(&llc, "cache_size"))? {
                machine.llc_bytes[cpu.llc] = bytes;
            }
        }
        Ok(())
    }

    fn describe(&self, machine: &mut Machine) {
        machine.arch = match self.info("Architecture") {
            Some("aarch64") => Arch::Arm64,
            Some(name) if name.starts_with("ppc64") => Arch::Power,
            _ => Arch::X86,
        };
        // AMD since family 17h (23): node_reclaim_distance is 32 (arch/x86/kernel/cpu/amd.c).
        let family = self.info("CPUFamilyNumber").and_then(|family| family.parse::<u32>().ok());
        if self.info("CPUVendor") == Some("AuthenticAMD") && family.is_some_and(|family| family >= 23) {
            machine.reclaim_distance = 32;
        }
        if machine.description.is_empty() {
            let model = self.info("CPUModel").unwrap_or("hwloc topology");
            machine.description = format!("{model}, {} CPUs", machine.nr_cpus());
        }
    }
}
