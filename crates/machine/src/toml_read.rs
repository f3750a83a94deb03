//! Reads machine files.
//!
//! Every figure is written either plainly or as `{ value = …, source = "…" }`. A cost may also have its bounds, `low` and
//! `high`.

use std::collections::BTreeMap;
use std::path::Path;

use coreward_input::{line_at, toml_refusal};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::costs::CostField;
use crate::cpuset::{CpuSet, MAX_CPUS};
use crate::error::MachineError;
use crate::kernel::{self, Preemption};
use crate::machine::{Arch, IdleState, Machine, Place, flat_distances};
use crate::online::{CacheSizes, unknown_distances};
use crate::presets;
use crate::shape::{Numbering, Shape};

type Figure = Spanned<Value>;
type Result<T> = std::result::Result<T, MachineError>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<Figure>,
    description: Option<Figure>,
    like: Option<Figure>,
    arch: Option<Figure>,
    shape: Option<Figure>,
    numbering: Option<Figure>,
    packages: Option<Figure>,
    cluster_cores: Option<Figure>,
    hz: Option<Figure>,
    kernel: Option<Figure>,
    preemption: Option<Figure>,
    features: Option<Figure>,
    vcpu_pack: Option<Figure>,
    distances: Option<Figure>,
    reclaim_distance: Option<Figure>,
    llc: Option<Vec<Spanned<Llc>>>,
    #[serde(default)]
    capacity: BTreeMap<String, Figure>,
    #[serde(default)]
    caches: BTreeMap<String, Figure>,
    #[serde(default)]
    costs: BTreeMap<String, Figure>,
    idle: Option<Vec<Spanned<Idle>>>,
    /// Sources of what is no figure of its own, such as the shape of an explicit machine.
    #[serde(default)]
    sources: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Llc {
    cpus: Option<Figure>,
    cores: Option<Figure>,
    clusters: Option<Figure>,
    node: Option<Figure>,
    package: Option<Figure>,
    bytes: Option<Figure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Idle {
    name: Figure,
    exit_ns: Figure,
    residency_ns: Figure,
    polling: Figure,
    promoted: Option<Figure>,
    source: Option<Figure>,
}

/// Reads the text of a machine file.
pub(crate) fn read(path: &str, text: &str) -> Result<Machine> {
    let mut reader = Reader { path, text, sources: BTreeMap::new(), llc_bytes: BTreeMap::new() };
    let file: File = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        reader.error(offset, toml_refusal(error.message()))
    })?;
    let mut machine = reader.cpus(&file)?;
    let inherited = reader.like(&file, &mut machine)?;
    reader.header(&file, &mut machine)?;
    reader.distances(&file, &mut machine)?;
    reader.capacities(&file, &mut machine)?;
    reader.caches(&file, &mut machine)?;
    reader.costs(&file, &mut machine)?;
    reader.idle_states(&file, &mut machine)?;
    machine.sources = inherited;
    machine.sources.extend(file.sources);
    machine.sources.append(&mut reader.sources);
    machine.validate(path)?;
    Ok(machine)
}

/// The text, for line numbers in messages, and what was met so far.
struct Reader<'a> {
    path: &'a str,
    text: &'a str,
    /// Sources by the path of their figure.
    sources: BTreeMap<String, String>,
    /// Sizes of the LLCs that differ from `caches.llc_bytes`.
    llc_bytes: BTreeMap<usize, u64>,
}

