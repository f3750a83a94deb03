//! What a comparison says, in sentences.

use std::fmt::Write;

use crate::compare::{Comparison, Variant};
use crate::difference::POWER;
use crate::fidelity::Standing;
use crate::registry::{Better, Metric};
use crate::stats::{ALPHA, Verdict};
use crate::table::percent;

/// What the signs of a report mean, and what it says of each variant.
pub fn legend(comparison: &Comparison) -> String {
    let mut out = String::from(
        "+ is better; for metrics without a better direction, + is more. CI95 is the 95 % confidence interval of the change.\n",
    );
    let paired = comparison.variants.iter().filter(|variant| variant.paired).count();
    let test = match paired {
        0 => "Welch's t-test",
        n if n == comparison.variants.len() => "the paired t-test",
        _ => "Welch's t-test (the paired one where it says \"in pairs\")",
    };
    _ = writeln!(
        out,
        "* headline metric with p < {ALPHA} by {test}, corrected by Holm's method for the headline metrics.\n\
         ~ exploratory metric with p < {ALPHA} by itself, which chance alone gives one in twenty."
    );
    for variant in &comparison.variants {
        let hangs = |metric: &Metric| Some(variant.uncertainty.get(metric)?.text(metric.name()));
        let hangs = comparison.headline.iter().filter_map(hangs);
        let worth = comparison.headline.iter().filter_map(|metric| worth(comparison, variant, *metric));
        for sentence in sentences(&comparison.headline, variant).into_iter().chain(hangs).chain(worth) {
            _ = writeln!(out, "{}: {sentence}", variant.side.label);
        }
    }
    _ = writeln!(out, "the model's record: {}", Standing::text(comparison.record.as_ref()));
    out
}

/// What there is to say of a variant, the headline metrics first.
pub fn sentences(headline: &[Metric], variant: &Variant) -> Vec<String> {
    let runs = variant.side.runs;
    if variant.same_runs == runs {
        return vec![format!("{} the baseline's in every metric", all(runs))];
    }
    if runs < 2 {
        return vec!["not tested, it takes two runs a side".into()];
    }
    let mut out: Vec<String> = headline.iter().filter_map(|&metric| of_metric(variant, metric)).collect();
    let notable = variant.exploratory().filter(|&metric| variant.is_notable(metric)).count();
    let exploratory = variant.exploratory().count();
    if exploratory > 0 {
        let alone = (exploratory as f64 * ALPHA).ceil();
        out.push(format!(
            "of {exploratory} exploratory metrics {notable} marked; chance alone marks about {alone}"
        ));
    }
    if variant.paired {
        out.push(format!(
            "{} of {runs} runs equal the baseline's of the same seed, so runs are compared in pairs",
            variant.same_runs
        ));
    }
    out
}

/// What was published where such a change was simulated; `None` if nothing was, or if the runs show no change.
fn worth(comparison: &Comparison, variant: &Variant, metric: Metric) -> Option<String> {
    if variant.verdict(metric)? == Verdict::NotShown {
        return None;
    }
    let delta = variant.delta_pct.get(&metric).copied().flatten().filter(|delta| *delta != 0.0)?;
    let class = comparison.reliability.iter().find(|class| class.is_of(delta))?;
    let (up, down) = match metric.better() {
        Better::Neutral => ("more", "less"),
        Better::Lower | Better::Higher => ("better", "worse"),
    };
    let (word, contrary) = if delta < 0.0 { (down, up) } else { (up, down) };
    Some(format!("{}: {}", metric.name(), class.text(word, contrary)))
}

/// Of the headline metrics, what is worse beyond noise.
pub fn worse(headline: &[Metric], variant: &Variant) -> Vec<String> {
    let worse = headline.iter().filter(|metric| variant.verdict(**metric) == Some(Verdict::Worse));
    let sentences = worse.filter_map(|metric| of_metric(variant, *metric));
    sentences.map(|sentence| format!("{}: {sentence}", variant.side.label)).collect()
}

fn all(runs: usize) -> String {
    if runs == 1 { "the run equals".into() } else { format!("all {runs} runs equal") }
}

