//! Turns the text of an experiment file into an experiment.

use std::collections::{BTreeMap, BTreeSet};

use coreward_engine::Settings;
use coreward_input::unknown;
use coreward_metrics::{Better, Metric, Published, Statistic, stats};
use coreward_policy::Profile;
use toml::Spanned;

use super::raw::{RawAblation, RawCase, RawExperiment, RawSide, Setting};
use super::source::Source;
use super::{Ablation, Case, Experiment, ExperimentError, MAX_RUNS, Side};
use crate::policy::Policy;
use crate::setup::{self, MAX_TIME_LIMIT_S, TIME_LIMIT_S};

/// Variants, cases or ablations of an experiment.
pub(super) const MAX_PARTS: usize = 64;
/// The default number of runs of a side.
pub(super) const DEFAULT_RUNS: u32 = 5;
pub(super) const DEFAULT_SEED: u64 = 1;

type Parsed<T> = Result<T, ExperimentError>;

pub(super) fn experiment(path: &str, text: &str) -> Parsed<Experiment> {
    let source = Source { path, text };
    let mut raw: RawExperiment = toml::from_str(text).map_err(|e| source.syntax(&e))?;
    source.count("variant", raw.variant.len(), 1)?;
    source.count("case", raw.case.len(), 0)?;
    source.count("ablation", raw.ablation.len(), 0)?;
    source.line(&raw.name, "name")?;
    source.labels("a side", std::iter::once(&raw.baseline).chain(&raw.variant).map(|side| &side.label))?;
    source.labels("a case", raw.case.iter().map(|case| &case.label))?;
    source.labels("an ablation", raw.ablation.iter().map(|ablation| &ablation.label))?;

    let setup::Default { policy, notes } = match raw.baseline.profile {
        Some(_) => setup::Default { policy: Policy::new(Profile::DEFAULT), notes: Vec::new() },
        None => setup::default_policy(raw.machine.get_ref()),
    };
    let (baseline, variants) = source.sides(&raw, policy)?;
    let task_group_depth = source.depth(raw.task_group_depth.as_ref(), Settings::LOGIN_SESSION_DEPTH)?;
    let sides: Vec<&Side> = std::iter::once(&baseline).chain(&variants).collect();
    let ablation = |raw: &RawAblation| source.ablation(raw, &sides, task_group_depth);
    let ablations = raw.ablation.iter().map(ablation).collect::<Parsed<_>>()?;
    let time_limit_s =
        source.number("time_limit", raw.time_limit.as_ref(), MAX_TIME_LIMIT_S, TIME_LIMIT_S)?;
    let skip_steady_pct = source.skip_steady(raw.skip_steady.as_ref())?;
    let points = source.points(raw.points.as_ref())?;
    let points_scale = source.points_scale(raw.points_scale.as_ref())?;
    let event = |event: &Spanned<String>| {
        event.get_ref().parse().map_err(|what: String| source.at(event, "events", &what))
    };
    let events = raw.events.iter().map(event).collect::<Parsed<_>>()?;
    let published = source.published(&mut raw)?;
    let cases = source.cases(&mut raw)?;
    Ok(Experiment {
        machine: source.named("machine", raw.machine),
        name: raw.name.into_inner(),
        origin: vec![path.to_owned()],
        title: raw.title,
        source: raw.source,
        description: raw.description,
        family: raw.family,
        task_group_depth,
        time_limit_s,
        skip_steady_pct,
        points,
        points_scale,
        events,
        headline: source.headline(raw.headline)?,
        baseline,
        variants,
        cases,
        ablations,
        published,
        notes,
    })
}

/// The changes that a side or an ablation makes to a policy.
struct Changes<'a> {
    table: &'static str,
    sched_feat: &'a [Spanned<String>],
    set: &'a BTreeMap<String, Spanned<Setting>>,
    cost: &'a BTreeMap<String, Spanned<Setting>>,
}

