//! `coreward machines`: the machines that come with the program.

use std::io::Write;

use anyhow::Result;
use coreward_machine::Machine;
use serde_json::json;

use crate::cli;
use crate::output;

pub(crate) fn run(args: &cli::Machines, out: &mut dyn Write) -> Result<()> {
    let presets = Machine::presets();
    if args.json {
        let list: Vec<_> = presets
            .iter()
            .map(|(name, description)| json!({"name": name, "description": description}))
            .collect();
        return output::json(out, &list);
    }
    let width = presets.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, description) in presets {
        writeln!(out, "{name:width$}  {description}")?;
    }
    Ok(())
}
