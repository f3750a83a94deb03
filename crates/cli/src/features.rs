//! `coreward features`: the features and tunables of the policy.

use std::io::Write;

use anyhow::{Error, Result, anyhow};
use coreward_policy::{Code, Profile};
use serde::Serialize;

use crate::cli;
use crate::output;
use crate::policy;

/// A feature or a tunable, as it is listed.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    /// In the profile that was asked for.
    value: String,
    /// In the profile that is taken if none is named.
    default: String,
    unit: &'static str,
    seed: &'static str,
    help: &'static str,
}

pub(crate) fn run(args: &cli::Features, out: &mut dyn Write) -> Result<()> {
    let profile = Profile::named(&args.profile).map_err(Error::msg)?;
    let code = match &args.policy {
        Some(directory) => Code::of_directory(directory).map_err(|what| anyhow!("--policy: {what}"))?,
        None => Code::built_in(),
    };
    let rows: Vec<Row> = features(code, profile).chain(tunables(code)).collect();
    if args.json { output::json(out, &rows) } else { table(profile, &rows, out) }
}

fn features(code: &'static Code, profile: Profile) -> impl Iterator<Item = Row> {
    let state = move |profile: Profile, i: usize| {
        let on = code.profile(profile) >> i & 1 == 1;
        String::from(if on { "on" } else { "off" })
    };
    code.features().iter().enumerate().map(move |(i, f)| Row {
        name: f.name,
        value: state(profile, i),
        default: state(Profile::DEFAULT, i),
        unit: "",
        seed: f.seed,
        help: f.help,
    })
}

/// No tunable depends on the profile.
fn tunables(code: &'static Code) -> impl Iterator<Item = Row> {
    code.tunables().iter().map(|t| Row {
        name: t.name,
        value: t.default.to_string(),
        default: t.default.to_string(),
        unit: t.unit,
        seed: "",
        help: t.help,
    })
}

fn table(profile: Profile, rows: &[Row], out: &mut dyn Write) -> Result<()> {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut line = |cells: [&str; 6]| -> Result<()> {
        let [name, value, default, unit, seed, help] = cells;
        Ok(writeln!(out, "{name:width$}  {value:>10}  {default:>10}  {unit:6}  {seed:4}  {help}")?)
    };
    line(["name", profile.name(), "default", "unit", "seed", "meaning"])?;
    rows.iter().try_for_each(|r| line([r.name, &r.value, &r.default, r.unit, r.seed, r.help]))?;
    Ok(writeln!(out, "\nprofiles: {}\n{}", Profile::ALL.join(", "), evidence(profile))?)
}

/// With which kernel the profile was compared, or what sets it apart from the nearest profile that was.
fn evidence(profile: Profile) -> String {
    let name = profile.name();
    if let Some(kernel) = profile.compared() {
        return format!(
            "{name}: placement, balance and the steps of the run queue agree with recordings of Linux {kernel}"
        );
    }
    let nearest = profile.nearest_compared();
    let switched: Vec<_> =
        policy::switched(Code::built_in(), nearest.features(), profile.features()).collect();
    format!("{name}: not compared with recordings; it is {} with {}", nearest.name(), switched.join(" "))
}
