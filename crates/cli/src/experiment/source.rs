//! The text of an experiment file, for messages that name the line, and the values that are allowed in it.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use coreward_engine::Settings;
use coreward_input::{line_at, toml_refusal, twice};
use coreward_metrics::Metric;
use coreward_workload::Scale;
use toml::Spanned;

use super::{ExperimentError, Named};
use crate::scale;
use crate::setup::SKIP_STEADY_PCT;
use crate::uncertainty;

/// The text that is read.
pub(super) struct Source<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    fn place(&self, span: Option<Range<usize>>) -> String {
        span.map_or_else(
            || self.path.to_owned(),
            |span| format!("{}:{}", self.path, line_at(self.text, span.start)),
        )
    }

    pub(super) fn error(&self, span: Option<Range<usize>>, field: &str, what: &str) -> ExperimentError {
        ExperimentError(format!("{}: {field}: {what}", self.place(span)))
    }

    pub(super) fn at<T>(&self, value: &Spanned<T>, field: &str, what: &str) -> ExperimentError {
        self.error(Some(value.span()), field, what)
    }

    pub(super) fn syntax(&self, error: &toml::de::Error) -> ExperimentError {
        ExperimentError(format!("{}: {}", self.place(error.span()), toml_refusal(error.message())))
    }

    pub(super) fn named(&self, field: &str, text: Spanned<String>) -> Named {
        Named { place: format!("{}: {field}", self.place(Some(text.span()))), text: text.into_inner() }
    }

    /// Points of the space that the costs' bounds span.
    pub(super) fn points(&self, raw: Option<&Spanned<u32>>) -> Result<Option<u32>, ExperimentError> {
        self.within("points", raw, &uncertainty::ALLOWED)
    }

    /// The part of the workload that the runs at the points have.
    pub(super) fn points_scale(&self, raw: Option<&Spanned<f64>>) -> Result<Scale, ExperimentError> {
        let Some(raw) = raw else { return Ok(Scale::FULL) };
        scale::parse(&raw.get_ref().to_string()).map_err(|what| self.at(raw, "points_scale", &what))
    }

    /// The metrics that the verdict is about.
    pub(super) fn headline(&self, raw: Option<Spanned<Vec<Metric>>>) -> Result<Vec<Metric>, ExperimentError> {
        match raw.as_ref().and_then(|raw| Some((raw, twice(raw.get_ref())?))) {
            Some((raw, metric)) => {
                Err(self.at(raw, "headline", &format!("{} is there twice", metric.name())))
            }
            None => Ok(raw.map_or_else(Vec::new, Spanned::into_inner)),
        }
    }

    /// How well rates have to be known before a run skips its steady middle, in per cent.
    pub(super) fn skip_steady(&self, raw: Option<&Spanned<f64>>) -> Result<Option<f64>, ExperimentError> {
        self.within("skip_steady", raw, &SKIP_STEADY_PCT)
    }

    fn within<T: Copy + PartialOrd + Display>(
        &self,
        field: &str,
        raw: Option<&Spanned<T>>,
        allowed: &RangeInclusive<T>,
    ) -> Result<Option<T>, ExperimentError> {
        match raw.filter(|raw| !allowed.contains(raw.get_ref())) {
            None => Ok(raw.map(|raw| *raw.get_ref())),
            Some(wrong) => {
                let (least, most) = (allowed.start(), allowed.end());
                let what = format!("it is {}, allowed are {least} to {most}", wrong.get_ref());
                Err(self.at(wrong, field, &what))
            }
        }
    }

    /// A depth of task groups.
    pub(super) fn depth(&self, raw: Option<&Spanned<i64>>, default: u32) -> Result<u32, ExperimentError> {
        let Some(raw) = raw else { return Ok(default) };
        let depth = u32::try_from(*raw.get_ref()).ok().filter(|depth| *depth <= Settings::MAX_DEPTH);
        depth.ok_or_else(|| {
            let what =
                format!("task_group_depth is {}, allowed are 0 to {}", raw.get_ref(), Settings::MAX_DEPTH);
            self.at(raw, "task_group_depth", &what)
        })
    }

    /// A number from 1 to `max`.
    pub(super) fn number(
        &self,
        field: &str,
        raw: Option<&Spanned<i64>>,
        max: u64,
        default: u64,
    ) -> Result<u64, ExperimentError> {
        let Some(raw) = raw else { return Ok(default) };
        let number = u64::try_from(*raw.get_ref()).ok().filter(|number| (1..=max).contains(number));
        number.ok_or_else(|| {
            self.at(raw, field, &format!("{field} is {}, allowed are 1 to {max}", raw.get_ref()))
        })
    }

    /// A name is part of a line.
    pub(super) fn line(&self, text: &Spanned<String>, field: &str) -> Result<(), ExperimentError> {
        match text.get_ref().chars().find(|c| coreward_input::commands(*c)) {
            None => Ok(()),
            Some(c) => {
                let what = format!("U+{:04X} stands in it, allowed are characters that print", u32::from(c));
                Err(self.at(text, field, &what))
            }
        }
    }

    /// Each `what` (a side, a case) has a label of its own.
    pub(super) fn labels<'a>(
        &self,
        what: &str,
        labels: impl IntoIterator<Item = &'a Spanned<String>>,
    ) -> Result<(), ExperimentError> {
        let mut seen = BTreeSet::new();
        for label in labels {
            if label.get_ref().trim().is_empty() {
                return Err(self.at(label, "label", &format!("{what} needs a label")));
            }
            self.line(label, "label")?;
            if !seen.insert(label.get_ref()) {
                let another = what.rsplit(' ').next().unwrap_or(what);
                let message = format!("`{}` is the label of another {another} too", label.get_ref());
                return Err(self.at(label, "label", &message));
            }
        }
        Ok(())
    }
}
