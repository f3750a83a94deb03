//! `coreward topology`: a machine as a tree.

use std::io::Write;

use anyhow::Result;
use coreward_machine::render_topology;

use crate::assumed;
use crate::cli;
use crate::output;

pub(crate) fn run(args: &cli::Topology, out: &mut dyn Write) -> Result<()> {
    let machine = assumed::machine(&args.machine, args.strict)?;
    if args.toml {
        return Ok(out.write_all(machine.to_toml().as_bytes())?);
    }
    if args.json {
        return output::json(out, &machine);
    }
    Ok(out.write_all(render_topology(&machine).as_bytes())?)
}
