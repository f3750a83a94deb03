//! Which idle states a CPU enters, as the kernel counts them, and what leaving them takes.

use std::fs;
use std::path::Path;

use coreward_machine::{IdleState, Machine};

use crate::sample::Sample;

/// How long CPUs have been idle before they are woken, in us. Going idle is over by then: in a virtual machine it takes up
/// to 10 us, as the tick is stopped.
pub(crate) const IDLE_US: [u64; 9] = [20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

/// An idle time belongs to the next state if waking takes that much longer than in the state before.
/// assumption: twice what exits vary by (docs/results/validation-zen-4.md), and less than what the states of a table differ by.
const DEEPER: f64 = 1.5;
/// And by this, in ns. assumption: less is noise of a wakeup that takes microseconds.
const STEP_NS: f64 = 500.0;
/// The longest exit from a state that polls, in ns.
/// assumption: a line's way to another CPU takes a fifth of that, an interrupt to one that halts more.
const POLLING_NS: f64 = 500.0;

/// The idle states of a CPU, each with how often it was entered. Empty without cpuidle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage(Vec<(String, u64)>);

impl Usage {
    pub(crate) fn of_cpu(cpu: usize) -> Usage {
        Usage::read(&Path::new("/sys/devices/system/cpu").join(format!("cpu{cpu}/cpuidle")))
    }

    fn read(directory: &Path) -> Usage {
        let state = |i: u32| {
            let file = |name: &str| fs::read_to_string(directory.join(format!("state{i}/{name}"))).ok();
            let name = file("name")?.trim().replace(char::is_whitespace, "-");
            Some((name, file("usage")?.trim().parse().ok()?))
        };
        Usage((0..).map_while(state).collect())
    }

    /// The state that was entered most often since `before`.
    pub(crate) fn most_since(&self, before: &Usage) -> Option<&str> {
        let entered =
            self.0.iter().zip(&before.0).map(|((name, now), (_, then))| (now.saturating_sub(*then), name));
        entered.max_by_key(|(n, _)| *n).filter(|(n, _)| *n > 0).map(|(_, name)| name.as_str())
    }
}

/// What waking takes after one of [`IDLE_US`].
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    /// Beyond what waking takes on a busy CPU.
    pub(crate) exit: Sample,
    /// The state that the kernel mostly entered, if it counts them.
    pub(crate) entered: Option<String>,
}

/// The idle states that the exits after each of [`IDLE_US`] tell apart. The first one polls if the machine's does. Where the
/// kernel enters the same state for a longer time, it is not the kernel that goes deeper.
pub(crate) fn states(exits: &[Exit], machine: &Machine) -> Vec<IdleState> {
    let polling = machine.idle_states.first().is_some_and(|state| state.polling);
    let mut states: Vec<IdleState> = Vec::new();
    // what the kernel entered before the last state began
    let mut before = None;
    for (us, Exit { exit, entered }) in IDLE_US.iter().zip(exits) {
        let last = states.last().map(|state| state.exit_ns as f64);
        if last.is_some_and(|last| exit.ns < DEEPER * last + STEP_NS) {
            continue;
        }
        let first = states.is_empty();
        states.push(IdleState {
            name: entered.as_ref().map_or(format!("after-{us}us"), |entered| format!("{entered}-after-{us}us")),
            exit_ns: exit.ns.round() as u64,
            residency_ns: if first { 0 } else { us * 1000 },
            polling: first && polling && exit.ns < POLLING_NS,
            promoted: before == Some(entered),
            source: format!(
                "measured: wakeup latency of a CPU idle for {us} us beyond that of a busy one, middle half within {:.0} ns",
                exit.spread_ns
            ),
        });
        before = Some(entered);
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_that_was_entered_most_often_counts() {
        let usage = |numbers: [u64; 2]| {
            Usage(["POLL", "haltpoll-idle"].map(str::to_owned).into_iter().zip(numbers).collect())
        };
        let before = usage([1000, 10]);
        assert_eq!(usage([1003, 67]).most_since(&before), Some("haltpoll-idle"));
        assert_eq!(usage([1000, 10]).most_since(&before), None);
        assert_eq!(Usage::default().most_since(&Usage::default()), None);
    }

    #[test]
    fn names_and_counts_are_read_until_there_is_no_further_state() {
        let directory = tempfile::tempdir().unwrap();
        for (i, (name, usage)) in [("POLL\n", "3\n"), ("haltpoll idle\n", "9\n")].iter().enumerate() {
            let state = directory.path().join(format!("state{i}"));
            fs::create_dir(&state).unwrap();
            fs::write(state.join("name"), name).unwrap();
            fs::write(state.join("usage"), usage).unwrap();
        }
        let usage = Usage::read(directory.path());
        assert_eq!(usage.0, [("POLL".to_owned(), 3), ("haltpoll-idle".to_owned(), 9)]);
    }

    #[test]
    fn deeper_states_begin_where_waking_takes_longer() {
        let machine = Machine::load("2c").unwrap();
        let us = [0.0, 0.1, 0.1, 2.0, 2.1, 2.2, 30.0, 31.0, 33.0];
        let entered = |us: f64| (us > 1.0).then(|| "C1".to_owned());
        let exits =
            us.map(|us| Exit { exit: Sample { ns: us * 1000.0, spread_ns: 10.0 }, entered: entered(us) });
        let states = states(&exits, &machine);
        let names: Vec<_> = states.iter().map(|state| state.name.as_str()).collect();
        assert_eq!(names, ["after-20us", "C1-after-200us", "C1-after-2000us"]);
        let exits: Vec<_> = states.iter().map(|s| (s.residency_ns, s.exit_ns)).collect();
        assert_eq!(exits, [(0, 0), (200_000, 2_000), (2_000_000, 30_000)]);
        let promoted: Vec<_> = states.iter().map(|s| s.promoted).collect();
        assert_eq!(promoted, [false, false, true], "the kernel entered C1 for the last two");
    }
}
