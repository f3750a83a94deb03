//! Several passes of all measurements become one calibration.

use coreward_machine::Machine;

use crate::cpuidle::{self, Exit};
use crate::sample::Sample;
use crate::{Calibration, Contended, Measured, Refill, open};

impl Calibration {
    /// What passes over the same machine, which must not be none, have in the middle. What was measured beside other
    /// programs in half of the passes or more is doubted, and left out otherwise.
    pub fn of_passes(passes: &[Calibration], machine: &Machine) -> Calibration {
        let mut found = Calibration::default();
        for cost in passes.iter().flat_map(|pass| &pass.costs) {
            if found.costs.iter().all(|known| known.name != cost.name) {
                found.costs.push(middle_cost(cost, passes).doubt_if_vague(machine));
            }
        }
        let contended = alike(passes, |pass| &pass.contended, |a, b| a.cpus == b.cpus);
        found.contended = contended.map(middle_contended).collect();
        let refills = alike(passes, |pass| &pass.refills, |a, b| (a.bytes, a.source) == (b.bytes, b.source));
        found.refills = refills.map(middle_refill).collect();
        // an exit is told from the one before it by its place
        let quiet: Vec<_> = passes.iter().filter(|pass| pass.idle_doubt.is_none()).cloned().collect();
        if 2 * quiet.len() > passes.len() {
            found.exits = middle_exits(&quiet);
        } else {
            found.exits = middle_exits(passes);
            found.idle_doubt = passes.iter().find_map(|pass| pass.idle_doubt.clone());
        }
        found.idle_states = cpuidle::states(&found.exits, machine);
        found.open = open::open(&found);
        found
    }
}

/// One cost over all passes.
fn middle_cost(cost: &Measured, passes: &[Calibration]) -> Measured {
    let all: Vec<&Measured> =
        passes.iter().filter_map(|pass| pass.costs.iter().find(|other| other.name == cost.name)).collect();
    let quiet: Vec<&Measured> = all.iter().copied().filter(|cost| cost.doubt.is_none()).collect();
    let (used, doubt) = match 2 * quiet.len() > all.len() {
        true => (quiet, None),
        false => (all.clone(), all.iter().find_map(|cost| cost.doubt.clone())),
    };
    Measured { sample: across(used.iter().map(|cost| cost.sample)), doubt, ..cost.clone() }
}

fn middle_contended(same: Vec<&Contended>) -> Contended {
    Contended {
        cpus: same[0].cpus,
        rmw: across(same.iter().map(|one| one.rmw)),
        read: across(same.iter().map(|one| one.read)),
    }
}

fn middle_refill(same: Vec<&Refill>) -> Refill {
    Refill { line: across(same.iter().map(|one| one.line)), ..*same[0] }
}

fn middle_exits(passes: &[Calibration]) -> Vec<Exit> {
    let most = passes.iter().map(|pass| pass.exits.len()).max().unwrap_or(0);
    let exits = |i: usize| passes.iter().filter_map(move |pass| pass.exits.get(i));
    let exit = |i: usize| Exit {
        exit: across(exits(i).map(|exit| exit.exit)),
        entered: most_frequent(exits(i).filter_map(|exit| exit.entered.clone()).collect()),
    };
    (0..most).map(exit).collect()
}

/// The middle half of the passes. It spreads as the passes do, or as the batches of a pass if that is more.
fn across(samples: impl Iterator<Item = Sample>) -> Sample {
    let samples: Vec<Sample> = samples.collect();
    let passes = Sample::of(samples.iter().map(|sample| sample.ns).collect());
    let batches = Sample::of(samples.iter().map(|sample| sample.spread_ns).collect());
    Sample { ns: passes.ns, spread_ns: passes.spread_ns.max(batches.ns) }
}

/// The most frequent of some names, of several the first by the alphabet.
fn most_frequent(mut names: Vec<String>) -> Option<String> {
    names.sort_unstable_by(|a, b| b.cmp(a));
    names.chunk_by(|a, b| a == b).max_by_key(|same| same.len()).map(|same| same[0].clone())
}

/// What the passes have of each thing that the first of them has. All measure the same things.
fn alike<'a, T: 'a>(
    passes: &'a [Calibration],
    all: impl Fn(&'a Calibration) -> &'a Vec<T> + Copy + 'a,
    same: impl Fn(&T, &T) -> bool + Copy + 'a,
) -> impl Iterator<Item = Vec<&'a T>> {
    let first = passes.first().into_iter().flat_map(all);
    first.map(move |one| passes.iter().flat_map(all).filter(|other| same(one, other)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(ns: f64, doubt: Option<&str>) -> Calibration {
        let sample = Sample { ns, spread_ns: 1.0 };
        let cost = Measured { name: "syscall_ns", sample, how: "", doubt: doubt.map(str::to_owned) };
        let exit = Exit { exit: sample, entered: Some("C1".to_owned()) };
        let contended = Contended { cpus: 1, rmw: sample, read: sample };
        Calibration {
            costs: vec![cost],
            exits: vec![exit],
            contended: vec![contended],
            ..Calibration::default()
        }
    }

    fn of_passes(passes: &[Calibration]) -> Calibration {
        Calibration::of_passes(passes, &Machine::load("2c").unwrap())
    }

    #[test]
    fn one_pass_that_was_disturbed_moves_nothing() {
        let found = of_passes(&[100.0, 104.0, 900.0, 102.0, 98.0].map(|ns| pass(ns, None)));
        assert_eq!(found.costs[0].sample, Sample { ns: 102.0, spread_ns: 4.0 });
        assert_eq!(found.contended[0].rmw.ns, 102.0);
        assert_eq!(found.idle_states[0].exit_ns, 102);
        assert!(found.open.iter().all(|open| open.name != "syscall_ns"), "it was measured");
    }

    #[test]
    fn busy_passes_are_left_out_unless_they_are_most() {
        let (quiet, busy) = (pass(100.0, None), pass(300.0, Some("others")));
        let found = of_passes(&[quiet.clone(), busy.clone(), quiet.clone()]);
        assert_eq!((found.costs[0].sample.ns, &found.costs[0].doubt), (100.0, &None));
        let found = of_passes(&[quiet, busy.clone(), busy]);
        assert_eq!(found.costs[0].doubt.as_deref(), Some("others"));
    }

    #[test]
    fn passes_that_differ_by_more_than_the_figure_are_no_measurement() {
        let found = of_passes(&[10.0, 100.0, 9000.0, 30_000.0, 90_000.0].map(|ns| pass(ns, None)));
        assert_eq!(
            found.costs[0].doubt.as_deref(),
            Some("the spread is wider than the figure, and has the default in it")
        );
    }
}
