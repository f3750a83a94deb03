//! Published figures, and what stands beside them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::registry::{Better, Metric};
use crate::stats::{self, Statistic, Summary};
use crate::uncertainty::Uncertainty;

/// A published result that an experiment is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Name of the row in the collection that it was taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Label of the case that it is about; `None` if the experiment has no cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Label of the variant that it is about; `None` for the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Name of the metric; it may be one that the simulator does not have.
    pub metric: String,
    /// What of a side's runs the values are.
    #[serde(default, skip_serializing_if = "Statistic::is_mean")]
    pub statistic: Statistic,
    /// Value before the change, in the unit of the metric; `None` if only the change was published.
    #[serde(default)]
    pub baseline: Option<f64>,
    /// Value after the change.
    #[serde(default)]
    pub patched: Option<f64>,
    /// Change in percent as [`stats::delta_pct`] signs it; `Comparison::new` works it out from the values if it is not
    /// given.
    #[serde(default)]
    pub delta_pct: Option<f64>,
    /// Spread of the runs as published: the coefficient of variation, in percent; `None` if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_pct: Option<f64>,
    /// Where it was published; in an experiment file it may be left out if the experiment has a source.
    #[serde(default)]
    pub source: String,
    /// A note that helps to interpret it.
    #[serde(default)]
    pub note: Option<String>,
}

/// A published result beside the simulated one of the variant that it is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedBesideSimulated<'a> {
    /// What was published.
    pub published: &'a Published,
    /// The metric, if the simulator has it.
    pub metric: Option<Metric>,
    /// The simulated baseline.
    pub baseline: Option<&'a Summary>,
    /// The simulated variant.
    pub patched: Option<&'a Summary>,
    /// The simulated change of the statistic, signed as the published one.
    pub delta_pct: Option<f64>,
    /// Spread of the simulated runs: the larger coefficient of variation of the two sides, in percent. `None` if a
    /// side has a single run.
    pub spread_pct: Option<f64>,
    /// Simulated less published change, in percentage points.
    pub points: Option<f64>,
    /// What the change is over the bounds of the costs. `None` if that was not asked for, or if the statistic is one of
    /// many runs.
    pub uncertainty: Option<&'a Uncertainty>,
}

impl Published {
    /// Direction of improvement of the statistic; neutral if the simulator does not have the metric.
    pub fn better(&self) -> Better {
        self.statistic.better(Metric::from_name(&self.metric).map_or(Better::Neutral, Metric::better))
    }

    /// The metric, and what of it unless that is the mean.
    pub fn metric_and_statistic(&self) -> String {
        match self.statistic {
            Statistic::Mean => self.metric.clone(),
            statistic => format!("{} {}", self.metric, statistic.name()),
        }
    }

    /// The variant if it is named, the id, the source, and the note in parentheses.
    pub fn source_and_note(&self) -> String {
        let named = [&self.variant, &self.id].into_iter().flatten().map(|name| format!("{name}: "));
        let note = self.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        format!("{}{}{note}", named.collect::<String>(), self.source)
    }

    /// With its change worked out from the values, unless it is given.
    pub(crate) fn with_delta(mut self) -> Published {
        if let (None, Some(baseline), Some(patched)) = (self.delta_pct, self.baseline, self.patched) {
            self.delta_pct = stats::delta_pct(self.better(), baseline, patched);
        }
        self
    }
}
