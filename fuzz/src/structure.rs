//! Fuzzing by structure: machines, workloads and settings that are valid by construction, made of any bytes, and the
//! simulation of them with all invariants checked.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use coreward_cli::experiment::Experiment;
use coreward_engine::{Change, Checks, NoTrace, Settings, SimError, Simulation};
use coreward_machine::{DomainOptions, Machine, Partition, Topology};
use coreward_policy::{Changes, Code, FEATURES, PolicySettings, Profile, System, TUNABLES};
use coreward_state::{domain_options, policy_system};
use coreward_workload::{Scale, Workload, parse, rt_app};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

/// When a machine is first looked at, in ns.
const START_NS: u64 = 8_000_000_000;
/// The longest simulated time, in ns. Workloads are made to last about a second.
const LIMIT_NS: u64 = 30_000_000_000;
/// Task groups.
const GROUPS: [&str; 2] = ["/a", "/b"];
/// The largest machine that is simulated, in CPUs.
const MAX_CPUS: usize = 72;

/// What is run.
#[derive(Debug)]
pub struct Case {
    /// A machine file.
    pub machine: String,
    /// An rt-app file, or a benchmark's command line.
    pub workload: Source,
    /// A profile's name.
    pub profile: &'static str,
    /// Features and tunables that differ from the profile's.
    pub changes: Vec<(String, i64)>,
    /// CPUs of the partition in which the workload runs, and its `relax_domain_level`.
    pub partition: Option<String>,
    /// Changes of the machine in the middle of the run.
    pub events: Vec<String>,
    /// How deep task groups are nested.
    pub task_group_depth: u32,
    /// The seed of the run.
    pub seed: u64,
    /// An experiment file about the same.
    pub experiment: String,
}

/// Where a workload comes from.
#[derive(Debug)]
pub enum Source {
    /// The text of an rt-app file.
    RtApp(String),
    /// A command line.
    Command(String),
}

/// What became of a case.
#[derive(Debug)]
pub enum Verdict {
    /// A reader refused its file.
    Refused(String),
    /// It cannot be run to its end: tasks wait for each other, are bound to CPUs that there are not, or have none left.
    NoEnd(String),
    /// It was simulated, and this was found.
    Ran {
        /// Invariants, and the times that they are about.
        checks: Checks,
        /// CPUs of the machine.
        nr_cpus: usize,
        /// Events of the simulation.
        events: u64,
    },
}

/// Makes a case.
///
/// # Errors
/// There are not enough bytes.
pub fn case(u: &mut Unstructured) -> Result<Case> {
    let (machine, nr_cpus) = machine(u)?;
    let profile = Profile::ALL[u.choose_index(Profile::ALL.len())?];
    let workload =
        if u.ratio(3, 4)? { Source::RtApp(rt_app_file(u, nr_cpus)?) } else { Source::Command(command(u)?) };
    let mut changes = Vec::new();
    for _ in 0..u.int_in_range(0..=3)? {
        let feature = &FEATURES[u.choose_index(FEATURES.len())?];
        changes.push((feature.name.to_owned(), i64::from(u.arbitrary::<bool>()?)));
    }
    if u.ratio(1, 3)? {
        let tunable = &TUNABLES[u.choose_index(TUNABLES.len())?];
        // not a level that the machine has not, nor a time in which nothing would ever be balanced
        if tunable.name != "relax_domain_level" {
            let most = tunable.max.min(tunable.default.max(1) * 4);
            changes.push((tunable.name.to_owned(), u.int_in_range(tunable.min..=most)?));
        }
    }
    let partition = if nr_cpus > 1 && u.ratio(1, 5)? { Some(cpu_list(u, nr_cpus)?) } else { None };
    let mut events = Vec::new();
    if nr_cpus > 1 && u.ratio(1, 4)? {
        for _ in 0..u.int_in_range(1..=6)? {
            let (ms, cpus) = (u.int_in_range(0..=900)?, cpu_list(u, nr_cpus)?);
            let kind = u.choose(&["offline", "online", "online", "cpus"])?;
            events.push(format!("{ms}ms {kind} {cpus}"));
        }
    }
    if u.ratio(1, 3)? {
        for _ in 0..u.int_in_range(1..=4)? {
            events.push(group_event(u, &workload)?);
        }
    }
    let experiment = experiment(u, profile, &changes)?;
    Ok(Case {
        machine,
        workload,
        profile,
        changes,
        partition,
        events,
        task_group_depth: u.int_in_range(0..=4)?,
        seed: u.int_in_range(0..=9)?,
        experiment,
    })
}

