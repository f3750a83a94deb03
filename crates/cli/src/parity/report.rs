//! The report: agreement by path for each file and for all of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use coreward_parity::{Class, Effect, Summary, Tally, WhatIf};
use serde_json::{Map, Value, json};

use super::require;
use super::settings::{Change, Input, Settings};
use crate::cli;
use crate::output;

/// The results of one file.
struct FileReport {
    file: String,
    release: String,
    nr_cpus: usize,
    settings: Settings,
    /// Decisions in the file.
    decisions: u64,
    /// Decisions that the recorder had no room for.
    lost: u64,
    /// Choices of a queue without the balance that they belong to.
    orphans: u64,
    summary: Summary,
    effect: Option<Effect>,
}

pub(crate) fn run(args: &cli::Parity, out: &mut dyn Write) -> Result<()> {
    let change = Change::of(args)?;
    let reports = args
        .files
        .iter()
        .map(|file| FileReport::of(args, file, change.as_ref()))
        .collect::<Result<Vec<_>>>()?;
    let mut total = Summary::default();
    let mut effect = Effect::default();
    for report in &reports {
        total.add(&report.summary);
        report.effect.iter().for_each(|other| effect.add(other));
    }
    let effect = change.as_ref().map(|change| (change.name.as_str(), &effect));
    if args.json {
        let files: Vec<_> =
            reports.iter().map(|report| report.as_json(effect.map(|(name, _)| name))).collect();
        output::json(out, &json!({"files": files, "total": summary_json(&total, effect)}))?;
    } else {
        for report in &reports {
            writeln!(out, "{}", report.render(effect.map(|(name, _)| name)))?;
        }
        if reports.len() > 1 {
            writeln!(out, "{} files\n\n{}", reports.len(), body(&total, effect))?;
        }
    }
    let mut kernels: BTreeMap<&str, Summary> = BTreeMap::new();
    for report in &reports {
        kernels.entry(&report.release).or_default().add(&report.summary);
    }
    require::check(&args.require, &kernels)
}

impl FileReport {
    fn of(args: &cli::Parity, file: &Path, change: Option<&Change>) -> Result<FileReport> {
        let Input { mut reader, mut replay, settings } = Input::open(args, file)?;
        let changed = change.map(|change| change.apply(&settings, reader.file())).transpose()?;
        let mut what_if = match changed {
            Some(changed) => Some(WhatIf::new(changed.replay(&reader)?)),
            None => None,
        };
        let (mut summary, mut decisions, mut orphans) = (Summary::default(), 0, 0);
        for record in &mut reader {
            let record = record?;
            let outcomes = replay.compare(&record);
            outcomes.iter().for_each(|outcome| summary.count(outcome));
            what_if.iter_mut().for_each(|what_if| what_if.count(&record, &outcomes));
            decisions += 1;
            orphans += u64::from(outcomes.is_empty());
        }
        let host = &reader.machine().host;
        Ok(FileReport {
            file: file.display().to_string(),
            release: host.release.clone(),
            nr_cpus: host.nr_cpus,
            settings,
            decisions,
            lost: reader.lost().unwrap_or(0),
            orphans,
            summary,
            effect: what_if.map(WhatIf::into_effect),
        })
    }

    fn render(&self, change: Option<&str>) -> String {
        let profile = self.settings.profile.name();
        let nearest = if self.settings.nearest { ", the nearest that is known" } else { "" };
        let mut text = format!(
            "{}: Linux {}, {} CPUs; profile {profile}{nearest}\n{} decisions, {} lost",
            self.file, self.release, self.nr_cpus, self.decisions, self.lost
        );
        if self.orphans > 0 {
            _ = write!(text, ", {} choices of a queue whose balance was lost", self.orphans);
        }
        _ = write!(text, "\n\n{}", body(&self.summary, change.zip(self.effect.as_ref())));
        text
    }

    fn as_json(&self, change: Option<&str>) -> Value {
        let mut value = json!({
            "file": self.file,
            "release": self.release,
            "cpus": self.nr_cpus,
            "profile": self.settings.profile.name(),
            "profile_is_nearest": self.settings.nearest,
            "decisions": self.decisions,
            "lost": self.lost,
            "queues_without_balance": self.orphans,
        });
        value["parity"] = summary_json(&self.summary, change.zip(self.effect.as_ref()));
        value
    }
}

fn body(summary: &Summary, effect: Option<(&str, &Effect)>) -> String {
    let mut text = summary.render();
    if let Some((name, effect)) = effect {
        _ = write!(text, "\n{}", effect.render(name));
    }
    text
}

fn summary_json(summary: &Summary, effect: Option<(&str, &Effect)>) -> Value {
    let paths: Vec<_> = summary
        .paths()
        .map(|(path, tally)| with(json!({"path": path.name(), "class": path.class().name()}), tally))
        .collect();
    let classes: Map<_, _> =
        Class::ALL.iter().map(|class| (class.name().to_owned(), json!(summary.class(*class)))).collect();
    let absent: Vec<_> = summary.absent().map(coreward_parity::Path::name).collect();
    let mut value = json!({"paths": paths, "without_decisions": absent, "classes": classes, "disagreements": summary.disagreements()});
    if let Some((name, effect)) = effect {
        value["what_if"] = effect_json(name, effect);
    }
    value
}

fn effect_json(name: &str, effect: &Effect) -> Value {
    let paths: Vec<_> = effect
        .changes()
        .map(|(path, changes)| json!({"path": path.name(), "decisions": changes.decisions, "changed": changes.changed}))
        .collect();
    let migrations: Vec<_> = effect
        .migrations()
        .map(|(distance, m)| json!({"distance": distance.text(), "before": m.before, "after": m.after}))
        .collect();
    json!({"setting": name, "paths": paths, "placed_elsewhere": migrations})
}

fn with(mut value: Value, tally: &Tally) -> Value {
    if let (Value::Object(object), Value::Object(counts)) = (&mut value, json!(tally)) {
        object.extend(counts);
    }
    value
}