impl Source<'_> {
    /// An experiment has so many of its parts.
    fn count(&self, part: &str, number: usize, min: usize) -> Parsed<()> {
        if (min..=MAX_PARTS).contains(&number) {
            return Ok(());
        }
        Err(self.error(None, part, &format!("{number} {part}s, allowed are {min} to {MAX_PARTS}")))
    }

    /// The baseline and the variants, from a policy that they have in common.
    fn sides(&self, raw: &RawExperiment, mut common: Policy) -> Parsed<(Side, Vec<Side>)> {
        if let Some(level) = &raw.relax_domain_level {
            let set = common.changes.set(common.code, "relax_domain_level", *level.get_ref());
            set.map_err(|what| self.at(level, "relax_domain_level", &what))?;
        }
        let seed = raw.seed.unwrap_or(DEFAULT_SEED);
        let baseline = self.side("baseline", common, seed, &raw.baseline)?;
        let variants =
            raw.variant.iter().map(|variant| self.side("variant", baseline.policy.clone(), seed, variant));
        let variants = variants.collect::<Parsed<_>>()?;
        Ok((baseline, variants))
    }

    /// A side: the policy that it starts from, changed as the side's table says.
    fn side(&self, table: &'static str, mut policy: Policy, seed: u64, raw: &RawSide) -> Parsed<Side> {
        if let Some(name) = &raw.profile {
            let profile = Profile::named(name.get_ref());
            let profile = profile.map_err(|what| self.at(name, &format!("{table}.profile"), &what))?;
            policy.profile = profile;
        }
        if let Some(directory) = &raw.policy {
            let set = policy.set_directory(directory.get_ref().as_ref());
            set.map_err(|what| self.at(directory, &format!("{table}.policy"), &what))?;
        }
        let RawSide { sched_feat, set, cost, .. } = raw;
        self.change(&mut policy, &Changes { table, sched_feat, set, cost })?;
        Ok(Side { label: raw.label.get_ref().clone(), policy, seed: raw.seed.unwrap_or(seed) })
    }

    fn change(&self, policy: &mut Policy, changes: &Changes) -> Parsed<()> {
        let table = changes.table;
        let mut named = BTreeSet::new();
        for feature in changes.sched_feat {
            let name = feature.get_ref();
            let name = name.strip_prefix("NO_").unwrap_or(name);
            if !named.insert(name) {
                return Err(self.at(
                    feature,
                    &format!("{table}.sched_feat"),
                    &format!("{name} is named twice"),
                ));
            }
            let switched = policy.changes.sched_feat(policy.code, feature.get_ref());
            switched.map_err(|what| self.at(feature, &format!("{table}.sched_feat"), &what))?;
        }
        for (name, value) in changes.set {
            let set = value.get_ref().of(name).and_then(|value| policy.changes.set(policy.code, name, value));
            set.map_err(|what| self.at(value, &format!("{table}.set"), &what))?;
        }
        for (name, value) in changes.cost {
            let set = value.get_ref().of(name).and_then(|value| policy.cost(name, value));
            set.map_err(|what| self.at(value, &format!("{table}.cost"), &what))?;
        }
        Ok(())
    }

    fn ablation(&self, raw: &RawAblation, sides: &[&Side], depth: u32) -> Parsed<Ablation> {
        let RawAblation { label, sched_feat, set, cost, task_group_depth } = raw;
        if sched_feat.is_empty() && set.is_empty() && cost.is_empty() && task_group_depth.is_none() {
            let what = format!(
                "`{}` changes nothing, allowed are sched_feat, set, cost, task_group_depth",
                label.get_ref()
            );
            return Err(self.at(label, "ablation", &what));
        }
        let changes = Changes { table: "ablation", sched_feat, set, cost };
        let changed = |side: &&Side| {
            let mut policy = side.policy.clone();
            self.change(&mut policy, &changes).map(|()| policy)
        };
        Ok(Ablation {
            label: label.get_ref().clone(),
            policies: sides.iter().map(changed).collect::<Parsed<_>>()?,
            task_group_depth: self.depth(task_group_depth.as_ref(), depth)?,
        })
    }

    /// The cases, or the one workload as a case without a label.
    fn cases(&self, raw: &mut RawExperiment) -> Parsed<Vec<Case>> {
        let ablated = self.ablation_cases(raw)?;
        let runs = self.runs(raw.runs.as_ref(), DEFAULT_RUNS)?;
        let case = |(i, case): (usize, RawCase)| {
            Ok(Case {
                label: Some(case.label.into_inner()),
                workload: self.named("case.workload", case.workload),
                runs: self.runs(case.runs.as_ref(), runs)?,
                ablated: ablated.contains(&i),
            })
        };
        match (raw.workload.take(), std::mem::take(&mut raw.case)) {
            (Some(workload), cases) if cases.is_empty() => {
                let workload = self.named("workload", workload);
                Ok(vec![Case { label: None, workload, runs, ablated: true }])
            }
            (Some(workload), _) => {
                Err(self.at(&workload, "workload", "there are cases too, allowed is one of the two"))
            }
            (None, cases) if cases.is_empty() => {
                Err(self.error(None, "workload", "it is missing, and there is no [[case]]"))
            }
            (None, cases) => cases.into_iter().enumerate().map(case).collect(),
        }
    }

    fn runs(&self, raw: Option<&Spanned<i64>>, default: u32) -> Parsed<u32> {
        Ok(self.number("runs", raw, MAX_RUNS.into(), default.into())? as u32)
    }

    /// Indices of the cases that are named, of the first one if none is.
    fn ablation_cases(&self, raw: &RawExperiment) -> Parsed<Vec<usize>> {
        if raw.ablation_cases.is_empty() {
            return Ok(vec![0]);
        }
        let index = |name: &Spanned<String>| {
            let found = raw.case.iter().position(|case| case.label.get_ref() == name.get_ref());
            found.ok_or_else(|| {
                self.at(name, "ablation_cases", &unknown_case(name.get_ref(), &labels(&raw.case)))
            })
        };
        raw.ablation_cases.iter().map(index).collect()
    }

    fn published(&self, raw: &mut RawExperiment) -> Parsed<Vec<Published>> {
        let rows = std::mem::take(&mut raw.published);
        let mut ids = BTreeSet::new();
        for row in &rows {
            self.check_published(row, raw)?;
            if let Some(id) = row.get_ref().id.as_ref().filter(|id| !ids.insert((*id).clone())) {
                return Err(self.at(row, "published.id", &format!("`{id}` is the id of another row too")));
            }
        }
        let source = raw.source.as_deref().unwrap_or_default();
        let with_source = |row: Spanned<Published>| {
            let mut row = row.into_inner();
            if row.source.is_empty() {
                row.source = source.to_owned();
            }
            row
        };
        Ok(rows.into_iter().map(with_source).collect())
    }

    fn check_published(&self, row: &Spanned<Published>, raw: &RawExperiment) -> Parsed<()> {
        let Published {
            metric,
            statistic,
            case,
            variant,
            baseline,
            patched,
            delta_pct,
            spread_pct,
            source,
            ..
        } = row.get_ref();
        let wrong = |field: &str, what: &str| Err(self.at(row, field, what));
        if [baseline, patched, delta_pct].into_iter().flatten().any(|value| !value.is_finite()) {
            return wrong("published", "baseline, patched and delta_pct must be finite numbers");
        }
        if [baseline, patched].into_iter().flatten().any(|value| *value < 0.0) {
            return wrong("published", "baseline and patched must not be negative");
        }
        if let (Some(metric), Some(before), Some(after), Some(delta)) =
            (Metric::from_name(metric), baseline, patched, delta_pct)
        {
            let better = if *statistic == Statistic::Std { Better::Lower } else { metric.better() };
            let change = stats::delta_pct(better, *before, *after).unwrap_or(0.0);
            if change * delta < 0.0 {
                let what =
                    format!("it is {delta}, but from {before} to {after} is a change of {change:.1} %");
                return wrong("published.delta_pct", &what);
            }
        }
        if let Some(spread) = spread_pct.filter(|spread| !(0.0..f64::INFINITY).contains(spread)) {
            return wrong(
                "published.spread_pct",
                &format!("it is {spread}, allowed are finite numbers from 0"),
            );
        }
        if source.is_empty() && raw.source.is_none() {
            return wrong("published.source", "it is missing, and the experiment has none");
        }
        match case {
            Some(name) if !raw.case.iter().any(|case| case.label.get_ref() == name) => {
                return wrong("published.case", &unknown_case(name, &labels(&raw.case)));
            }
            None if !raw.case.is_empty() => {
                return wrong(
                    "published.case",
                    &format!("it is missing, allowed are {}", labels(&raw.case).join(", ")),
                );
            }
            _ => {}
        }
        let variants = || raw.variant.iter().map(|variant| variant.label.get_ref().as_str());
        match variant {
            Some(name) if variants().all(|label| label != name) => {
                wrong("published.variant", &unknown("variant", name, variants()))
            }
            _ => Ok(()),
        }
    }
}