/// A machine file: a regular machine, or a list of caches; with all the rest, or without.
fn machine(u: &mut Unstructured) -> Result<(String, usize)> {
    let mut text = String::new();
    let mut siblings = false;
    let nr_cpus = if u.arbitrary()? {
        let (nodes, llcs, cores, threads) =
            (u.int_in_range(1..=3)?, u.int_in_range(1..=3)?, u.int_in_range(1..=4)?, u.int_in_range(1..=2)?);
        let _ = writeln!(text, "shape = \"{nodes}n{llcs}l{cores}c{threads}t\"");
        let numbering = u.choose(&["cores-first", "threads-adjacent", "cores-alternate"])?;
        if threads == 2 && (*numbering != "cores-alternate" || cores % 2 == 0) {
            let _ = writeln!(text, "numbering = \"{numbering}\"");
        }
        if cores % 2 == 0 && u.arbitrary()? {
            let _ = writeln!(text, "cluster_cores = 2");
        }
        rest(u, &mut text, nodes)?;
        siblings = threads > 1;
        nodes * llcs * cores * threads
    } else {
        let nodes = u.int_in_range(1..=3usize)?;
        let mut lists = String::new();
        let mut next = 0;
        for node in 0..nodes {
            for _ in 0..u.int_in_range(1..=2)? {
                let cpus = u.int_in_range(1..=6)?;
                let _ = writeln!(lists, "[[llc]]\ncpus = \"{next}-{}\"\nnode = {node}", next + cpus - 1);
                if u.arbitrary()? {
                    let _ = writeln!(lists, "bytes = {}", 1u64 << u.int_in_range(18..=26)?);
                }
                next += cpus;
            }
        }
        rest(u, &mut text, nodes)?;
        text += &lists;
        next
    };
    // threads of a core are alike
    if !siblings && u.arbitrary()? {
        // big and little CPUs
        text += "[capacity]\n";
        let little = u.int_in_range(100..=1000)?;
        let mut from = 0;
        while from < nr_cpus {
            let to = (from + u.int_in_range(0..=nr_cpus - 1)?).min(nr_cpus - 1);
            let capacity = *u.choose(&[1024, 1024, little])?;
            let _ = writeln!(text, "\"{from}-{to}\" = {capacity}");
            from = to + 1;
        }
    }
    Ok((text, nr_cpus))
}

/// Keys before the first table.
fn rest(u: &mut Unstructured, text: &mut String, nodes: usize) -> Result<()> {
    if u.arbitrary()? {
        let _ = writeln!(text, "arch = \"{}\"", u.choose(&["x86", "arm64", "power"])?);
    }
    if u.arbitrary()? {
        let _ = writeln!(text, "hz = {}", u.choose(&[100, 250, 300, 1000])?);
    }
    if nodes > 1 && u.arbitrary()? {
        let mut rows = vec![vec![10; nodes]; nodes];
        for a in 0..nodes {
            for b in 0..a {
                let distance = *u.choose(&[12, 20, 21, 31, 40])?;
                (rows[a][b], rows[b][a]) = (distance, distance);
            }
        }
        let _ = writeln!(text, "distances = {rows:?}");
    }
    if u.ratio(1, 4)? {
        text.push_str("idle = []\n");
    }
    Ok(())
}

