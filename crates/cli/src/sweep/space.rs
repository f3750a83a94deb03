//! The settings of a sweep: a list, all combinations of a grid, and a Latin hypercube.

use std::collections::BTreeMap;

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;
use toml::{Spanned, Value};

/// The most settings of a sweep.
pub(super) const MAX_SETTINGS: usize = 10_000;

/// What is varied, by the name of a feature, tunable or cost, or `profile`.
type Varied = BTreeMap<String, Spanned<Value>>;

/// A Latin hypercube: so many settings that the values of each name are spread evenly over its range.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LatinHypercube {
    points: Spanned<usize>,
    #[serde(default = "first_seed")]
    seed: u64,
    vary: Varied,
}

impl LatinHypercube {
    /// The byte of the file that it begins near.
    pub(super) fn start(&self) -> usize {
        self.points.span().start
    }
}

fn first_seed() -> u64 {
    1
}

/// What was refused: a byte of the file, and why.
pub(super) type Refusal = (usize, String);

/// All combinations of the values of a grid, as changes like `NO_SIS_UTIL,base_slice_ns=2000000`. The last name varies
/// fastest.
///
/// # Errors
/// A name has no list of values, or there are too many combinations.
pub(super) fn grid(grid: &Varied) -> Result<Vec<String>, Refusal> {
    let mut settings = vec![Vec::new()];
    for (name, values) in grid {
        let at = values.span().start;
        let changes = listed(name, values.get_ref()).map_err(|what| (at, what))?;
        if settings.len().saturating_mul(changes.len()) > MAX_SETTINGS {
            return Err((at, format!("{name}: the grid has more than {MAX_SETTINGS} combinations")));
        }
        settings = settings
            .iter()
            .flat_map(|before: &Vec<String>| {
                changes.iter().map(|change| before.iter().chain([change]).cloned().collect())
            })
            .collect();
    }
    Ok(settings.into_iter().filter(|changes| !changes.is_empty()).map(|changes| changes.join(",")).collect())
}

/// The settings of a Latin hypercube. A range is cut into as many parts as there are settings, equally wide by value or
/// by logarithm; each setting has the middle of another part. The values of a list come up equally often.
///
/// # Errors
/// A name has neither a list nor a range, or the number of settings is out of range.
pub(super) fn latin_hypercube(hypercube: &LatinHypercube) -> Result<Vec<String>, Refusal> {
    let LatinHypercube { points, seed, vary } = hypercube;
    let n = *points.get_ref();
    if !(1..=MAX_SETTINGS).contains(&n) {
        return Err((points.span().start, format!("points is {n}, allowed are 1 to {MAX_SETTINGS}")));
    }
    if vary.is_empty() {
        return Err((points.span().start, "vary: nothing is varied".into()));
    }
    let mut random = Pcg64Mcg::seed_from_u64(*seed);
    let mut settings = vec![Vec::new(); n];
    for (name, values) in vary {
        let change = spread(name, values.get_ref(), n).map_err(|what| (values.span().start, what))?;
        let mut parts: Vec<usize> = (0..n).collect();
        // Fisher and Yates
        for i in (1..n).rev() {
            parts.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
        }
        settings.iter_mut().zip(parts).for_each(|(setting, part)| setting.push(change(part)));
    }
    Ok(settings.into_iter().map(|changes| changes.join(",")).collect())
}

/// The change that each of `n` parts stands for.
fn spread<'a>(name: &'a str, values: &Value, n: usize) -> Result<Box<dyn Fn(usize) -> String + 'a>, String> {
    let Value::Table(range) = values else {
        let changes = listed(name, values)?;
        return Ok(Box::new(move |part| changes[part * changes.len() / n].clone()));
    };
    let allowed = || {
        format!(
            "{name}: allowed are a list of values and {{ from = NUMBER, to = NUMBER, log = true or false }}, 0 <= from < to, \
             and 1 <= from with log"
        )
    };
    let number = |key: &str| range.get(key).and_then(Value::as_integer);
    let log = range.get("log").map_or(Some(false), Value::as_bool).ok_or_else(allowed)?;
    let known = range.keys().all(|key| ["from", "to", "log"].contains(&key.as_str()));
    let (Some(from), Some(to), true) = (number("from"), number("to"), known) else { return Err(allowed()) };
    if from < i64::from(log) || from >= to {
        return Err(allowed());
    }
    let (from, to) = (from as f64, to as f64);
    Ok(Box::new(move |part| {
        let share = (part as f64 + 0.5) / n as f64;
        let value = if log { from * (to / from).powf(share) } else { from + (to - from) * share };
        format!("{name}={}", value.round() as i64)
    }))
}

