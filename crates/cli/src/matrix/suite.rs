//! The workloads of a matrix: rows of a TOML file, whose numbers may depend on the machine's CPUs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use coreward_input::{did_you_mean, line_at, toml_refusal, twice};
use coreward_metrics::fidelity::benchmark;
use coreward_metrics::{Better, Metric};
use coreward_workload::{Scale, Workload, recorded, rt_app};
use serde::{Deserialize, Serialize};
use toml::Spanned;

/// What is run unless `--suite` names another file.
pub(crate) const BUILT_IN: &str = include_str!("suite.toml");

/// Largest suite, in KiB, and the most rows of one.
const MAX_KIB: u64 = 1 << 10;
const MAX_ROWS: usize = 64;
/// A row's name is a column of a table of 80.
const MAX_NAME: usize = 18;
/// What a cell has room for.
const MAX_METRICS: usize = 2;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    #[serde(default)]
    row: Vec<Spanned<RawRow>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    name: String,
    workload: String,
    metrics: Vec<Metric>,
    reason: String,
    #[serde(default)]
    min_cpus: usize,
    rt_app: Option<String>,
}

/// A workload at every size of machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Its command line, with numbers that depend on the machine in `<>`.
    pub(crate) workload: String,
    /// What a cell shows, the most important one first; empty for what a comparison shows.
    pub(crate) metrics: Vec<Metric>,
    pub(crate) reason: String,
    /// The CPUs of the smallest machine that it fits.
    pub(crate) min_cpus: usize,
    /// What stands in the file that the command line names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rt_app: Option<String>,
    /// For messages.
    #[serde(skip)]
    place: String,
}

/// The rows that are to be run: those of the built-in suite or of a file, of which `chosen` names some, or command lines
/// instead of them.
///
/// # Errors
/// The file cannot be read or is refused, or there is no row of a name.
pub(crate) fn rows(file: Option<&Path>, chosen: &[String]) -> Result<Vec<Row>> {
    let all = match file {
        None => parse("the built-in suite", BUILT_IN)?,
        Some(path) => {
            let text = coreward_input::read_text(path, MAX_KIB)
                .map_err(|error| anyhow!("--suite: cannot read {}: {error}", path.display()))?;
            parse(&path.display().to_string(), &text)?
        }
    };
    if chosen.is_empty() {
        return Ok(all);
    }
    if let Some(name) = twice(chosen) {
        bail!("--workload: `{name}` is named twice");
    }
    let mut rows: Vec<Row> = Vec::new();
    for name in chosen {
        let is_command_line = name.contains(char::is_whitespace) || recorded::Form::of(name).is_some();
        let found: Vec<Row> = match is_command_line {
            true => vec![Row::of_command_line(name, rows.len())],
            false => {
                all.iter().filter(|row| row.name == *name || row.benchmark() == *name).cloned().collect()
            }
        };
        if found.is_empty() {
            let names = || all.iter().map(|row| row.name.as_str());
            let hint = did_you_mean(name, names());
            let names: Vec<_> = names().collect();
            bail!(
                "--workload: no row of the suite is called `{name}`, {hint}allowed are {}, the name of a benchmark for all \
                 of its rows, and a command line with options",
                names.join(", ")
            );
        }
        rows.extend(
            found
                .into_iter()
                .filter(|row| rows.iter().all(|other| other.name != row.name))
                .collect::<Vec<_>>(),
        );
    }
    Ok(rows)
}