fn labels(cases: &[RawCase]) -> Vec<&str> {
    cases.iter().map(|case| case.label.get_ref().as_str()).collect()
}

/// The message that there is no case of that name, which lists the existing ones.
pub(super) fn unknown_case(name: &str, cases: &[&str]) -> String {
    match cases {
        [] => format!("unknown case `{name}`, the experiment has no cases"),
        cases => unknown("case", name, cases.iter().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::Experiment;

    const MINIMAL: &str = "name = 'n'\nmachine = '1c'\nworkload = 'hackbench'\n\
        [baseline]\nlabel = 'a'\n[[variant]]\nlabel = 'b'\n";
    const CASES: &str = "name = 'n'\nmachine = '1c'\nskip_steady = 2.5\nruns = 7\n\
        [baseline]\nlabel = 'a'\n[[variant]]\nlabel = 'b'\n\
        [[case]]\nlabel = 'x'\nworkload = 'hackbench'\n\
        [[case]]\nlabel = 'y'\nworkload = 'hackbench -P'\nruns = 9\n";

    fn ablated(experiment: &Experiment) -> Vec<bool> {
        experiment.cases.iter().map(|case| case.ablated).collect()
    }

    fn message(text: &str) -> String {
        Experiment::parse("e.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn sides_have_labels_of_their_own() {
        assert!(Experiment::parse("e.toml", MINIMAL).is_ok());
        let relabelled = |label: &str| message(&MINIMAL.replace("'b'", label));
        assert_eq!(relabelled("' '"), "e.toml:7: label: a side needs a label");
        assert_eq!(relabelled("'a'"), "e.toml:7: label: `a` is the label of another side too");
    }

    #[test]
    fn cases_have_what_they_do_not_name_from_the_experiment() {
        let experiment = Experiment::parse("e.toml", CASES).unwrap();
        let cases: Vec<_> = experiment
            .cases
            .iter()
            .map(|case| (case.label.as_deref(), case.workload.text.as_str(), case.runs))
            .collect();
        assert_eq!(cases, [(Some("x"), "hackbench", 7), (Some("y"), "hackbench -P", 9)]);
        assert_eq!(experiment.skip_steady_pct, Some(2.5));
        assert_eq!(experiment.cases[1].workload.place, "e.toml:14: case.workload");
        assert_eq!(ablated(&experiment), [true, false]);
    }

    #[test]
    fn cases_or_a_workload() {
        assert_eq!(
            message(&MINIMAL.replace("workload = 'hackbench'\n", "")),
            "e.toml: workload: it is missing, and there is no [[case]]"
        );
        assert_eq!(
            message(&format!("workload = 'hackbench'\n{CASES}")),
            "e.toml:1: workload: there are cases too, allowed is one of the two"
        );
        assert_eq!(
            message(&CASES.replace("'y'", "'x'")),
            "e.toml:13: label: `x` is the label of another case too"
        );
        assert_eq!(message(&CASES.replace("'y'", "''")), "e.toml:13: label: a case needs a label");
        assert_eq!(
            message(&CASES.replace("runs = 9", "runs = 0")),
            "e.toml:15: runs: runs is 0, allowed are 1 to 1000"
        );
        assert_eq!(
            message(&CASES.replace("2.5", "0")),
            "e.toml:3: skip_steady: it is 0, allowed are 0.1 to 20"
        );
        assert_eq!(
            message(&CASES.replace("skip_steady = 2.5", "points_scale = 2")),
            "e.toml:3: points_scale: scale is 2, allowed are 0.000001 to 1, with at most 6 decimals"
        );
        let many = (0..65).map(|i| format!("[[case]]\nlabel = '{i}'\nworkload = 'hackbench'\n"));
        let many = MINIMAL.replace("workload = 'hackbench'\n", "") + &many.collect::<String>();
        assert_eq!(message(&many), "e.toml: case: 65 cases, allowed are 0 to 64");
    }

    #[test]
    fn ablations_change_every_side() {
        let text = format!(
            "ablation_cases = ['y']\n{CASES}[[ablation]]\nlabel = 'no ticks'\ncost = {{ tick_ns = 0 }}\n\
             [[ablation]]\nlabel = 'root group'\ntask_group_depth = 0\nsched_feat = ['NO_SIS_UTIL']\n"
        );
        let experiment = Experiment::parse("e.toml", &text).unwrap();
        assert_eq!(ablated(&experiment), [false, true]);
        let [ticks, root] = &experiment.ablations[..] else { panic!("two ablations") };
        assert_eq!((ticks.label.as_str(), ticks.task_group_depth, root.task_group_depth), ("no ticks", 3, 0));
        assert!(ticks.policies.iter().all(|policy| policy.deviations() == ["tick_ns=0"]));
        assert!(root.policies.iter().all(|policy| policy.deviations() == ["NO_SIS_UTIL"]));
        assert_eq!(root.policies.len(), 2);

        assert_eq!(
            message(&text.replace("['y']", "['z']")),
            "e.toml:1: ablation_cases: unknown case `z`, allowed are x, y"
        );
        assert_eq!(
            message(&text.replace("cost = {{ tick_ns = 0 }}\n", "").replace("cost = { tick_ns = 0 }\n", "")),
            "e.toml:18: ablation: `no ticks` changes nothing, allowed are sched_feat, set, cost, task_group_depth"
        );
        assert_eq!(
            message(&text.replace("tick_ns = 0", "tick_ns = -1")),
            "e.toml:19: ablation.cost: tick_ns is -1, allowed are 0 to 1000000"
        );
        assert_eq!(
            message(&text.replace("depth = 0", "depth = 99")).replace(char::is_numeric, "#"),
            "e.toml:##: task_group_depth: task_group_depth is ##, allowed are # to ##"
        );
        assert_eq!(
            message(&text.replace("'root group'", "'no ticks'")),
            "e.toml:21: label: `no ticks` is the label of another ablation too"
        );
    }

    #[test]
    fn times_are_written_as_on_the_command_line() {
        let with = |set: &str| format!("{MINIMAL}{set}\n");
        let experiment = Experiment::parse(
            "e.toml",
            &with("set = { base_slice_ns = '6ms', nr_migrate = '8' }\ncost = { tick_ns = '2us' }"),
        );
        let variant = &experiment.unwrap().variants[0];
        assert_eq!(variant.policy.deviations(), ["base_slice_ns=6000000", "nr_migrate=8", "tick_ns=2000"]);
        let allowed = "allowed is NAME=VALUE with an integer value, for a time also like 2ms";
        assert_eq!(
            message(&with("set = { nr_migrate = '6ms' }")),
            format!("e.toml:8: variant.set: {allowed}")
        );
        assert_eq!(
            message(&with("set = { nr_migrate = 1.5 }")),
            "e.toml:8: allowed is an integer, for a time also a text like \"2ms\""
        );
    }

    #[test]
    fn published_figures_are_finite() {
        for wrong in ["nan", "inf", "-inf"] {
            let published = format!("[[published]]\nmetric = 'm'\nsource = 's'\ndelta_pct = {wrong}\n");
            assert_eq!(
                message(&format!("{MINIMAL}{published}")),
                "e.toml:8: published: baseline, patched and delta_pct must be finite numbers"
            );
        }
    }

    #[test]
    fn published_changes_have_the_sign_of_their_values() {
        let row = |values: &str| {
            let published = format!("[[published]]\nmetric = 'runtime_s'\nsource = 's'\n{values}\n");
            message(&format!("{MINIMAL}{published}"))
        };
        assert_eq!(
            row("baseline = 1\npatched = 2\ndelta_pct = 5"),
            "e.toml:8: published.delta_pct: it is 5, but from 1 to 2 is a change of -100.0 %"
        );
        assert_eq!(
            row("baseline = -1\npatched = 2"),
            "e.toml:8: published: baseline and patched must not be negative"
        );
    }

    /// One row a line, as a table is copied.
    #[test]
    fn published_rows_may_be_an_array() {
        let rows = "source = 'the patch'\npublished = [\n\
            { id = 'S-1', case = 'x', metric = 'runtime_s', delta_pct = 4, spread_pct = 1.5 },\n\
            { id = 'S-2', case = 'y', variant = 'b', metric = 'runtime_s', statistic = 'p99', source = 's' },\n]\n";
        let text = format!("{rows}{CASES}");
        let experiment = Experiment::parse("e.toml", &text).unwrap();
        let [first, second] = &experiment.published[..] else { panic!("two rows") };
        assert_eq!((first.statistic.name(), first.source.as_str()), ("mean", "the patch"));
        assert_eq!((second.statistic.name(), second.source.as_str()), ("p99", "s"));

        for (old, new, expected) in [
            ("case = 'x'", "case = 'z'", "3: published.case: unknown case `z`, allowed are x, y"),
            ("case = 'x', ", "", "3: published.case: it is missing, allowed are x, y"),
            ("variant = 'b'", "variant = 'a'", "4: published.variant: unknown variant `a`, allowed are b"),
            ("'S-2'", "'S-1'", "4: published.id: `S-1` is the id of another row too"),
            ("1.5", "-1", "3: published.spread_pct: it is -1, allowed are finite numbers from 0"),
            ("1.5", "nan", "3: published.spread_pct: it is NaN, allowed are finite numbers from 0"),
            ("source = 'the patch'", "", "3: published.source: it is missing, and the experiment has none"),
        ] {
            assert_eq!(message(&text.replacen(old, new, 1)), format!("e.toml:{expected}"), "{new}");
        }
        assert!(
            message(&text.replace("'p99'", "'p42'"))
                .starts_with("e.toml:4: unknown variant `p42`, expected one of `mean`, ")
        );
        let without_cases = format!("{MINIMAL}[[published]]\nmetric = 'm'\nsource = 's'\ncase = 'x'\n");
        assert_eq!(
            message(&without_cases),
            "e.toml:8: published.case: unknown case `x`, the experiment has no cases"
        );
    }
}