/// A list of values as changes.
fn listed(name: &str, values: &Value) -> Result<Vec<String>, String> {
    let change = |value: &Value| match value {
        Value::Boolean(true) => Ok(name.to_owned()),
        Value::Boolean(false) => Ok(format!("NO_{name}")),
        Value::Integer(number) => Ok(format!("{name}={number}")),
        Value::String(profile) if name == "profile" => Ok(profile.clone()),
        Value::String(text) => Ok(format!("{name}={text}")),
        _ => Err(format!(
            "{name}: `{value}`, allowed are true and false, whole numbers, and texts like \"2ms\""
        )),
    };
    match values {
        Value::Array(values) if !values.is_empty() => values.iter().map(change).collect(),
        _ => Err(format!("{name}: allowed is a list of values, like [true, false] or [700000, 3000000]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Space {
        #[serde(default, rename = "grid")]
        cells: Varied,
        latin_hypercube: Option<LatinHypercube>,
    }

    fn settings(text: &str) -> Result<Vec<String>, String> {
        let space: Space = toml::from_str(text).unwrap();
        let found = match &space.latin_hypercube {
            Some(hypercube) => latin_hypercube(hypercube),
            None => grid(&space.cells),
        };
        found.map_err(|(_, what)| what)
    }

    #[test]
    fn a_grid_has_all_combinations() {
        let found =
            settings("[grid]\nSIS_UTIL = [true, false]\nbase_slice_ns = [700000, \"3ms\"]\n").unwrap();
        assert_eq!(
            found,
            [
                "SIS_UTIL,base_slice_ns=700000",
                "SIS_UTIL,base_slice_ns=3ms",
                "NO_SIS_UTIL,base_slice_ns=700000",
                "NO_SIS_UTIL,base_slice_ns=3ms"
            ]
        );
        assert_eq!(settings("[grid]\nprofile = [\"linux-6.5\"]\n").unwrap(), ["linux-6.5"]);
        assert_eq!(settings("[grid]\n").unwrap(), Vec::<String>::new());
        assert!(
            settings("[grid]\nSIS_UTIL = true\n").unwrap_err().starts_with("SIS_UTIL: allowed is a list")
        );
        assert!(
            settings("[grid]\nnr_migrate = [1.5]\n").unwrap_err().starts_with("nr_migrate: `1.5`, allowed")
        );
        let many: Vec<_> = (0..200).collect();
        let error = settings(&format!("[grid]\na = {many:?}\nb = {many:?}\n")).unwrap_err();
        assert_eq!(error, "b: the grid has more than 10000 combinations");
    }

    /// Each part of each range is met by one setting, and other seeds pair the parts differently.
    #[test]
    fn a_latin_hypercube_is_spread_over_each_range() {
        let text = |seed: u64| {
            format!(
                "[latin_hypercube]\npoints = 10\nseed = {seed}\n[latin_hypercube.vary]\nSIS_UTIL = [true, false]\n\
                 a = {{ from = 0, to = 1000 }}\nb = {{ from = 1, to = 1024, log = true }}\n"
            )
        };
        let found = settings(&text(1)).unwrap();
        let column = |i: usize| {
            let mut values: Vec<i64> = found
                .iter()
                .map(|setting| setting.split(',').nth(i).unwrap().split_once('=').unwrap().1.parse().unwrap())
                .collect();
            values.sort_unstable();
            values
        };
        assert_eq!(column(1), (0..10).map(|part| 50 + 100 * part).collect::<Vec<_>>());
        // 2^0.5, 2^1.5, …
        assert_eq!(column(2), [1, 3, 6, 11, 23, 45, 91, 181, 362, 724]);
        assert_eq!(found.iter().filter(|setting| setting.starts_with("NO_SIS_UTIL,")).count(), 5);
        assert_eq!(settings(&text(1)).unwrap(), found);
        assert_ne!(settings(&text(2)).unwrap(), found);
    }

    #[test]
    fn what_a_latin_hypercube_refuses() {
        let of = |points: usize, vary: &str| {
            settings(&format!("[latin_hypercube]\npoints = {points}\n[latin_hypercube.vary]\n{vary}\n"))
                .unwrap_err()
        };
        assert_eq!(of(0, "a = [1]"), "points is 0, allowed are 1 to 10000");
        assert_eq!(of(3, ""), "vary: nothing is varied");
        for wrong in [
            "{ from = 1 }",
            "{ from = 5, to = 5 }",
            "{ from = 0, to = 5, log = true }",
            "{ from = 1, to = 2, lg = true }",
        ] {
            assert!(
                of(3, &format!("a = {wrong}")).starts_with("a: allowed are a list of values and {"),
                "{wrong}"
            );
        }
    }
}
