//! `coreward get` and `coreward set`: the settings of the running scheduler.

use std::collections::BTreeMap;

use anyhow::Result;
use coreward_live_args::{Get, Set};
use scx_stats::StatsErrno;

use crate::policy::WrongArgument;
use crate::{setting, socket, stats};

/// Sends a request to the running scheduler.
fn ask(args: &[(&str, &str)]) -> Result<BTreeMap<String, i64>> {
    let mut client = stats::connect()?;
    let args = [("target", "settings")]
        .iter()
        .chain(args)
        .map(|(name, value)| (name.to_string(), value.to_string()));
    stats::request(&mut client, args.collect()).map_err(|error| {
        // a refusal means that the arguments are wrong
        if error.is::<StatsErrno>() { WrongArgument(first_line(&error)).into() } else { error }
    })
}

/// The server passes errors on as debugging texts in quotes.
fn first_line(error: &anyhow::Error) -> String {
    let text = error.root_cause().to_string();
    let text: String = serde_json::from_str(&text).unwrap_or(text);
    text.lines().next().unwrap_or_default().to_owned()
}

/// Prints one setting's value, or all as NAME=VALUE.
///
/// # Errors
/// No scheduler runs, or it has no such setting.
pub(crate) fn get(args: &Get) -> Result<()> {
    let named: Vec<_> = args.name.iter().map(|name| ("name", name.as_str())).collect();
    for (name, value) in ask(&named)? {
        match args.name {
            Some(_) => println!("{value}"),
            None => println!("{name}={value}"),
        }
    }
    Ok(())
}

/// Sets one setting after the other.
///
/// # Errors
/// No scheduler runs, or it has no such setting, or that cannot have the value.
pub(crate) fn set(args: &Set) -> Result<()> {
    for assignment in &args.settings {
        setting::request(&socket::settings_path(), &assignment.name, assignment.value)?;
    }
    Ok(())
}
