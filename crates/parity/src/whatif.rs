//! What if the policy had other settings: which recorded decisions would change, and which migrations would be avoided or
//! added.
//!
//! Both settings decide on the same recorded states. The effect of a change on later states is not visible here; the
//! simulator shows it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::path::Path;
use crate::record::Record;
use crate::replay::{Choice, Outcome, Replay};
use coreward_policy::Distance;

/// How many decisions of a path there are, and how many of them change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Decisions of the path, as the kernel was set.
    pub decisions: u64,
    /// Those that the other setting decides differently.
    pub changed: u64,
}

/// Placements that leave the previous CPU, by how far they go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Migrations {
    /// As the kernel was set.
    pub before: u64,
    /// With the other setting.
    pub after: u64,
}

/// The comparison of two settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    changes: BTreeMap<Path, Changes>,
    migrations: BTreeMap<Distance, Migrations>,
}

/// A machine with the other setting, and the results so far.
pub struct WhatIf {
    replay: Replay,
    effect: Effect,
}

impl WhatIf {
    /// `replay` has the other setting.
    pub fn new(replay: Replay) -> WhatIf {
        WhatIf { replay, effect: Effect::default() }
    }

    /// Repeats a decision; `outcomes` are those with the kernel's setting.
    pub fn count(&mut self, record: &Record, outcomes: &[Outcome]) {
        let (Some(after), Some(outcome)) = (self.replay.decide(record), outcomes.first()) else { return };
        let changes = self.effect.changes.entry(outcome.path).or_default();
        changes.decisions += 1;
        changes.changed += u64::from(after != outcome.policy);
        if let (Record::Placement(placement), Choice::Cpu(before), Choice::Cpu(after)) =
            (record, &outcome.policy, &after)
        {
            let prev = placement.head.prev_cpu as usize;
            let machine = self.replay.machine();
            let distance = |cpu: i32| machine.distance(prev, cpu as usize);
            self.effect.migrations.entry(distance(*before)).or_default().before += 1;
            self.effect.migrations.entry(distance(*after)).or_default().after += 1;
        }
    }

    /// What the other setting changes.
    pub fn into_effect(self) -> Effect {
        self.effect
    }
}

impl Effect {
    /// Adds the results of another file.
    pub fn add(&mut self, other: &Effect) {
        for (path, changes) in &other.changes {
            let sum = self.changes.entry(*path).or_default();
            sum.decisions += changes.decisions;
            sum.changed += changes.changed;
        }
        for (distance, migrations) in &other.migrations {
            let sum = self.migrations.entry(*distance).or_default();
            sum.before += migrations.before;
            sum.after += migrations.after;
        }
    }

    /// The paths that occur, in the order of reports.
    pub fn changes(&self) -> impl Iterator<Item = (Path, &Changes)> {
        self.changes.iter().map(|(path, changes)| (*path, changes))
    }

    /// How far placements go from the previous CPU, the nearest first; those that stay there are left out.
    pub fn migrations(&self) -> impl Iterator<Item = (Distance, Migrations)> {
        let of = |distance| self.migrations.get(&distance).copied().unwrap_or_default();
        Distance::ALL
            .into_iter()
            .filter(|d| *d != Distance::Same)
            .map(move |distance| (distance, of(distance)))
    }

    /// Both as tables; `setting` is the other setting's name.
    pub fn render(&self, setting: &str) -> String {
        let mut out = format!("what if {setting}\n{:28} {:>10} {:>10}\n", "path", "decisions", "changed");
        for (path, changes) in self.changes() {
            _ = writeln!(out, "{:28} {:>10} {:>10}", path.name(), changes.decisions, changes.changed);
        }
        _ = writeln!(
            out,
            "\n{:28} {:>10} {:>10} {:>10}",
            "tasks placed elsewhere", "before", "after", "change"
        );
        for (distance, migrations) in self.migrations() {
            let change = migrations.after as i64 - migrations.before as i64;
            let name = format!("to another CPU, {}", distance.text());
            _ = writeln!(out, "{name:28} {:>10} {:>10} {change:>+10}", migrations.before, migrations.after);
        }
        out
    }
}