/// Reads a suite.
fn parse(path: &str, text: &str) -> Result<Vec<Row>> {
    let raw: RawSuite = toml::from_str(text).map_err(|error| {
        let place =
            error.span().map_or(path.to_owned(), |span| format!("{path}:{}", line_at(text, span.start)));
        anyhow!("{place}: {}", toml_refusal(error.message()))
    })?;
    if !(1..=MAX_ROWS).contains(&raw.row.len()) {
        bail!("{path}: {} rows, allowed are 1 to {MAX_ROWS} [[row]] tables", raw.row.len());
    }
    let mut names = BTreeSet::new();
    let mut rows = Vec::new();
    for row in raw.row {
        let place = format!("{path}:{}", line_at(text, row.span().start));
        let RawRow { name, workload, metrics, reason, min_cpus, rt_app } = row.into_inner();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
            bail!("{place}: name: `{name}`, allowed are 1 to {MAX_NAME} of a-z, 0-9 and -");
        }
        if !names.insert(name.clone()) {
            bail!("{place}: name: `{name}` is the name of another row too");
        }
        if !(1..=MAX_METRICS).contains(&metrics.len()) {
            bail!("{place}: metrics: {} metrics, allowed are 1 to {MAX_METRICS}", metrics.len());
        }
        if let Some(metric) = twice(&metrics) {
            bail!("{place}: metrics: {} is there twice", metric.name());
        }
        if let Some(metric) = metrics.iter().find(|metric| metric.better() == Better::Neutral) {
            bail!(
                "{place}: metrics: neither direction of {} is better, so it shows no damage",
                metric.name()
            );
        }
        if rt_app.is_some() != (benchmark(&workload) == "rt-app") {
            bail!("{place}: rt_app: a row has it if its workload is `rt-app NAME`, and only then");
        }
        let row = Row { name, workload, metrics, reason, min_cpus, rt_app, place };
        // a mistake shows before anything is run, whichever machines there are
        row.on(row.min_cpus.max(1), Scale::FULL)?;
        rows.push(row);
    }
    Ok(rows)
}

impl Row {
    /// A row that the command line gives, with what a comparison shows of such a workload.
    fn of_command_line(workload: &str, number: usize) -> Row {
        Row {
            name: format!("workload-{}", number + 1),
            workload: workload.to_owned(),
            metrics: Vec::new(),
            reason: "given with --workload".to_owned(),
            min_cpus: 0,
            rt_app: None,
            place: "--workload".to_owned(),
        }
    }

    /// The name of the benchmark, without its options.
    pub(crate) fn benchmark(&self) -> String {
        benchmark(&self.workload)
    }

    /// The workload, or this part of it, on a machine of so many CPUs.
    ///
    /// # Errors
    /// A number or the command line is refused.
    pub(crate) fn on(&self, cpus: usize, scale: Scale) -> Result<Workload> {
        let expand = |text: &str| sized(text, cpus).map_err(|what| anyhow!("{}: {what}", self.place));
        let command_line = expand(&self.workload)?;
        let refused = |error: anyhow::Error| error.context(format!("{}: workload", self.place));
        match &self.rt_app {
            None => coreward_workload::parse(&command_line, scale).map_err(|error| refused(error.into())),
            Some(text) => {
                let name = command_line.split_whitespace().nth(1).unwrap_or_default();
                let mut workload =
                    rt_app::from_text(name, &expand(text)?, scale).map_err(|error| refused(error.into()))?;
                workload.name = command_line;
                Ok(workload)
            }
        }
    }

    /// The files that it reads.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        match self.rt_app {
            Some(_) => Vec::new(),
            None => coreward_workload::paths(&self.workload).map(Path::to_owned).collect(),
        }
    }

    /// The text with its numbers, by which a stored cell is known.
    pub(crate) fn text(&self, cpus: usize) -> Result<(String, Option<String>), String> {
        let file = self.rt_app.as_deref().map(|text| sized(text, cpus)).transpose()?;
        Ok((sized(&self.workload, cpus)?, file))
    }
}

/// A text with each `<…>` replaced by its value on a machine of so many CPUs.
fn sized(text: &str, cpus: usize) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        let (formula, after) = after.split_once('>').ok_or_else(|| format!("`<{after}`: there is no >"))?;
        let value = value(formula, cpus as u64).ok_or_else(|| {
            format!(
                "`<{formula}>`: allowed is a product or quotient of cpus and whole numbers up to 1000000000, like <cpus/4> \
                 or <5*cpus/4>"
            )
        })?;
        out.push_str(before);
        out.push_str(&value.to_string());
        rest = after;
    }
    Ok(out + rest)
}

