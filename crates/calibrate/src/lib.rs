//! What things cost on the machine that this runs on.
//!
//! [`calibrate`] measures, on some of the CPUs that the process may use, what the simulator takes for the costs of a
//! machine ([`coreward_machine::Costs`]). Costs that come together are measured together and told apart by
//! subtraction, so that nothing is counted twice: a write to a pipe contains a system call, and a wakeup contains the
//! write that causes it. Every time is the mean of the middle half of many short batches: what else the machine
//! does now and then does not move it. Everything is measured in several passes, of which again the middle half counts,
//! because a machine is not the same for long: clocks change, and a hypervisor moves its guest's CPUs. The calls go
//! through the C library, as those of programs do: where the kernel guards its returns against speculation, the way back
//! through the library costs more than the library's own instructions (48 ns of 164 on Zen 4, Linux 6.18). What cannot be
//! measured here stays what it was.

mod contended;
mod cpuidle;
mod kernel;
mod local;
mod measure;
mod memory;
mod message;
mod open;
mod others;
mod pairs;
mod passes;
mod process;
mod refill;
mod remote;
mod sample;
#[cfg(test)]
mod tests;
mod thread;
mod tick;
mod timer;

use std::collections::BTreeMap;
use std::io;

use coreward_machine::{Costs, IdleState, Machine, Preemption};

use cpuidle::Exit;
use others::Others;
use pairs::Pairs;

pub use contended::Contended;
pub use open::Open;
pub use refill::Refill;
pub use sample::Sample;

/// One cost, as measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Name of the cost.
    pub name: &'static str,
    /// Its value, in the unit of the cost.
    pub sample: Sample,
    /// How it was measured.
    pub how: &'static str,
    /// Why it is not used, if it is not.
    pub doubt: Option<String>,
}

impl Measured {
    /// A figure that does not rule out what is assumed without it is not used.
    fn doubt_if_vague(self, machine: &Machine) -> Measured {
        let assumed = machine.costs.get(self.name).expect("it is the name of a cost");
        let vague = self.sample.is_vague(assumed);
        let vague =
            vague.then(|| "the spread is wider than the figure, and has the default in it".to_owned());
        let doubt = self.doubt.or(vague);
        Measured { doubt, ..self }
    }
}

/// What a calibration found.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    /// Costs, in the order in which they were measured.
    pub costs: Vec<Measured>,
    /// Idle states as they were met, shallowest first; empty if there is only one CPU.
    pub idle_states: Vec<IdleState>,
    /// Why the idle states are not used, if they are not.
    pub idle_doubt: Option<String>,
    /// Accesses to one line by more and more CPUs. The simulation derives them from transfers; they are here to be
    /// compared.
    pub contended: Vec<Contended>,
    /// Loads of working sets by size and place, likewise.
    pub refills: Vec<Refill>,
    /// The costs that stay as they were.
    pub open: Vec<Open>,
    /// What the idle states are told from.
    exits: Vec<Exit>,
    /// So many costs, and exits, were judged by how busy the machine was.
    judged: usize,
    judged_exits: usize,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// The kernel refuses what a measurement needs.
    #[error("cannot measure {what}: {source}")]
    Refused {
        /// What was to be measured.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The progress was answered so.
    #[error("the measurement was interrupted")]
    Interrupted,
}

/// Measures the machine that this runs on, which `machine` describes, in so many passes, of which each takes a few
/// seconds; at least 1. `progress` is told what comes
/// next, and whether that shall come is its answer.
///
/// # Errors
/// The kernel refuses a pipe, a socket, a thread, or a CPU that the process asks for; or `progress` answers no.
pub fn calibrate(
    machine: &Machine,
    passes: u32,
    mut progress: impl FnMut(&str) -> bool,
) -> Result<Calibration, CalibrateError> {
    let pass = |n| Calibration::pass(machine, |what| progress(&format!("{what}, pass {n} of {passes}")));
    let found = (1..=passes).map(pass).collect::<Result<Vec<_>, _>>()?;
    Ok(Calibration::of_passes(&found, machine))
}

