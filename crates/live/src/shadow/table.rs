//! The report for people.

use std::fmt::Write;
use std::time::Duration;

use coreward_input::printable;
use coreward_live_args::{By, Policy};

use super::Counted;
use super::count::{DISTANCES, KINDS, Moves, mean, percent};

/// Rows of commands or cgroups.
const ROWS: usize = 20;

fn policy(named: &Policy) -> String {
    let words = std::iter::once(named.profile.clone()).chain(named.options.words());
    words.collect::<Vec<_>>().join(" ")
}

fn share(part: u64, whole: u64) -> String {
    percent(part, whole).map_or("-".into(), |p| format!("{p:.1} %"))
}

/// Moves that the policy adds, less those that it avoids.
fn net(added: &Moves, avoided: &Moves, distance: usize) -> String {
    let net = i128::from(added[distance]) - i128::from(avoided[distance]);
    if net == 0 { "0".into() } else { format!("{net:+}") }
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{v:.1}"))
}

/// What was decided in `elapsed`.
pub(super) fn render(named: &Policy, elapsed: Duration, counted: &Counted, by: Option<By>) -> String {
    let mut out = String::new();
    let totals = &counted.totals;
    let seconds = elapsed.as_secs_f64();
    // writing to a string does not fail
    let _ = writeln!(out, "the kernel against {}, {seconds:.1} s\n", policy(named));
    let _ = writeln!(
        out,
        "{:<16}{:>12}{:>12}{:>11}   migrations, more or less: {}",
        "",
        "decisions",
        "per s",
        "elsewhere",
        DISTANCES.map(|d| format!("{d:>9}")).concat()
    );
    for (name, counts) in KINDS.iter().zip(&totals.kinds) {
        let nets = (1..=DISTANCES.len()).map(|d| format!("{:>9}", net(&counts.added, &counts.avoided, d)));
        let _ = writeln!(
            out,
            "{name:<16}{:>12}{:>12.0}{:>11}   {:>26}{}",
            counts.decisions,
            counts.decisions as f64 / seconds,
            share(counts.elsewhere, counts.decisions),
            "",
            nets.collect::<String>()
        );
    }
    let drift = &totals.drift;
    let _ = writeln!(
        out,
        "\n{} ns a decision; {} wakeups stayed where they were queued, {} events were lost",
        number(mean(totals.ns, totals.decided)),
        totals.unplaced,
        totals.lost
    );
    let _ = writeln!(
        out,
        "its picture of a CPU against the kernel's state: idle differs in {}, running tasks in {} (by {}), utilisation by {}",
        share(drift.idle, drift.samples),
        share(drift.nr_running, drift.samples),
        number(mean(drift.nr_running_sum, drift.samples)),
        number(mean(drift.util_sum, drift.samples)),
    );
    if let Some(by) = by {
        let _ = writeln!(
            out,
            "\n{:<44}{:>12}{:>11}{}",
            by.name(),
            "decisions",
            "elsewhere",
            DISTANCES.map(|d| format!("{d:>9}")).concat()
        );
        for (name, s) in counted.shares.iter().take(ROWS) {
            let nets = (1..=DISTANCES.len()).map(|d| format!("{:>9}", net(&s.added, &s.avoided, d)));
            let _ = writeln!(
                out,
                "{:<44}{:>12}{:>11}{}",
                printable(name),
                s.decisions,
                share(s.elsewhere, s.decisions),
                nets.collect::<String>()
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow::count::{Counts, Share};
    use coreward_state::Options;

    #[test]
    fn migrations_are_net_and_shares_of_nothing_are_dashes() {
        let mut counted = Counted::default();
        counted.totals.kinds[0] = Counts {
            decisions: 200,
            elsewhere: 30,
            avoided: [0, 0, 25, 0, 2],
            added: [25, 2, 0, 0, 0],
            ..Counts::default()
        };
        let named = Policy {
            profile: "linux-6.12".into(),
            options: Options { sched_feat: vec!["NO_WA_IDLE".into()], set: vec![] },
        };
        let mut text_of = |comm: &str| {
            counted.shares = vec![(comm.into(), Share { decisions: 200, elsewhere: 30, ..Share::default() })];
            render(&named, Duration::from_secs(2), &counted, Some(By::Comm))
        };
        let text = text_of("hackbench");
        let words = |row: &str| {
            let line = text.lines().find(|l| l.starts_with(row)).unwrap();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(text.starts_with("the kernel against linux-6.12 NO_WA_IDLE, 2.0 s"));
        assert_eq!(words("wakeup"), ["wakeup", "200", "100", "15.0", "%", "+2", "-25", "0", "-2"]);
        assert_eq!(words("fork"), ["fork", "0", "0", "-", "0", "0", "0", "0"]);
        // any task may call itself anything
        let renamed = text_of("\u{1b}[2J");
        assert!(renamed.contains("\n\\u{1b}[2J ") && !renamed.contains('\u{1b}'), "{renamed}");
        assert_eq!(words("hackbench"), ["hackbench", "200", "15.0", "%", "0", "0", "0", "0"]);
    }
}