/// A change of the weight or the quota of a task group that there is.
fn group_event(u: &mut Unstructured, workload: &Source) -> Result<String> {
    let ms = u.int_in_range(0..=900)?;
    let named =
        |group: &&str| matches!(workload, Source::RtApp(text) if text.contains(&format!("\"{group}\"")));
    let groups: Vec<_> = GROUPS.into_iter().filter(named).collect();
    if !groups.is_empty() && u.arbitrary()? {
        return Ok(format!("{ms}ms weight {} {}", u.choose(&groups)?, u.int_in_range(1..=10_000)?));
    }
    let group = if groups.is_empty() || u.arbitrary()? { "/" } else { u.choose(&groups)? };
    Ok(if u.ratio(1, 4)? {
        format!("{ms}ms max {group} max")
    } else {
        format!("{ms}ms max {group} {}ms/{}ms", u.int_in_range(1..=300)?, u.int_in_range(1..=200)?)
    })
}

/// Some of the CPUs, at least one.
fn cpu_list(u: &mut Unstructured, nr_cpus: usize) -> Result<String> {
    let from = u.int_in_range(0..=nr_cpus - 1)?;
    let to = u.int_in_range(from..=nr_cpus - 1)?;
    Ok(format!("{from}-{to}"))
}

/// A command line whose run takes a moment.
fn command(u: &mut Unstructured) -> Result<String> {
    Ok(match u.int_in_range(0..=3)? {
        0 => {
            let (groups, fds, loops) =
                (u.int_in_range(1..=3)?, u.int_in_range(1..=4)?, u.int_in_range(1..=60)?);
            let how = u.choose(&["--pipe", "--sockets"])?;
            let what = u.choose(&["-T", "-P"])?;
            format!("hackbench -g {groups} -f {fds} -l {loops} {how} {what}")
        }
        1 => format!("perf bench sched pipe -l {}", u.int_in_range(1..=3000)?),
        2 => format!("schbench -m {} -t {} -r 1", u.int_in_range(1..=2)?, u.int_in_range(1..=6)?),
        _ => format!(
            "sysbench threads --threads={} --events={} --thread-yields=10 run",
            u.int_in_range(1..=12)?,
            u.int_in_range(1..=500)?
        ),
    })
}

/// An rt-app file of one second.
fn rt_app_file(u: &mut Unstructured, nr_cpus: usize) -> Result<String> {
    let tasks = u.int_in_range(1..=6)?;
    let grouped = u.ratio(1, 3)?;
    let mut text = String::from("{\"global\": {\"duration\": 1}, \"tasks\": {\n");
    for task in 0..tasks {
        let comma = if task + 1 < tasks { "," } else { "" };
        let _ = writeln!(text, " \"t{task}\": {{ {} }}{comma}", rt_app_task(u, nr_cpus, grouped)?);
    }
    text += "}}\n";
    Ok(text)
}

fn rt_app_task(u: &mut Unstructured, nr_cpus: usize, grouped: bool) -> Result<String> {
    let mut keys = vec![format!("\"instance\": {}", u.int_in_range(1..=6)?), "\"loop\": -1".to_owned()];
    if u.ratio(1, 4)? {
        keys.push(format!("\"priority\": {}", u.int_in_range(-20..=19)?));
    }
    if u.ratio(1, 6)? {
        keys.push(format!("\"policy\": \"{}\"", u.choose(&["SCHED_IDLE", "SCHED_BATCH", "SCHED_OTHER"])?));
    }
    if u.ratio(1, 4)? {
        keys.push(format!("\"delay\": {}", u.int_in_range(0..=300_000)?));
    }
    if u.ratio(1, 5)? {
        keys.push(format!("\"cpus\": {}", cpu_array(u, nr_cpus)?));
    }
    if grouped && u.arbitrary()? {
        keys.push(format!("\"taskgroup\": \"{}\"", u.choose(&GROUPS)?));
    }
    let phases = u.int_in_range(1..=3)?;
    let mut list = Vec::new();
    for phase in 0..phases {
        let mut steps = vec![format!("\"loop\": {}", u.int_in_range(1..=20)?)];
        if u.ratio(1, 5)? {
            steps.push(format!("\"cpus\": {}", cpu_array(u, nr_cpus)?));
        }
        for _ in 0..u.int_in_range(1..=4)? {
            steps.push(step(u)?);
        }
        // each round takes a while, so the number of events is limited
        steps.push(format!("\"run\": {}", u.int_in_range(50..=5000)?));
        list.push(format!("\"p{phase}\": {{ {} }}", steps.join(", ")));
    }
    keys.push(format!("\"phases\": {{ {} }}", list.join(", ")));
    Ok(keys.join(", "))
}