/// What two threads on one CPU take to yield to each other, the system call included, in ns: what is beyond a
/// calibration's figures is the cost of something that goes on meanwhile, such as recording.
///
/// # Errors
/// The kernel refuses a thread, or a CPU that the process asks for.
pub fn switch_ns(machine: &Machine) -> Result<f64, CalibrateError> {
    let _given_back = thread::Allowed::now().map_err(refused(OWN_CPUS))?;
    let cpus = Pairs::of(machine, thread::is_allowed);
    let nothing = Sample { ns: 0.0, spread_ns: 0.0 };
    let switch = local::context_switch(cpus.first, nothing).map_err(refused("context switches"))?;
    Ok(switch.ns)
}

/// What a task takes to wake one on its own CPU that does not preempt it, the write to a pipe included, in ns; it serves
/// as [`switch_ns`] does.
///
/// # Errors
/// As of [`switch_ns`].
pub fn wakeup_ns(machine: &Machine) -> Result<f64, CalibrateError> {
    let _given_back = thread::Allowed::now().map_err(refused(OWN_CPUS))?;
    let cpus = Pairs::of(machine, thread::is_allowed);
    Ok(local::wakeups(cpus.first).map_err(refused("wakeups"))?.wake.ns)
}

/// The costs of moving a line from one CPU to another, by name, in ns.
pub type Transfers = BTreeMap<String, f64>;

/// How long a line takes now from one CPU to another, for each distance that the machine has; takes some milliseconds. In
/// a virtual machine that depends on where the host runs the CPUs at the moment.
///
/// # Errors
/// The kernel refuses a thread, or a CPU that the process asks for.
pub fn transfers(machine: &Machine) -> Result<Transfers, CalibrateError> {
    let _given_back = thread::Allowed::now().map_err(refused(OWN_CPUS))?;
    transfers_between(&Pairs::of(machine, thread::is_allowed))
}

fn transfers_between(cpus: &Pairs) -> Result<Transfers, CalibrateError> {
    let between = |(name, (a, b)): &(&str, (usize, usize))| {
        memory::transfer(*a, *b).map(|sample| ((*name).to_owned(), sample.ns))
    };
    let measured = cpus.by_distance.iter().map(between).collect::<io::Result<_>>();
    measured.map_err(refused("transfers between CPUs"))
}

/// What is refused if a thread cannot know where it may run.
const OWN_CPUS: &str = "the CPUs of the thread";

impl Calibration {
    /// The same without what was measured by forks of this program. They cost more the more memory it has.
    #[must_use]
    pub fn without_forks(mut self) -> Calibration {
        self.costs.retain(|cost| !["fork_ns", "process_exit_ns"].contains(&cost.name));
        self
    }

    /// Measures everything once; see [`calibrate`]. `progress` likewise.
    ///
    /// # Errors
    /// As those of [`calibrate`].
    pub fn pass(
        machine: &Machine,
        mut progress: impl FnMut(&str) -> bool,
    ) -> Result<Calibration, CalibrateError> {
        let _given_back = thread::Allowed::now().map_err(refused(OWN_CPUS))?;
        let cpus = Pairs::of(machine, thread::is_allowed);
        let mut found = Calibration::default();
        let nr_cpus = machine.nr_cpus();
        let mut quiet = Others::since_now();
        let mut next = |found: &mut Calibration, what: &str| {
            found.doubt_if_busy(quiet.share(nr_cpus));
            quiet = Others::since_now();
            if progress(what) { Ok(()) } else { Err(CalibrateError::Interrupted) }
        };
        next(&mut found, "system calls, pipes and sockets")?;
        thread::pin(&[cpus.first]).map_err(refused("a CPU of its own"))?;
        let calls = found.calls()?;
        next(&mut found, "switches and wakeups")?;
        let local = found.local(cpus.first, &calls, machine.preemption == Some(Preemption::Lazy))?;
        next(&mut found, "threads and processes")?;
        found.processes()?;
        next(&mut found, "timers and the tick")?;
        found.timers(&calls)?;
        found.tick(cpus.first, machine.hz)?;
        next(&mut found, "caches and memory")?;
        let near = found.memory(machine, &cpus)?;
        if let (Some(other), Some(transfer)) = (cpus.other, near) {
            next(&mut found, "interrupts and idle CPUs")?;
            found.remote((cpus.first, other), transfer, &calls, &local, machine)?;
        }
        next(&mut found, "contended lines and moved working sets")?;
        found.together(machine, &cpus)?;
        found.doubt_if_busy(quiet.share(nr_cpus));
        // of all pairs, although the thread has only one CPU now
        let after = transfers_between(&cpus)?;
        found.doubt_if_moved(&after);
        Ok(found)
    }

