//! Which mechanism carries an effect: the change with nothing switched off, and with each of several mechanisms switched off.

use serde::{Deserialize, Serialize};

use crate::compare::{Comparison, Variant};
use crate::markdown::{self, escape};
use crate::registry::Metric;

/// The changes of one case of an experiment under ablations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ablated {
    /// Name of the experiment.
    pub experiment: String,
    /// Label of the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The first ones have nothing switched off.
    pub changes: Vec<Changes>,
}

/// How a variant differs from the baseline, both under the same ablation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// Label of the ablation; `None` for nothing switched off.
    pub ablation: Option<String>,
    /// Label of the variant.
    pub variant: String,
    /// Of each metric that the experiment is about.
    pub metrics: Vec<Change>,
}

/// The change of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The metric.
    pub metric: Metric,
    /// Change of the mean in percent, + is better.
    pub delta_pct: Option<f64>,
    /// The larger coefficient of variation of the two sides, in percent.
    pub spread_pct: Option<f64>,
}

impl Ablated {
    /// Puts the comparison of a case beside those of the same case under ablations, which are named.
    pub fn new<'a>(
        intact: &Comparison,
        ablated: impl IntoIterator<Item = (&'a str, &'a Comparison)>,
    ) -> Ablated {
        let headline = &intact.headline;
        let mut changes = changes_under(None, intact, headline);
        for (label, comparison) in ablated {
            changes.extend(changes_under(Some(label), comparison, headline));
        }
        Ablated { experiment: intact.experiment.clone(), case: intact.case.clone(), changes }
    }

    /// The title of its table.
    pub fn title(&self) -> String {
        let case = self.case.iter().map(|case| format!(": {case}")).collect::<String>();
        format!("{}{case}: change in percent ± spread of the runs", self.experiment)
    }
}

/// The changes of each variant.
fn changes_under(ablation: Option<&str>, comparison: &Comparison, headline: &[Metric]) -> Vec<Changes> {
    let of = |variant: &Variant| Changes {
        ablation: ablation.map(str::to_owned),
        variant: variant.side.label.clone(),
        metrics: headline.iter().map(|&metric| change(comparison, variant, metric)).collect(),
    };
    comparison.variants.iter().map(of).collect()
}

fn change(comparison: &Comparison, variant: &Variant, metric: Metric) -> Change {
    let spread = |summary: Option<&crate::Summary>| summary.and_then(|s| s.coeff_var_pct());
    let baseline = spread(comparison.baseline.metrics.get(&metric));
    let patched = spread(variant.side.metrics.get(&metric));
    Change {
        metric,
        delta_pct: variant.delta_pct.get(&metric).copied().flatten(),
        spread_pct: baseline.zip(patched).map(|(a, b)| a.max(b)),
    }
}

/// A table of an ablated case, in Markdown.
pub fn table(ablated: &Ablated) -> String {
    let metrics = ablated.changes.first().map_or(&[][..], |changes| &changes.metrics);
    let header = ["switched off".to_owned(), "variant".to_owned()];
    let header: Vec<String> =
        header.into_iter().chain(metrics.iter().map(|change| change.metric.name().to_owned())).collect();
    let row = |changes: &Changes| {
        let label = changes.ablation.as_deref().unwrap_or("nothing");
        let cells = [escape(label), escape(&changes.variant)];
        let deltas = changes.metrics.iter().map(|change| delta(change.delta_pct, change.spread_pct));
        cells.into_iter().chain(deltas).collect::<Vec<_>>()
    };
    markdown::table(2, &header, &ablated.changes.iter().map(row).collect::<Vec<_>>())
}

/// A change and its spread in percent.
pub(crate) fn delta(delta: Option<f64>, spread: Option<f64>) -> String {
    let Some(delta) = delta else {
        return "-".into();
    };
    // adding 0 turns the -0.0 of a tiny loss into 0.0
    let delta = (delta * 10.0).round() / 10.0 + 0.0;
    match spread {
        Some(spread) => format!("{delta:+.1} ± {spread:.1}"),
        None => format!("{delta:+.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::example;

    #[test]
    fn a_table_of_ablations() {
        let mut intact = example();
        intact.headline = vec![Metric::runtime_s, Metric::newidle_calls];
        let ablated = Ablated::new(&intact, [("no line transfers", &example())]);
        // 49 to 51 s: 1 / 50 = 2.0 %; 29 to 31: 1 / 30 = 3.3 %
        let want = "\
| switched off      | variant          |   runtime_s | newidle_calls |
| ----------------- | ---------------- | ----------: | ------------: |
| nothing           | WAKEUP_BIAS_PREV | +40.0 ± 3.3 |             - |
| nothing           | no-op            |  +0.0 ± 2.0 |             - |
| no line transfers | WAKEUP_BIAS_PREV | +40.0 ± 3.3 |             - |
| no line transfers | no-op            |  +0.0 ± 2.0 |             - |
";
        assert_eq!(table(&ablated), want);
        assert_eq!((ablated.changes.len(), ablated.changes[0].metrics.len()), (4, 2));
    }

    #[test]
    fn a_tiny_loss_is_not_minus_zero() {
        assert_eq!(delta(Some(-0.01), Some(0.02)), "+0.0 ± 0.0");
        assert_eq!(delta(Some(-0.06), None), "-0.1");
    }
}
