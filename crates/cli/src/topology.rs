//! `coreward topology`: a machine as a tree.

use std::io::Write;

use anyhow::Result;
use coreward_machine::{Machine, render_topology};

use crate::cli;
use crate::output;

pub(crate) fn run(args: &cli::Topology, out: &mut dyn Write) -> Result<()> {
    let machine = Machine::load(&args.machine)?;
    if args.json {
        return output::json(out, &machine);
    }
    Ok(out.write_all(render_topology(&machine).as_bytes())?)
}