    /// The machine with what was measured; each figure says how and when. What was measured badly stays as it is, and
    /// says so. The bounds of a cost are as far from its mean as the middle half of its batches is wide: if they are
    /// spread as a normal distribution is, four of five batches lie between.
    pub fn apply(&self, machine: &mut Machine, when: &str) {
        for cost in &self.costs {
            let field = Costs::field(cost.name).expect("only costs of the table are measured");
            if let Some(doubt) = &cost.doubt {
                let (ns, spread) = (cost.sample.ns, cost.sample.spread_ns);
                let path = format!("costs.{}", cost.name);
                let before = machine.source(&path).unwrap_or("given").to_owned();
                let source = format!(
                    "{before}; kept, because what was measured is not used: {doubt} (mean {ns:.0}, middle half within \
                     {spread:.0}; {when})"
                );
                machine.sources.insert(path, source);
                continue;
            }
            let value = (cost.sample.ns.round() as u64).clamp(field.min, field.max);
            machine.costs.set(cost.name, value).expect("it is in the range of the cost");
            let source = format!(
                "measured: {}; mean {:.0}, middle half within {:.0}; {when}",
                cost.how, cost.sample.ns, cost.sample.spread_ns
            );
            machine.sources.insert(format!("costs.{}", cost.name), source);
            let spread = (cost.sample.spread_ns.ceil() as u64).max(1);
            let bounds = (value.saturating_sub(spread).max(field.min), (value + spread).min(field.max));
            machine.own_bounds.insert(cost.name.to_owned(), bounds);
        }
        if !self.idle_states.is_empty() && self.idle_doubt.is_none() {
            machine.idle_states = self.idle_states.clone();
            machine
                .idle_states
                .iter_mut()
                .for_each(|state| state.source = format!("{}; {when}", state.source));
        }
        self.record_others(machine, when);
    }

    /// Adds to the machine's sources what is no cost, and why other costs were not measured.
    fn record_others(&self, machine: &mut Machine, when: &str) {
        let text =
            |sample: Sample| format!("{:.1} ns, middle half within {:.1}", sample.ns, sample.spread_ns);
        for Contended { cpus, rmw, read } in &self.contended {
            let source = format!(
                "measured: one line by {cpus} CPUs at a time: read-modify-write {}; read {}; {when}",
                text(*rmw),
                text(*read)
            );
            machine.sources.insert(format!("contended.{cpus}"), source);
        }
        for Refill { bytes, source, line } in &self.refills {
            let place = source.replace(' ', "_");
            let source = format!("measured: a line of {bytes} bytes, {source}: {}; {when}", text(*line));
            machine.sources.insert(format!("refill.{place}.{bytes}"), source);
        }
        for Open { name, why } in &self.open {
            let path = format!("costs.{name}");
            let assumed = machine.source(&path).unwrap_or("given").to_owned();
            machine.sources.insert(path, format!("not measured here, because {why}; {assumed}"));
        }
    }
}

fn refused(what: &'static str) -> impl FnOnce(io::Error) -> CalibrateError {
    move |source| CalibrateError::Refused { what, source }
}