impl Reader<'_> {
    fn error(&self, offset: usize, what: impl Into<String>) -> MachineError {
        MachineError::invalid(format!("{}:{}", self.path, line_at(self.text, offset)), what)
    }

    fn wrong(&self, figure: &Figure, what: impl Into<String>) -> MachineError {
        self.error(figure.span().start, what)
    }

    /// The value of a figure; remembers its source under `key`.
    fn value<'f>(&mut self, key: &str, figure: &'f Figure) -> Result<&'f Value> {
        let Value::Table(table) = figure.get_ref() else {
            return Ok(figure.get_ref());
        };
        let allowed: &[&str] = if key.starts_with("costs.") {
            &["value", "source", "low", "high"]
        } else {
            &["value", "source"]
        };
        if let Some(other) = table.keys().find(|key| !allowed.contains(&key.as_str())) {
            let allowed = allowed.join(", ");
            return Err(self.wrong(figure, format!("unknown key `{other}` in {key}, allowed are {allowed}")));
        }
        match table.get("source") {
            None => {}
            Some(Value::String(source)) => {
                self.sources.insert(key.to_owned(), source.clone());
            }
            Some(_) => {
                return Err(self.wrong(figure, format!("the source of {key} must be a text")));
            }
        }
        let missing = || self.wrong(figure, format!("{key} has no value"));
        table.get("value").ok_or_else(missing)
    }

    fn integer(&mut self, key: &str, figure: &Figure, min: u64, max: u64) -> Result<u64> {
        let value = self.value(key, figure)?;
        let Some(number) = value.as_integer() else {
            let what = format!("{key} must be an integer from {min} to {max}, not {}", value.type_str());
            return Err(self.wrong(figure, what));
        };
        match u64::try_from(number) {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(self.wrong(figure, format!("{key} is {number}, allowed are {min} to {max}"))),
        }
    }

    fn text<'f>(&mut self, key: &str, figure: &'f Figure) -> Result<&'f str> {
        let value = self.value(key, figure)?;
        let what = || format!("{key} must be a text, not {}", value.type_str());
        value.as_str().ok_or_else(|| self.wrong(figure, what()))
    }

    /// One of a few words.
    fn choice<T: Copy>(&mut self, key: &str, figure: &Figure, words: &[(&str, T)]) -> Result<T> {
        let text = self.text(key, figure)?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(figure, format!("{key} is `{text}`, allowed are {}", words.join(", ")))
        })
    }

    /// A size in bytes: an integer, or a text with KiB, MiB or GiB.
    fn bytes(&mut self, key: &str, figure: &Figure) -> Result<u64> {
        let value = self.value(key, figure)?;
        let bytes = match value {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::String(text) => parse_bytes(text),
            _ => None,
        };
        bytes.filter(|bytes| (1..=MAX_CACHE_BYTES).contains(bytes)).ok_or_else(|| {
            let what = format!(
                "{key} is {value}, allowed are 1 to {MAX_CACHE_BYTES} bytes, as a number or like \"32KiB\", \"2MiB\""
            );
            self.wrong(figure, what)
        })
    }

    fn cpu_list(&mut self, key: &str, figure: &Figure) -> Result<CpuSet> {
        let text = self.text(key, figure)?;
        self.cpu_set(key, figure, text)
    }

    fn cpu_set(&self, key: &str, figure: &Figure, text: &str) -> Result<CpuSet> {
        let set = CpuSet::parse_list(text).map_err(|what| self.wrong(figure, format!("{key}: {what}")))?;
        match set.is_empty() {
            true => Err(self.wrong(figure, format!("{key}: a list is empty"))),
            false => Ok(set),
        }
    }

    /// An array of CPU lists that have no CPU in common, such as the cores of an LLC.
    fn cpu_lists(&mut self, key: &str, figure: &Figure) -> Result<Vec<CpuSet>> {
        let form = || format!("{key} must be an array of CPU lists, like [\"0,24\", \"1,25\"]");
        let Some(items) = self.value(key, figure)?.as_array() else {
            return Err(self.wrong(figure, form()));
        };
        let (mut sets, mut seen) = (Vec::new(), CpuSet::new());
        for item in items {
            let text = item.as_str().ok_or_else(|| self.wrong(figure, form()))?;
            let set = self.cpu_set(key, figure, text)?;
            if let Some(cpu) = set.intersect(&seen).first() {
                return Err(self.wrong(figure, format!("{key}: CPU {cpu} is listed twice")));
            }
            seen = seen.union(&set);
            sets.push(set);
        }
        Ok(sets)
    }

    fn cpus(&mut self, file: &File) -> Result<Machine> {
        let name = Path::new(self.path).file_stem().and_then(|stem| stem.to_str()).unwrap_or(self.path);
        match (&file.shape, &file.llc) {
            (Some(shape), None) => {
                let places = self.regular(shape, file)?;
                Ok(Machine::from_places(name, &places))
            }
            (None, Some(llcs)) => self.explicit(name, llcs, file),
            (Some(_), Some(llcs)) => {
                let offset = llcs.first().map_or(0, |llc| llc.span().start);
                Err(self.error(offset, "give either shape or [[llc]] tables, not both"))
            }
            (None, None) => Err(self.error(0, "the CPUs are missing: give shape or [[llc]] tables")),
        }
    }

    fn regular(&mut self, figure: &Figure, file: &File) -> Result<Vec<Place>> {
        let text = self.text("shape", figure)?;
        let shape = Shape::parse(text).map_err(|what| self.wrong(figure, format!("shape: {what}")))?;
        let mut packages = shape.nodes;
        if let Some(figure) = &file.packages {
            packages = self.integer("packages", figure, 1, MAX_CPUS as u64)? as usize;
            let llcs = shape.nodes * shape.llcs;
            if llcs % packages != 0 {
                let what = format!("packages is {packages}, it must divide the {llcs} LLCs of shape");
                return Err(self.wrong(figure, what));
            }
        }
        let mut cluster = None;
        if let Some(figure) = &file.cluster_cores {
            let size = self.integer("cluster_cores", figure, 1, MAX_CPUS as u64)? as usize;
            if shape.cores % size != 0 {
                let what =
                    format!("cluster_cores is {size}, it must divide the {} cores of an LLC", shape.cores);
                return Err(self.wrong(figure, what));
            }
            cluster = Some(size);
        }
        let mut numbering = Numbering::default();
        if let Some(figure) = &file.numbering {
            numbering = self.choice("numbering", figure, &Numbering::ALL)?;
            if numbering == Numbering::CoresAlternate && shape.cpus() / shape.threads % 2 != 0 {
                let what = "numbering is `cores-alternate`, which goes with an even number of cores";
                return Err(self.wrong(figure, what));
            }
        }
        Ok(shape.places(packages, cluster, numbering))
    }

    fn explicit(&mut self, name: &str, llcs: &[Spanned<Llc>], file: &File) -> Result<Machine> {
        let only_regular = [
            ("numbering", &file.numbering),
            ("packages", &file.packages),
            ("cluster_cores", &file.cluster_cores),
        ];
        if let Some((key, Some(figure))) = only_regular.iter().find(|(_, figure)| figure.is_some()) {
            return Err(self.wrong(figure, format!("{key} goes with shape, not with [[llc]] tables")));
        }
        let mut places: BTreeMap<usize, Place> = BTreeMap::new();
        let mut cores = 0;
        for (llc, table) in llcs.iter().enumerate() {
            for (core, place) in self.llc(llc, table)? {
                for cpu in core.iter() {
                    if places.insert(cpu, Place { core: cores, ..place }).is_some() {
                        return Err(self.error(table.span().start, format!("CPU {cpu} is listed twice")));
                    }
                }
                cores += 1;
            }
        }
        if let Some(gap) = (0..places.len()).find(|cpu| !places.contains_key(cpu)) {
            let what = format!("CPU {gap} is missing; CPUs are numbered from 0 without gaps");
            return Err(MachineError::invalid(self.path, what));
        }
        let places: Vec<_> = places.into_values().collect();
        let machine = Machine::from_places(name, &places);
        for (label, table) in llcs.iter().enumerate() {
            let Some(figure) = &table.get_ref().bytes else {
                continue;
            };
            if let Some(cpu) = places.iter().position(|place| place.llc == label) {
                let llc = machine.cpus[cpu].llc;
                let bytes = self.bytes(&format!("llc.{llc}.bytes"), figure)?;
                self.llc_bytes.insert(llc, bytes);
            }
        }
        Ok(machine)
    }

    /// The cores of one `[[llc]]` table and their place; the core's label is the caller's.
    fn llc(&mut self, llc: usize, table: &Spanned<Llc>) -> Result<Vec<(CpuSet, Place)>> {
        let (offset, table) = (table.span().start, table.get_ref());
        let key = |name: &str| format!("llc.{llc}.{name}");
        let cores: Vec<CpuSet> = match (&table.cpus, &table.cores) {
            (Some(cpus), None) => self.cpu_list(&key("cpus"), cpus)?.iter().map(CpuSet::single).collect(),
            (None, Some(cores)) => self.cpu_lists(&key("cores"), cores)?,
            _ => return Err(self.error(offset, "an [[llc]] table needs either cpus or cores")),
        };
        if cores.is_empty() {
            return Err(self.error(offset, "an [[llc]] table needs at least one core"));
        }
        let mut number = |name: &str, figure: &Option<Figure>| match figure {
            Some(figure) => self.integer(&key(name), figure, 0, MAX_CPUS as u64 - 1).map(Some),
            None => Ok(None),
        };
        let node = number("node", &table.node)?.unwrap_or(0) as usize;
        let package = number("package", &table.package)?.map_or(node, |package| package as usize);
        let clusters = match &table.clusters {
            Some(figure) => self.cpu_lists(&key("clusters"), figure)?,
            None => Vec::new(),
        };
        for cluster in &clusters {
            let inside = cores.iter().filter(|core| core.is_subset(cluster));
            if inside.fold(CpuSet::new(), |sum, core| sum.union(core)) != *cluster {
                let what = format!("cluster {cluster} must consist of whole cores of its LLC");
                return Err(self.error(offset, what));
            }
        }
        let place = |core: &CpuSet| {
            // Labels of clusters are made unique over the machine by the LLC they are in.
            let cluster = clusters.iter().position(|cluster| core.is_subset(cluster));
            let cluster = cluster.map(|index| llc * MAX_CPUS + index);
            (*core, Place { core: 0, cluster, llc, package, node })
        };
        Ok(cores.iter().map(place).collect())
    }

    /// Takes from another preset what a file leaves out, but for the CPUs and the distances.
    /// Returns the sources of what it took.
    fn like(&mut self, file: &File, machine: &mut Machine) -> Result<BTreeMap<String, String>> {
        let Some(figure) = &file.like else {
            return Ok(BTreeMap::new());
        };
        let name = self.text("like", figure)?;
        let Some(other) = presets::load(name) else {
            let names: Vec<_> = presets::names().collect();
            return Err(self.wrong(figure, format!("like is `{name}`, allowed are {}", names.join(", "))));
        };
        let other = other?;
        machine.arch = other.arch;
        machine.hz = other.hz;
        machine.reclaim_distance = other.reclaim_distance;
        machine.caches = other.caches;
        machine.costs = other.costs;
        machine.idle_states = other.idle_states;
        let taken = |path: &str| match path.split_once('.').unwrap_or((path, "")) {
            ("caches", name) => !file.caches.contains_key(name),
            ("costs", name) => !file.costs.contains_key(name),
            ("idle", _) => file.idle.is_none(),
            ("arch", _) => file.arch.is_none(),
            ("hz", _) => file.hz.is_none(),
            ("reclaim_distance", _) => file.reclaim_distance.is_none(),
            _ => false,
        };
        Ok(other.sources.into_iter().filter(|(path, _)| taken(path)).collect())
    }

    fn header(&mut self, file: &File, machine: &mut Machine) -> Result<()> {
        if let Some(figure) = &file.name {
            machine.name = self.text("name", figure)?.to_owned();
        }
        if let Some(figure) = &file.description {
            machine.description = self.text("description", figure)?.to_owned();
        }
        if let Some(figure) = &file.arch {
            machine.arch = self.choice("arch", figure, &Arch::ALL)?;
        }
        if let Some(figure) = &file.hz {
            machine.hz =
                self.integer("hz", figure, u64::from(*kernel::HZ.start()), u64::from(*kernel::HZ.end()))?
                    as u32;
        }
        if let Some(figure) = &file.kernel {
            let text = self.text("kernel", figure)?;
            if !text.starts_with(|c: char| c.is_ascii_digit()) {
                let wrong = format!("kernel is `{text}`, allowed is a release as `uname -r` prints it");
                return Err(self.wrong(figure, wrong));
            }
            machine.kernel = Some(text.to_owned());
        }
        if let Some(figure) = &file.preemption {
            machine.preemption = Some(self.choice("preemption", figure, &Preemption::ALL)?);
        }
        if let Some(figure) = &file.features {
            let text = self.text("features", figure)?;
            let words = kernel::words(text);
            let wrong =
                || "features are words of capital letters, digits and underscores, as the kernel lists them";
            machine.features = words.ok_or_else(|| self.wrong(figure, wrong().to_owned()))?;
        }
        if let Some(figure) = &file.vcpu_pack {
            let bits = self.integer("vcpu_pack", figure, 1, u64::from(kernel::VCPU_PACK_MAX))?;
            machine.vcpu_pack = Some(bits as u8);
        }
        let of_a_kernel =
            [("preemption", &file.preemption), ("features", &file.features), ("vcpu_pack", &file.vcpu_pack)];
        if let (None, Some((name, figure))) =
            (&machine.kernel, of_a_kernel.iter().find_map(|(name, figure)| Some((name, figure.as_ref()?))))
        {
            return Err(
                self.wrong(figure, format!("{name} is of a kernel, and there is no `kernel` in the file"))
            );
        }
        if let Some(figure) = &file.reclaim_distance {
            machine.reclaim_distance = self.integer("reclaim_distance", figure, 10, 254)? as u32;
        }
        Ok(())
    }

    fn distances(&mut self, file: &File, machine: &mut Machine) -> Result<()> {
        machine.distances = flat_distances(machine.nodes.min(crate::MAX_NODES));
        let Some(figure) = &file.distances else {
            if machine.nodes > 1 {
                machine.assumptions.push(unknown_distances());
            }
            return Ok(());
        };
        let row = |row: &Value| -> Option<Vec<u32>> {
            let numbers = row.as_array()?.iter();
            numbers.map(|number| u32::try_from(number.as_integer()?).ok()).collect()
        };
        let rows = self.value("distances", figure)?.as_array();
        let rows: Option<Vec<_>> = rows.and_then(|rows| rows.iter().map(row).collect());
        machine.distances = rows.ok_or_else(|| {
            self.wrong(figure, "distances must be rows of numbers, like [[10, 21], [21, 10]]")
        })?;
        Ok(())
    }

    fn capacities(&mut self, file: &File, machine: &mut Machine) -> Result<()> {
        let mut seen = CpuSet::new();
        for (list, figure) in &file.capacity {
            let key = format!("capacity.{list}");
            let capacity = self.integer(&key, figure, 1, 1024)? as u32;
            let cpus =
                CpuSet::parse_list(list).map_err(|what| self.wrong(figure, format!("{key}: {what}")))?;
            if cpus.is_empty() {
                return Err(self.wrong(figure, format!("{key}: it names no CPU")));
            }
            if let Some(cpu) = cpus.iter().find(|&cpu| seen.contains(cpu) || cpu >= machine.cpus.len()) {
                let what = match seen.contains(cpu) {
                    true => format!("{key}: CPU {cpu} already has a capacity"),
                    false => format!("{key}: there is no CPU {cpu}"),
                };
                return Err(self.wrong(figure, what));
            }
            seen = seen.union(&cpus);
            cpus.iter().for_each(|cpu| machine.cpus[cpu].capacity = capacity);
        }
        Ok(())
    }

    fn caches(&mut self, file: &File, machine: &mut Machine) -> Result<()> {
        for (name, figure) in &file.caches {
            let key = format!("caches.{name}");
            let caches = &mut machine.caches;
            let slot = match name.as_str() {
                "l1d_bytes" => &mut caches.l1d_bytes,
                "l2_bytes" => &mut caches.l2_bytes,
                "llc_bytes" => &mut caches.llc_bytes,
                "line_bytes" => &mut caches.line_bytes,
                _ => {
                    let what = format!(
                        "unknown key `{name}` in caches, allowed are l1d_bytes, l2_bytes, llc_bytes, line_bytes"
                    );
                    return Err(self.wrong(figure, what));
                }
            };
            *slot = self.bytes(&key, figure)?;
        }
        if file.like.is_none() {
            let known = |name: &str, bytes: u64| file.caches.contains_key(name).then_some(bytes);
            let caches = machine.caches.clone();
            let all_llcs = self.llc_bytes.len() == machine.llc_bytes.len();
            let known = CacheSizes {
                l1d: known("l1d_bytes", caches.l1d_bytes),
                l2: known("l2_bytes", caches.l2_bytes),
                llc: known("llc_bytes", caches.llc_bytes).or(all_llcs.then_some(caches.llc_bytes)),
                line: known("line_bytes", caches.line_bytes),
            };
            known.put_into(machine);
        }
        machine.llc_bytes.fill(machine.caches.llc_bytes);
        for (&llc, &bytes) in &self.llc_bytes {
            machine.llc_bytes[llc] = bytes;
        }
        Ok(())
    }

    fn costs(&mut self, file: &File, machine: &mut Machine) -> Result<()> {
        for (name, figure) in &file.costs {
            let Some(field) = crate::Costs::field(name) else {
                let what = machine.costs.set(name, 0).unwrap_err();
                return Err(self.wrong(figure, what));
            };
            let value = self.integer(&format!("costs.{name}"), figure, field.min, field.max)?;
            machine.costs.set(name, value).map_err(|what| self.wrong(figure, what))?;
            if let Some(bounds) = self.bounds(name, figure, field, value)? {
                machine.own_bounds.insert(name.clone(), bounds);
            }
        }
        Ok(())
    }

    /// The bounds of a cost, if it has some of its own; one that is not given is the value itself.
    fn bounds(
        &self,
        name: &str,
        figure: &Figure,
        field: &CostField,
        value: u64,
    ) -> Result<Option<(u64, u64)>> {
        let Value::Table(table) = figure.get_ref() else { return Ok(None) };
        let bound = |key: &str, min: u64, max: u64| match table.get(key) {
            None => Ok(None),
            Some(bound) => {
                let number = bound.as_integer().and_then(|number| u64::try_from(number).ok());
                let allowed = number.filter(|number| (min..=max).contains(number));
                let what = || format!("{key} of costs.{name} is {bound}, allowed are {min} to {max}");
                allowed.map(Some).ok_or_else(|| self.wrong(figure, what()))
            }
        };
        let (low, high) = (bound("low", field.min, value)?, bound("high", value, field.max)?);
        Ok((low.is_some() || high.is_some()).then(|| (low.unwrap_or(value), high.unwrap_or(value))))
    }

    fn idle_states(&mut self, file: &File, machine: &mut Machine) -> Result<()> {
        let Some(tables) = &file.idle else {
            return Ok(());
        };
        machine.idle_states.clear();
        for (index, table) in tables.iter().map(Spanned::get_ref).enumerate() {
            let key = |name: &str| format!("idle.{index}.{name}");
            let flag = |name: &str, figure: &Figure| {
                let wrong = || self.wrong(figure, format!("{} must be true or false", key(name)));
                figure.get_ref().as_bool().ok_or_else(wrong)
            };
            let polling = flag("polling", &table.polling)?;
            let promoted = table.promoted.as_ref().map_or(Ok(false), |figure| flag("promoted", figure))?;
            if let Some(figure) = table.promoted.as_ref().filter(|_| promoted && index == 0) {
                return Err(self.wrong(figure, format!("{} needs a state before it", key("promoted"))));
            }
            // the deepest state that pays off is looked for from the last one on
            let least_ns = machine.idle_states.last().map_or(0, |state| state.residency_ns);
            let residency_ns =
                self.integer(&key("residency_ns"), &table.residency_ns, least_ns, MAX_IDLE_NS)?;
            machine.idle_states.push(IdleState {
                name: self.text(&key("name"), &table.name)?.to_owned(),
                exit_ns: self.integer(&key("exit_ns"), &table.exit_ns, 0, MAX_IDLE_NS)?,
                residency_ns,
                polling,
                promoted,
                source: match &table.source {
                    Some(figure) => self.text(&key("source"), figure)?.to_owned(),
                    None => String::new(),
                },
            });
        }
        Ok(())
    }
}

/// 16 GiB: the largest caches of today are 1 GiB.
pub(crate) const MAX_CACHE_BYTES: u64 = 16 << 30;

/// One second: no idle state takes that long.
pub(crate) const MAX_IDLE_NS: u64 = 1_000_000_000;

/// Reads `32KiB`, `2 MiB`, `1GiB` or plain bytes; sysfs writes `32K`.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..].trim_start() {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}
