//! Synthetic workloads of recorded ones: other numbers of tasks, other loads.
//!
//! The recorded tasks become classes. A synthetic task does again and again what a recorded task of its class did, in
//! that order; how long its work and its sleeps take is drawn from what was recorded for such work in the class
//! ([`distribution`]). [`model`] has what the recorded tasks do, [`program`] the programs of so many tasks.

mod distribution;
mod model;
mod program;

use clap::Parser;
use coreward_input::{unknown, within};

use super::{MAX_TASKS, Recorded};
use crate::{Scale, Workload, WorkloadError, usage};
use model::Model;
use program::Size;

/// How far work and sleeps may be scaled.
const FACTORS: std::ops::RangeInclusive<f64> = 0.001..=1000.0;
const ALLOWED: &str = "--synth --tasks CLASS=N --work CLASS=X --sleep CLASS=X --time S";

/// What a synthetic workload is like. Each option implies the first.
#[derive(Parser, Clone, Debug)]
#[command(name = "recorded", no_binary_name = true, disable_help_flag = true)]
pub(super) struct Options {
    /// A synthetic workload instead of what was recorded.
    #[arg(long)]
    synth: bool,
    /// So many tasks of a class instead of as many as were recorded.
    #[arg(long, value_parser = tasks)]
    tasks: Vec<(String, u32)>,
    /// So many times the work.
    #[arg(long, value_parser = factor)]
    work: Vec<(String, f64)>,
    /// So many times the sleeps.
    #[arg(long, value_parser = factor)]
    sleep: Vec<(String, f64)>,
    /// How long it runs, in s, instead of as long as was recorded.
    #[arg(long, value_parser = within(0.001..=1_000_000.0))]
    time: Option<f64>,
}

fn of_class<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<(String, T), String> {
    let (class, value) = text.rsplit_once('=').ok_or("it has to be CLASS=VALUE")?;
    Ok((class.to_owned(), read(value)?))
}

fn tasks(text: &str) -> Result<(String, u32), String> {
    of_class(text, within(1..=MAX_TASKS as u32))
}

fn factor(text: &str) -> Result<(String, f64), String> {
    of_class(text, within(FACTORS))
}

/// A class as it is written on a command line, which has no blanks.
fn word(class: &str) -> String {
    class.replace(' ', "_")
}

/// Gives values to the classes that they are for.
fn by_class<T: Copy>(
    option: &str,
    given: &[(String, T)],
    classes: &[String],
) -> Result<Vec<Option<T>>, String> {
    let words: Vec<String> = classes.iter().map(|class| word(class)).collect();
    let mut values = vec![None; classes.len()];
    for (name, value) in given {
        let Some(class) = words.iter().position(|class| *class == word(name)) else {
            return Err(format!("{option}: {}", unknown("class", name, words.iter().map(String::as_str))));
        };
        if values[class].replace(*value).is_some() {
            return Err(format!("{option}: class `{name}` is given twice"));
        }
    }
    Ok(values)
}

impl Options {
    /// Reads the words after the name of a file.
    ///
    /// # Errors
    /// An option that there is not, or that is out of range.
    pub(super) fn parse<'a>(
        file: &str,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Options, WorkloadError> {
        Options::try_parse_from(words).map_err(|error| usage(file, ALLOWED, &error))
    }

    /// Is a synthetic workload asked for?
    pub(super) fn synthetic(&self) -> bool {
        let Options { synth, tasks, work, sleep, time } = self;
        *synth || !tasks.is_empty() || !work.is_empty() || !sleep.is_empty() || time.is_some()
    }
}

impl Recorded {
    /// The synthetic workload under a name, as `words` want it (as after a file's name), its time shortened by `scale`.
    ///
    /// # Errors
    /// It has no tasks, a step names a task that there is not, or a task is started twice or by none that runs; an option is
    /// wrong or for a class that there is not; or there would be too many tasks or steps.
    pub fn synthetic(&self, name: &str, words: &str, scale: Scale) -> Result<Workload, WorkloadError> {
        let options = Options::parse(name, words.split_whitespace())?;
        self.synthesized(name, &options, scale)
            .map_err(|what| WorkloadError::Usage(format!("{name}: {what}")))
    }

    pub(super) fn synthesized(
        &self,
        name: &str,
        options: &Options,
        scale: Scale,
    ) -> Result<Workload, String> {
        let births = self.births()?;
        let model = Model::new(self);
        let ones =
            |factors: Vec<Option<f64>>| factors.into_iter().map(|factor| factor.unwrap_or(1.0)).collect();
        let recorded_s = if self.duration_s > 0.0 { self.duration_s } else { 1.0 };
        let size = Size {
            tasks: by_class("--tasks", &options.tasks, &model.classes)?,
            work: ones(by_class("--work", &options.work, &model.classes)?),
            sleep: ones(by_class("--sleep", &options.sleep, &model.classes)?),
            time_ns: scale.of((options.time.unwrap_or(recorded_s) * 1e9) as u64),
        };
        program::workload(self, &births, &model, &size, name)
    }
}