fn of_metric(variant: &Variant, metric: Metric) -> Option<String> {
    let name = metric.name();
    let delta = variant.delta_pct.get(&metric).copied().flatten();
    let change = |word: &str| match (delta, variant.interval_pct.get(&metric).copied().flatten()) {
        (Some(delta), Some((low, high))) => {
            // as the direction is in the word, the sign is not in the numbers
            let (low, high) = if delta < 0.0 { (-high, -low) } else { (low, high) };
            format!(
                "{name} {} {word} (CI95: {} to {})",
                percent(Some(delta.abs())),
                percent(Some(low)),
                percent(Some(high))
            )
        }
        (Some(delta), None) => format!("{name} {} {word}", percent(Some(delta.abs()))),
        _ => format!("{name} {word}"),
    };
    Some(match variant.verdict(metric)? {
        Verdict::Better => change("better"),
        Verdict::Worse => change("worse"),
        Verdict::Different if delta.is_some_and(|delta| delta < 0.0) => change("less"),
        Verdict::Different => change("more"),
        Verdict::NotShown => not_shown(variant, metric),
        Verdict::Untested => format!("{name} not tested, it takes two runs a side"),
    })
}

fn not_shown(variant: &Variant, metric: Metric) -> String {
    let (name, runs) = (metric.name(), variant.side.runs);
    let alone = variant.p_value.get(&metric).copied().flatten().is_some_and(|p| p < ALPHA);
    let though = match alone {
        true => format!(" (p < {ALPHA} by itself, but not among {} headline metrics)", variant.verdict.len()),
        false => String::new(),
    };
    match variant.detectable_pct.get(&metric).copied().flatten() {
        Some(change) => format!(
            "{name}: no change shown with {runs} runs{though}; one of {} % or more would have been, {:.0} times in 10",
            round_up(change),
            POWER * 10.0
        ),
        None if variant.delta_pct.get(&metric) == Some(&Some(0.0)) => format!("{name}: the same in all runs"),
        None => format!("{name}: no change shown with {runs} runs, too few to tell"),
    }
}