/// CPUs of the machine; perhaps also some that it has not.
fn cpu_array(u: &mut Unstructured, nr_cpus: usize) -> Result<String> {
    let mut cpus = Vec::new();
    for _ in 0..u.int_in_range(1..=4)? {
        cpus.push(u.int_in_range(0..=nr_cpus - 1)?);
    }
    Ok(format!("{cpus:?}"))
}

fn step(u: &mut Unstructured) -> Result<String> {
    let us = u.int_in_range(1..=20_000)?;
    let name = u.choose(&["a", "b"])?;
    Ok(match u.int_in_range(0..=10)? {
        0..=2 => format!("\"run\": {us}"),
        3 => format!("\"sleep\": {us}"),
        4 => format!("\"timer\": {{ \"ref\": \"unique{name}\", \"period\": {us} }}"),
        5 => format!("\"timer\": {{ \"ref\": \"{name}\", \"period\": {us}, \"mode\": \"absolute\" }}"),
        6 => format!("\"lock\": \"{name}\", \"run\": {}, \"unlock\": \"{name}\"", us % 500 + 1),
        7 => "\"yield\": \"\"".to_owned(),
        8 => format!("\"mem\": {}", us * 100),
        9 => format!("\"runtime\": {us}"),
        _ => format!("\"resume\": \"{name}\""),
    })
}

/// An experiment that has the same settings.
fn experiment(u: &mut Unstructured, profile: &str, changes: &[(String, i64)]) -> Result<String> {
    let machine = u.choose(&["2n2l2c2t", "4c", "1n1l8c"])?;
    let (runs, seed) = (u.int_in_range(1..=20)?, u.int_in_range(0..=100)?);
    let mut text = format!(
        "name = \"structure\"\nmachine = \"{machine}\"\nruns = {runs}\nseed = {seed}\n\
         [baseline]\nlabel = \"base\"\nprofile = \"{profile}\"\n[[variant]]\nlabel = \"changed\"\n"
    );
    // what comes last holds
    let changes: BTreeMap<_, _> = changes.iter().map(|(name, value)| (name, *value)).collect();
    let (features, tunables): (Vec<_>, Vec<_>) = changes.into_iter().partition(|(name, _)| is_feature(name));
    let features = features.iter().map(|(name, on)| format!("{}{name}", if *on == 1 { "" } else { "NO_" }));
    let _ = writeln!(text, "sched_feat = {:?}", features.collect::<Vec<_>>());
    if !tunables.is_empty() {
        text += "[variant.set]\n";
        tunables.iter().for_each(|(name, value)| {
            let _ = writeln!(text, "{name} = {value}");
        });
    }
    text += "[[case]]\nlabel = \"one\"\nworkload = \"hackbench -g 1 -f 2 -l 10\"\n";
    Ok(text)
}

fn is_feature(name: &str) -> bool {
    FEATURES.iter().any(|feature| feature.name == name)
}

