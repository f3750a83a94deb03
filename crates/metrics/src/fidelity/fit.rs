//! What costs that are fitted to published figures are worth for others.
//!
//! Each point of `coreward fidelity --intervals` is a set of costs within their bounds, and the same one on all machines.
//! A fit takes the point at which the simulated changes are nearest to the published ones. Whether that says something about
//! other changes is seen by leaving out each family in turn: its error at the point that the other families choose
//! (leave-one-group-out cross-validation).

use serde::Serialize;

use super::{Family, Row, median};

/// Families that a fit takes, at least: with fewer, a single one would decide.
const FAMILIES: usize = 3;

/// The fit over all families that have intervals of whole runs. Errors are distances of simulated from published changes, in percentage
/// points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// Number of points that all rows have.
    pub points: usize,
    /// The one, from 0, with the smallest mean over the families of their median error.
    pub best: usize,
    /// In the order of their names.
    pub families: Vec<FamilyFit>,
}

/// What the fit is worth for one family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FamilyFit {
    /// Its name.
    pub name: String,
    /// Rows with an interval of whole runs.
    pub rows: usize,
    /// Median error with the costs as they are.
    pub as_is: f64,
    /// At the best point.
    pub fitted: f64,
    /// At the point that is the best for the other families.
    pub left_out: f64,
}

impl Fit {
    /// `None` if fewer than [`FAMILIES`] have rows with intervals of whole runs.
    pub(super) fn of(families: &[Family]) -> Option<Fit> {
        // What a part of the workload shows is not what the whole does, so it says nothing of the costs
        let whole =
            |row: &&Row| row.is_compared() && row.is_covered().is_some() && row.interval_part.is_none();
        let rows = |family: &Family| -> Vec<Row> { family.rows.iter().filter(whole).cloned().collect() };
        let all: Vec<(&str, Vec<Row>)> = families
            .iter()
            .map(|it| (it.name.as_str(), rows(it)))
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
        if all.len() < FAMILIES {
            return None;
        }
        let points = all.iter().flat_map(|(_, rows)| rows).map(|row| row.at_points_pct.len()).min()?;
        // by family and point
        let errors: Vec<Vec<f64>> =
            all.iter().map(|(_, rows)| (0..points).map(|point| error_at(rows, point)).collect()).collect();
        let best = |left_out: Option<usize>| {
            let sum = |point: &usize| -> f64 {
                let others = errors.iter().enumerate().filter(|(family, _)| Some(*family) != left_out);
                others.map(|(_, errors)| errors[*point]).sum()
            };
            (0..points).min_by(|a, b| sum(a).total_cmp(&sum(b)))
        };
        let fitted = best(None)?;
        let family = |(i, (name, rows)): (usize, &(&str, Vec<Row>))| {
            Some(FamilyFit {
                name: (*name).to_owned(),
                rows: rows.len(),
                as_is: median(rows.iter().filter_map(Row::error))?,
                fitted: errors[i][fitted],
                left_out: errors[i][best(Some(i))?],
            })
        };
        Some(Fit {
            points,
            best: fitted,
            families: all.iter().enumerate().map(family).collect::<Option<_>>()?,
        })
    }
}

/// The median error of rows at a point; infinite if none has a change there.
fn error_at(rows: &[Row], point: usize) -> f64 {
    let error = |row: &Row| Some((row.at_points_pct[point]? - row.published_pct?).abs());
    median(rows.iter().filter_map(error)).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::{RowVerdict, Score};
    use crate::stats::Statistic;

    /// A family with one row whose published change is 10 %.
    fn family(name: &str, simulated_pct: f64, at_points_pct: &[f64]) -> Family {
        let row = Row {
            id: None,
            experiment: name.into(),
            case: None,
            variant: None,
            machine: String::new(),
            benchmark: "hackbench".into(),
            metric: "runtime_s".into(),
            statistic: Statistic::Mean,
            before: None,
            published_pct: Some(10.0),
            spread_pct: 1.0,
            spread_published: true,
            simulated_pct: Some(simulated_pct),
            simulated_spread_pct: None,
            interval_pct: Some([0.0, 20.0]),
            interval_part: None,
            at_points_pct: at_points_pct.iter().copied().map(Some).collect(),
            verdict: RowVerdict::RightSign,
        };
        let rows = vec![row];
        Family { name: name.into(), score: Score::of(rows.iter()), rows, origins: vec![], ablations: vec![] }
    }

    #[test]
    fn a_fit_worked_by_hand() {
        // errors by point: a 0, 5, 9; b 6, 1, 9; c 4, 4, 0, and a fourth point that only b has
        let mut families = [
            family("a", 7.0, &[10.0, 15.0, 1.0]),
            family("b", 10.0, &[4.0, 11.0, 19.0, 10.0]),
            family("c", 18.0, &[14.0, 6.0, 10.0]),
        ];
        let fit = Fit::of(&families).unwrap();
        // sums: 10, 10, 18; of b and c: 10, 5, 9; of a and c: 4, 9, 9; of a and b: 6, 6, 18
        assert_eq!((fit.points, fit.best), (3, 0));
        let errors: Vec<_> = fit.families.iter().map(|it| [it.as_is, it.fitted, it.left_out]).collect();
        assert_eq!(errors, [[3.0, 0.0, 5.0], [0.0, 6.0, 6.0], [8.0, 4.0, 4.0]]);
        assert_eq!(Fit::of(&families[..2]), None, "two families are too few");
        families[2].rows[0].interval_part = Some(0.1);
        assert_eq!(Fit::of(&families), None, "the third one is of runs of a part");
    }
}