/// Two significant digits, and no less than the value.
fn round_up(value: f64) -> String {
    let decimals = (1.0 - value.log10().floor()).clamp(0.0, 6.0);
    let unit = 10.0_f64.powf(value.log10().floor() - 1.0);
    format!("{:.*}", decimals as usize, (value / unit).ceil() * unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Runs;
    use crate::fidelity::Reliability;

    fn compare(base: &[f64], own: &[f64], seed: u64) -> Vec<String> {
        let side = |seed, values: &[f64]| Runs {
            label: "x".into(),
            seed,
            runs: values.iter().map(|v| [(Metric::runtime_s, *v)].into_iter().collect()).collect(),
            ..Runs::default()
        };
        let comparison =
            Comparison::new("e", &[Metric::runtime_s], side(1, base), vec![side(seed, own)], vec![], vec![]);
        sentences(&comparison.headline, &comparison.variants[0])
    }

    #[test]
    fn what_is_shown_has_its_interval() {
        assert_eq!(
            compare(&[10.0, 10.1, 9.9], &[5.0, 5.1, 4.9], 1),
            ["runtime_s 50.00% better (CI95: 48.19% to 51.78%)"]
        );
        assert_eq!(
            compare(&[5.0, 5.1, 4.9], &[10.0, 10.1, 9.9], 1),
            ["runtime_s 100.00% worse (CI95: 93.03% to 107.38%)"]
        );
    }

    /// With a spread that is known to be sqrt(2 / 3), it would be 31 %: t for 4 degrees of freedom is 2.776, and 0.941 for a
    /// chance of 80 %. Three runs do not know it.
    #[test]
    fn what_is_not_shown_says_what_could_have_been() {
        assert_eq!(
            compare(&[9.0, 10.0, 11.0], &[9.5, 10.5, 11.5], 1),
            ["runtime_s: no change shown with 3 runs; one of 56 % or more would have been, 8 times in 10"]
        );
        assert_eq!(
            compare(&[3.0; 2], &[0.0; 2], 1),
            ["runtime_s: no change shown with 2 runs, too few to tell"]
        );
        assert_eq!(compare(&[3.0; 2], &[3.0; 2], 7), ["runtime_s: the same in all runs"]);
        assert_eq!(compare(&[3.0], &[2.0], 1), ["not tested, it takes two runs a side"]);
    }

    #[test]
    fn a_change_that_does_nothing_is_said_to_do_nothing() {
        assert_eq!(compare(&[3.0, 4.0], &[3.0, 4.0], 1), ["all 2 runs equal the baseline's in every metric"]);
        assert_eq!(compare(&[3.0], &[3.0], 1), ["the run equals the baseline's in every metric"]);
    }

    /// The change acts in one of four runs. In pairs, the spread of the seeds does not hide how small it is.
    #[test]
    fn runs_of_one_seed_are_compared_if_most_are_the_same() {
        let base = [10.0, 20.0, 30.0, 40.0];
        assert_eq!(
            compare(&base, &[10.0, 20.0, 30.0, 41.0], 1),
            [
                "runtime_s: no change shown with 4 runs; one of 6.3 % or more would have been, 8 times in 10",
                "3 of 4 runs equal the baseline's of the same seed, so runs are compared in pairs",
            ]
        );
        // other seeds: the same values by accident
        assert_eq!(
            compare(&base, &[10.0, 20.0, 30.0, 41.0], 2),
            ["runtime_s: no change shown with 4 runs, too few to tell"]
        );
    }

    #[test]
    fn the_legend_names_the_test_that_was_used() {
        let side = |values: &[f64]| Runs {
            label: "x".into(),
            runs: values.iter().map(|v| [(Metric::runtime_s, *v)].into_iter().collect()).collect(),
            ..Runs::default()
        };
        let (base, mostly_same, other) =
            (side(&[1.0, 2.0, 3.0]), side(&[1.0, 2.0, 4.0]), side(&[4.0, 5.0, 6.0]));
        let of = |variants: &[&Runs]| {
            let variants = variants.iter().map(|runs| (*runs).clone()).collect();
            legend(&Comparison::new("e", &[], base.clone(), variants, vec![], vec![]))
        };
        assert!(of(&[&mostly_same]).contains(" by the paired t-test, corrected"));
        assert!(of(&[&other]).contains(" by Welch's t-test, corrected"));
        assert!(
            of(&[&other, &mostly_same])
                .contains(" by Welch's t-test (the paired one where it says \"in pairs\"), corrected")
        );
    }

    /// The words of a class are those of the change: what was published the other way is better where worse was simulated.
    #[test]
    fn a_change_has_what_was_published_beside_changes_of_its_size() {
        let side = |value: f64| Runs {
            label: "x".into(),
            runs: [value - 0.1, value + 0.1]
                .map(|v| [(Metric::runtime_s, v), (Metric::wakeups, v)].into_iter().collect())
                .to_vec(),
            ..Runs::default()
        };
        let class = Reliability {
            from_pct: 3.0,
            below_pct: Some(10.0),
            figures: 40,
            same_direction: 30,
            low_pct: -4.0,
            median_pct: 5.0,
            high_pct: 12.0,
            with_others: 0,
            within_others: 0,
        };
        let headline = [Metric::runtime_s, Metric::wakeups];
        let of = |value: f64| {
            let comparison = Comparison::new("e", &headline, side(100.0), vec![side(value)], vec![], vec![]);
            legend(&comparison.with_record(None, vec![class.clone()]))
        };
        let published = "of 40 published changes where 3 to 10 % was simulated, 30 had the same direction, and 80 % of them \
                         lay between";
        let worse = of(105.0);
        assert!(worse.contains(&format!("x: runtime_s: {published} 4 % better and 12 % worse\n")), "{worse}");
        assert!(worse.contains(&format!("x: wakeups: {published} 4 % less and 12 % more\n")), "{worse}");
        assert!(of(95.0).contains(&format!("x: runtime_s: {published} 4 % worse and 12 % better\n")));
        assert!(!of(112.0).contains(published), "of another class");
        assert!(!of(100.0).contains(published), "no change is shown");
    }

    #[test]
    fn rounding_up_keeps_two_digits() {
        assert_eq!(
            [9.41, 41.2, 0.0123, 130.1, 10.0, 99.6].map(round_up),
            ["9.5", "42", "0.013", "140", "10", "100"]
        );
    }
}