/// The value of a product or quotient, rounded, at least 1; `None` if it is not one.
fn value(formula: &str, cpus: u64) -> Option<u64> {
    let number = |word: &str| match word.trim() {
        "cpus" => Some(cpus),
        word => word.parse().ok().filter(|number| (1..=1_000_000_000).contains(number)),
    };
    let (mut above, mut below) = (1u64, 1u64);
    let mut divides = false;
    for part in formula.split_inclusive(['*', '/']) {
        let factor = number(part.trim_end_matches(['*', '/']))?;
        let side = if divides { &mut below } else { &mut above };
        *side = side.checked_mul(factor)?;
        divides = part.ends_with('/');
    }
    // a formula does not end with an operator
    let whole = !formula.is_empty() && !formula.ends_with(['*', '/']);
    whole.then(|| (above.saturating_add(below / 2) / below).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coreward_machine::Machine;

    #[test]
    fn numbers_follow_the_machine() {
        for (formula, cpus, number) in [
            ("cpus", 6, Some(6)),
            ("cpus/12", 384, Some(32)),
            ("cpus/12", 6, Some(1)),
            ("cpus/12", 5, Some(1)),
            ("5*cpus/4", 6, Some(8)),
            ("60000/cpus", 384, Some(156)),
            ("cpus / 2 / 2", 8, Some(2)),
            ("7", 8, Some(7)),
            ("cpus+1", 8, None),
            ("cpus/0", 8, None),
            ("cpus/", 8, None),
            ("", 8, None),
            ("1000000000*1000000000*1000000000", 8, None),
        ] {
            assert_eq!(value(formula, cpus), number, "{formula}");
        }
        assert_eq!(sized("-g <cpus/4> -l <2>.", 8).unwrap(), "-g 2 -l 2.");
        assert!(sized("-g <cpus", 8).is_err());
    }

    /// The built-in suite can be run on every preset, and has a row of each of the families that it is to cover.
    #[test]
    fn the_built_in_suite_fits_every_preset() {
        let rows = rows(None, &[]).unwrap();
        for (name, _) in Machine::presets() {
            let cpus = Machine::load(&name).unwrap().nr_cpus();
            rows.iter().for_each(|row| {
                drop(row.on(cpus, Scale::FULL).unwrap_or_else(|error| panic!("{name}: {error:#}")))
            });
        }
        let benchmarks: BTreeSet<_> = rows.iter().map(Row::benchmark).collect();
        for family in [
            "hackbench",
            "perf bench sched pipe",
            "sysbench",
            "schbench",
            "netperf",
            "cyclictest",
            "stress-ng",
            "rt-app",
        ] {
            assert!(benchmarks.contains(family), "{family}");
        }
    }

    #[test]
    fn rows_are_chosen_by_name_benchmark_or_command_line() {
        let names = |chosen: &[&str]| {
            let chosen: Vec<_> = chosen.iter().map(|&name| name.to_owned()).collect();
            rows(None, &chosen).map(|rows| rows.into_iter().map(|row| row.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["perf-pipe"]).unwrap(), ["perf-pipe"]);
        assert_eq!(names(&["schbench", "schbench-2x"]).unwrap(), ["schbench-half", "schbench-2x"]);
        assert_eq!(names(&["hackbench -g 1", "perf-pipe"]).unwrap(), ["workload-1", "perf-pipe"]);
        let error = names(&["perf-pip"]).unwrap_err().to_string();
        assert!(error.contains("did you mean `perf-pipe`?"), "{error}");
    }

    #[test]
    fn a_bad_suite_is_refused_with_the_line() {
        let good = "[[row]]\nname = \"a\"\nworkload = \"hackbench -g 1\"\nmetrics = [\"runtime_s\"]\nreason = \"r\"\n";
        assert_eq!(parse("s", good).unwrap().len(), 1);
        for (text, message) in [
            (String::new(), "s: 0 rows, allowed are 1 to 64 [[row]] tables"),
            (good.replace("\"a\"", "\"A b\""), "s:1: name: `A b`, allowed are 1 to 18 of a-z, 0-9 and -"),
            (good.repeat(2), "s:6: name: `a` is the name of another row too"),
            (good.replace("\"runtime_s\"", ""), "s:1: metrics: 0 metrics, allowed are 1 to 2"),
            (good.replace("runtime_s", "wakeups"), "s:1: metrics: neither direction of wakeups is better"),
            (good.replace("-g 1", "-g <cpus-1>"), "s:1: `<cpus-1>`: allowed is a product or quotient"),
            (good.replace("-g 1", "-g 0"), "s:1: workload: hackbench: "),
            (good.replace("hackbench -g 1", "rt-app a.json"), "s:1: rt_app: a row has it if"),
            (good.replace("reason", "raeson"), "s:5: unknown field `raeson`"),
        ] {
            let error = format!("{:#}", parse("s", &text).unwrap_err());
            assert!(error.starts_with(message), "{error}");
        }
    }
}