/// Reads and runs a case.
///
/// # Panics
/// That is how a fault of the program shows.
pub fn run(case: &Case) -> Verdict {
    let machine = match Machine::from_toml_str("structure.toml", &case.machine) {
        Ok(machine) => machine,
        Err(error) => return Verdict::Refused(format!("machine: {error}")),
    };
    crate::check::<String>(Ok(machine.clone()));
    if let Err(error) = Experiment::parse("structure.toml", &case.experiment) {
        return Verdict::Refused(format!("experiment: {error}"));
    }
    let read = match &case.workload {
        Source::RtApp(text) => rt_app::from_text("structure.json", text, Scale::FULL),
        Source::Command(line) => parse(line, Scale::FULL),
    };
    let workload = match read {
        Ok(workload) => workload,
        Err(error) => return Verdict::Refused(format!("workload: {error}")),
    };
    match simulate(case, &machine, &workload) {
        Ok(verdict) => verdict,
        Err(refused) => Verdict::Refused(refused),
    }
}

/// Bytes of a case: as many as any case takes.
const BYTES: usize = 4096;

/// splitmix64: the bytes of a case are a function of its number.
pub fn bytes(number: u64) -> Vec<u8> {
    let mut state = number.wrapping_mul(0xd134_2543_de82_ef95);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    (0..BYTES / 8).flat_map(|_| next().to_le_bytes()).collect()
}

/// The policy's view of a case's machine, before anything runs there.
///
/// # Errors
/// There is no such machine.
pub fn system(case: &Case) -> std::result::Result<System, String> {
    let machine =
        Machine::from_toml_str("structure.toml", &case.machine).map_err(|error| error.to_string())?;
    let Settled { policy, topology, .. } = settle(case, &machine)?;
    policy_system(&machine, &topology, &policy, START_NS).map_err(|error| error.to_string())
}

/// What the settings of a case come to.
struct Settled {
    policy: PolicySettings,
    options: DomainOptions,
    partitions: Vec<Partition>,
    topology: Topology,
}

fn settle(case: &Case, machine: &Machine) -> std::result::Result<Settled, String> {
    let profile = Profile::named(case.profile)?;
    let mut changes = Changes::default();
    for (name, value) in &case.changes {
        if is_feature(name) {
            let name = if *value == 0 { format!("NO_{name}") } else { name.clone() };
            changes.sched_feat(Code::built_in(), &name)?;
        } else {
            changes.set(Code::built_in(), name, *value)?;
        }
    }
    let policy = changes.apply(&PolicySettings::new(profile));
    let partitions: Vec<Partition> = case
        .partition
        .iter()
        .map(|list| list.parse())
        .collect::<std::result::Result<_, _>>()
        .map_err(|e| format!("{e}"))?;
    let options = domain_options(profile, &policy);
    let topology =
        Topology::partitioned(machine, &options, &partitions).map_err(|error| error.to_string())?;
    Ok(Settled { policy, options, partitions, topology })
}

fn simulate(case: &Case, machine: &Machine, workload: &Workload) -> std::result::Result<Verdict, String> {
    assert!(machine.nr_cpus() <= MAX_CPUS);
    let Settled { policy, options, partitions, topology } = settle(case, machine)?;
    let settings =
        Settings { policy, seed: case.seed, task_group_depth: case.task_group_depth, limit_ns: LIMIT_NS };
    let mut trace = NoTrace;
    let events: Vec<Change> =
        case.events.iter().map(|event| event.parse()).collect::<std::result::Result<_, _>>()?;
    let run = Simulation::new(machine, &topology, workload, &settings, &mut trace)
        .and_then(|run| run.with_changes(machine, &options, &partitions, &settings.policy, &events))
        .and_then(Simulation::run);
    match run {
        Ok(outcome) => Ok(Verdict::Ran {
            checks: outcome.checks,
            nr_cpus: topology.partitions[0].len(),
            events: outcome.events,
        }),
        // events may also leave no CPU
        Err(
            error @ (SimError::Deadlock { .. }
            | SimError::Limit { .. }
            | SimError::Affinity { .. }
            | SimError::Change { .. }),
        ) => Ok(Verdict::NoEnd(error.to_string())),
        Err(error) => Err(error.to_string()),
    }
}
