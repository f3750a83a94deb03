//! What `coreward validate` prints.

use std::io::Write;

use anyhow::Result;
use serde_json::json;

use super::real::Benchmark;
use super::score::{Figures, Pair, SCORED, Score};
use crate::output;
use crate::setup::Host;

/// Pairs of figures with their scores.
pub(super) struct Report<'a> {
    host: &'a Host,
    benchmarks: &'a [Benchmark],
    pairs: &'a [Pair],
    rounds: u32,
    scores: Vec<Score>,
}

impl<'a> Report<'a> {
    pub(super) fn new(host: &'a Host, benchmarks: &'a [Benchmark], pairs: &'a [Pair], rounds: u32) -> Self {
        let scores = SCORED.iter().filter_map(|scored| scored.score(pairs)).collect();
        Report { host, benchmarks, pairs, rounds, scores }
    }

    /// The figures that are further off than allowed, in a sentence.
    pub(super) fn unmet(&self) -> Vec<String> {
        let names: Vec<_> = self.scores.iter().filter(|score| !score.met).map(|score| score.name).collect();
        let sentence = || format!("further off than allowed: {}", names.join(", "));
        if names.is_empty() { Vec::new() } else { vec![sentence()] }
    }

    pub(super) fn json(&self, out: &mut dyn Write) -> Result<()> {
        output::json(
            out,
            &json!({
                "machine": self.host.machine.name,
                "profile": self.host.policy.profile.name(),
                "task_group_depth": self.host.task_group_depth,
                "rounds": self.rounds,
                "benchmarks": self.pairs,
                "scores": self.scores,
                "notes": self.notes(),
            }),
        )
    }

    pub(super) fn text(&self, out: &mut dyn Write) -> Result<()> {
        let Report { host, rounds, .. } = self;
        writeln!(out, "machine   {}", host.machine.name)?;
        writeln!(out, "profile   {}", host.policy.profile.name())?;
        let changed = host.policy.deviations();
        if !changed.is_empty() {
            writeln!(out, "changed   {}", changed.join(", "))?;
        }
        writeln!(out, "rounds    {rounds}, medians of which are compared: real / simulated\n")?;
        let width = self.pairs.iter().map(|pair| pair.benchmark.len()).max().unwrap_or(0);
        writeln!(
            out,
            "{:width$} {:>15} {:>15} {:>17} {:>13} {:>15}",
            "", "time s", "CPU us an op", "ops a switch", "preempted %", "migrations"
        )?;
        for pair in self.pairs {
            let (real, simulated) = (&pair.real, &pair.simulated);
            let both = |of: fn(&Figures) -> f64, decimals: usize| {
                format!("{:.decimals$} / {:.decimals$}", of(real), of(simulated))
            };
            let migrations =
                |figures: &Figures| figures.migrations.map_or("-".to_owned(), |n| format!("{n:.0}"));
            writeln!(
                out,
                "{:width$} {:>15} {:>15} {:>17} {:>13} {:>15}",
                pair.benchmark,
                both(|f| f.time_s, 2),
                both(|f| f.cpu_us_per_operation, 2),
                both(|f| f.operations_per_switch, 1),
                both(|f| f.involuntary_pct, 0),
                format!("{} / {}", migrations(real), migrations(simulated)),
            )?;
        }
        writeln!(out)?;
        for score in &self.scores {
            writeln!(out, "{}  {}", if score.met { "met    " } else { "not met" }, sentence(score))?;
        }
        for note in self.notes() {
            writeln!(out, "note     {note}")?;
        }
        Ok(())
    }

    /// What a reader has to know about the figures.
    fn notes(&self) -> Vec<String> {
        let missing = self.benchmarks.iter().filter_map(|benchmark| {
            benchmark.missing.as_ref().map(|missing| format!("left out: {}: {missing}", benchmark.line))
        });
        let disturbed = self.benchmarks.iter().filter(|benchmark| benchmark.disturbed > 0).map(|benchmark| {
            let rounds = benchmark.disturbed;
            format!(
                "{}: other programs ran in {rounds} of {} rounds, even when repeated",
                benchmark.line, self.rounds
            )
        });
        missing.chain(disturbed).collect()
    }
}

fn sentence(score: &Score) -> String {
    let worst_allowed = score.allowed_worst_pct.map_or(String::new(), |pct| format!(" (allowed {pct:.0} %)"));
    format!(
        "{}: off by {:.0} % in the median of {} benchmarks (allowed {:.0} %), by {:.0} % at worst{worst_allowed}: {}",
        score.name,
        score.median_pct,
        score.benchmarks,
        score.allowed_median_pct,
        score.worst_pct,
        score.worst
    )
}
