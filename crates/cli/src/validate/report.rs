//! What `coreward validate` prints.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use serde_json::{Value, json};

use super::observed::Observed;
use super::real::Ran;
use super::score::{Compared, Figures, MOST_OFF, Pair, SCORED, Score};
use super::stored::Stored;
use crate::output;
use crate::setup::Host;

/// Pairs of figures with their scores.
pub(super) struct Report<'a> {
    host: &'a Host,
    stored: &'a Stored,
    pub(super) pairs: &'a [Pair],
    pub(super) scores: Vec<Score>,
}

/// A column of a table: its heading, and the text of a benchmark's cell.
pub(super) type Column = (&'static str, fn(&Pair) -> String);

/// What can be counted of every run.
pub(super) const COUNTED: [Column; 5] = [
    ("time s", |pair| both(pair, |f| Some(f.time_s), 2, "time")),
    ("CPU us an op", |pair| both(pair, |f| Some(f.cpu_us_per_operation), 2, "CPU time an operation")),
    ("ops a switch", |pair| both(pair, |f| Some(f.operations_per_switch), 1, "operations a switch")),
    ("preempted %", |pair| both(pair, |f| Some(f.involuntary_pct), 0, "preemptions")),
    ("migrations", |pair| both(pair, |f| f.migrations, 0, "migrations")),
];

/// What tracepoints show.
pub(super) const OBSERVED: [Column; 7] = [
    ("wakeup us p50", |pair| {
        both(pair, |f| Some(f.observed.as_ref()?.wakeup_us_p50), 1, "wakeup latency p50")
    }),
    ("wakeup us p99", |pair| {
        both(pair, |f| Some(f.observed.as_ref()?.wakeup_us_p99), 0, "wakeup latency p99")
    }),
    ("run us p50", |pair| both(pair, |f| Some(f.observed.as_ref()?.run_us_p50), 1, "")),
    ("run us p90", |pair| both(pair, |f| Some(f.observed.as_ref()?.run_us_p90), 0, "")),
    ("migrations by distance", |pair| {
        let of = |f: &Figures| f.observed.as_ref().map_or("-".into(), distances);
        format!("{} / {}", of(&pair.real), of(&pair.simulated))
    }),
    ("recording, %", |pair| {
        let slower = pair.real.observed.as_ref().and_then(|observed| observed.recording_pct);
        slower.map_or("-".into(), |pct| format!("{pct:+.0}"))
    }),
    ("waited for, %", |pair| pair.real.observed.as_ref().map_or("-".into(), waits)),
];

/// The real and the simulated figure, marked if they lie further apart than the median benchmark's may.
fn both(pair: &Pair, of: impl Fn(&Figures) -> Option<f64>, decimals: usize, scored: &str) -> String {
    let text = |figures| of(figures).map_or("-".to_owned(), |value| format!("{value:.decimals$}"));
    let off = pair.compared().iter().any(|compared| compared.figure == scored && !compared.within);
    format!("{} / {}{}", text(&pair.real), text(&pair.simulated), if off { " !" } else { "" })
}

fn distances(observed: &Observed) -> String {
    let one = |(name, n): (&String, &f64)| format!("{name} {n:.0}");
    let all: Vec<_> = observed.migrations_by_distance.iter().map(one).collect();
    if all.is_empty() { "0".into() } else { all.join(" ") }
}

/// The three that are waited for most.
fn waits(observed: &Observed) -> String {
    let mut waits: Vec<_> = observed.waits_pct.iter().collect();
    waits.sort_by(|a, b| b.1.total_cmp(a.1));
    let shown = waits.iter().take(3).filter(|(_, pct)| **pct >= 1.0);
    let all: Vec<_> = shown.map(|(what, pct)| format!("{what} {pct:.0}")).collect();
    if all.is_empty() { "-".into() } else { all.join(", ") }
}

impl<'a> Report<'a> {
    pub(super) fn new(host: &'a Host, stored: &'a Stored, pairs: &'a [Pair]) -> Self {
        let scores = SCORED.iter().filter_map(|scored| scored.score(pairs)).collect();
        Report { host, stored, pairs, scores }
    }

    /// The figures that are further off than allowed, each with the benchmark that is furthest off, in a sentence.
    pub(super) fn unmet(&self) -> Vec<String> {
        let unmet = self.scores.iter().filter(|score| !score.met);
        let names: Vec<_> = unmet
            .map(|Score { name, worst_pct, worst, .. }| format!("{name} ({worst_pct:.0} % of `{worst}`)"))
            .collect();
        let sentence = || format!("further off than allowed: {}", names.join(", "));
        if names.is_empty() { Vec::new() } else { vec![sentence()] }
    }

    pub(super) fn json(&self, out: &mut dyn Write) -> Result<()> {
        let Stored {
            kernel,
            preemption,
            vcpu_pack,
            task_group_depth,
            rounds,
            record_ns,
            record_wakeup_ns,
            notes,
            ..
        } = self.stored;
        let benchmarks = self.pairs.iter().zip(&self.stored.benchmarks).map(|(pair, ran)| {
            let mut benchmark = serde_json::to_value(pair)?;
            benchmark["disturbed"] = ran.disturbed.into();
            benchmark["compared"] = serde_json::to_value(pair.compared())?;
            benchmark["transfers"] = serde_json::to_value(&ran.transfers)?;
            benchmark["recorded_transfers"] = serde_json::to_value(&ran.recorded_transfers)?;
            Ok(benchmark)
        });
        output::json(
            out,
            &json!({
                "machine": self.host.machine.name,
                "cpus": self.host.machine.nr_cpus(),
                "kernel": kernel,
                "profile": self.host.policy.profile.name(),
                "preemption": preemption,
                "vcpu_pack": vcpu_pack,
                "changed": self.host.policy.deviations(),
                "task_group_depth": task_group_depth,
                "rounds": rounds,
                "record_ns": record_ns,
                "record_wakeup_ns": record_wakeup_ns,
                "benchmarks": benchmarks.collect::<Result<Vec<Value>>>()?,
                "scores": self.scores,
                "notes": notes,
            }),
        )
    }

    /// What was compared, as pairs of a name and its text.
    pub(super) fn heading(&self) -> Vec<(&'static str, String)> {
        let mut heading = vec![
            ("machine", self.host.machine.name.clone()),
            ("profile", format!("{}, for Linux {}", self.host.policy.profile.name(), self.stored.kernel)),
            ("rounds", format!("{}, medians of which are compared: real / simulated", self.stored.rounds)),
        ];
        let changed = self.host.policy.deviations();
        if !changed.is_empty() {
            heading.push(("changed", changed.join(", ")));
        }
        heading
    }

    pub(super) fn text(&self, out: &mut dyn Write) -> Result<()> {
        for (name, text) in self.heading() {
            writeln!(out, "{name:9} {text}")?;
        }
        writeln!(out)?;
        self.table(out, &COUNTED)?;
        if self.pairs.iter().any(|pair| pair.real.observed.is_some()) {
            self.table(out, &OBSERVED)?;
        }
        for score in &self.scores {
            writeln!(out, "{}  {}", if score.met { "met    " } else { "not met" }, sentence(score))?;
        }
        for note in self.notes() {
            writeln!(out, "note     {note}")?;
        }
        Ok(())
    }

    fn table(&self, out: &mut dyn Write, columns: &[Column]) -> Result<()> {
        let first = self.pairs.iter().map(|pair| pair.benchmark.len()).max().unwrap_or(0);
        let mut rows: Vec<Vec<String>> =
            vec![columns.iter().map(|(heading, _)| (*heading).to_owned()).collect()];
        rows.extend(self.pairs.iter().map(|pair| columns.iter().map(|(_, text)| text(pair)).collect()));
        let width = |i: usize| rows.iter().map(|row| row[i].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns.len()).map(width).collect();
        let names = std::iter::once("").chain(self.pairs.iter().map(|pair| pair.benchmark.as_str()));
        for (name, row) in names.zip(&rows) {
            write!(out, "{name:first$}")?;
            for (cell, width) in row.iter().zip(&widths) {
                write!(out, "  {cell:>width$}")?;
            }
            writeln!(out)?;
        }
        Ok(writeln!(out)?)
    }

    /// How long lines took from one CPU to another while the benchmarks ran.
    fn transfers(&self) -> impl Iterator<Item = String> {
        let rounds = |ran: &'a Ran| ran.transfers.iter().chain(&ran.recorded_transfers);
        let mut ranges: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for (name, ns) in self.stored.benchmarks.iter().flat_map(rounds).flatten() {
            let (low, high) = ranges.entry(name).or_insert((*ns, *ns));
            (*low, *high) = (low.min(*ns), high.max(*ns));
        }
        ranges.into_iter().map(|(name, (low, high))| {
            let simulated = match self.host.policy.costs.iter().find(|(given, _)| given == name) {
                Some((_, ns)) => format!("all simulated ones have {ns}, as --cost says"),
                None => "each simulated one has that of its real one".into(),
            };
            format!("{name} was {low:.0} to {high:.0} around the rounds; {simulated}")
        })
    }

    /// What a reader has to know about the figures.
    pub(super) fn notes(&self) -> Vec<String> {
        let mark = "!: further off than the median benchmark may be; an op is a message, an event that the benchmark \
                    counts, or else a millisecond";
        let longer = self
            .pairs
            .iter()
            .filter(|pair| pair.fixed_time && pair.real.time_s > 1.2 * pair.simulated.time_s);
        let longer = longer.map(|pair| {
            format!(
                "{}: it took {:.2} s and not {:.2} s; what it did besides is part of its figures (rt-app calibrates itself \
                 unless `calibration` is a number)",
                pair.benchmark, pair.real.time_s, pair.simulated.time_s
            )
        });
        let recorded = self.pairs.iter().any(|pair| pair.real.observed.is_some());
        let recording = recorded.then(|| {
            let Stored { record_ns, record_wakeup_ns, .. } = self.stored;
            let simulated = record_ns.map_or(String::new(), |ns| {
                let wakeup_ns = record_wakeup_ns.unwrap_or(ns);
                format!("; the simulated ones take {ns:.0} ns longer for each switch, and {wakeup_ns:.0} for each wakeup")
            });
            format!(
                "recording, %: how much more CPU time the recorded rounds took, which is part of their latencies and run \
                 lengths{simulated}"
            )
        });
        std::iter::once(mark.to_owned())
            .chain(self.host.notes.iter().cloned())
            .chain(self.transfers())
            .chain(recording)
            .chain(self.stored.notes.iter().cloned())
            .chain(longer)
            .collect()
    }
}

/// A score in words.
pub(super) fn sentence(score: &Score) -> String {
    let most = 100.0 * (MOST_OFF - 1.0);
    let worst = match score.worst_pct {
        pct if pct >= most => format!("a factor of {MOST_OFF:.0} or more"),
        pct => format!("{pct:.0} %"),
    };
    let worst_allowed = score.allowed_worst_pct.map_or(String::new(), |pct| format!(" (allowed {pct:.0} %)"));
    format!(
        "{}: off by {:.0} % in the median of {} benchmarks (allowed {:.0} %), by {worst} at worst{worst_allowed}: {}",
        score.name, score.median_pct, score.benchmarks, score.allowed_median_pct, score.worst
    )
}

/// A comparison in words: its ratio, and how far the real rounds lie apart.
pub(super) fn ratio(compared: &Compared) -> String {
    let spread = compared.spread_pct.map_or(String::new(), |pct| format!(" (rounds within {pct:.0} %)"));
    format!("{:.2}{spread}", compared.ratio)
}
