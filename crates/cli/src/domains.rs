//! `coreward domains`: the sched domains of a CPU; also the domains of all CPUs after a run.

use std::io::Write;

use anyhow::{Result, bail};
use coreward_engine::Outcome;
use coreward_machine::{DomainOptions, Topology, render_domains, render_schedstat_masks};
use coreward_state::kernel_style;
use serde_json::{Value, json};

use crate::assumed;
use crate::cli;
use crate::output;
use crate::setup::{self, Host};

pub(crate) fn run(args: &cli::Domains, out: &mut dyn Write) -> Result<()> {
    let kernel = kernel_style(setup::policy(args.profile.as_deref(), &args.machine)?.policy.profile);
    let names = if args.no_sched_cluster { kernel.without_sched_cluster() } else { kernel };
    let machine = assumed::machine(&args.machine, args.strict)?;
    if args.cpu >= machine.nr_cpus() {
        bail!("--cpu is {}, allowed are 0 to {} on {}", args.cpu, machine.nr_cpus() - 1, machine.name);
    }
    let options = DomainOptions {
        relax_domain_level: args.relax_domain_level,
        relax_semantics: args.relax_semantics.map_or(names.relax_semantics(), Into::into),
        names,
    };
    let topology = Topology::partitioned(&machine, &options, &args.partition)?;
    if args.json {
        return output::json(out, &domains(&topology, args.cpu)?);
    }
    out.write_all(render_domains(&topology, args.cpu, names).as_bytes())?;
    if args.schedstat {
        out.write_all(render_schedstat_masks(&topology, args.cpu).as_bytes())?;
    }
    Ok(())
}

/// Writes the domains of all CPUs as `grep . cpu*/*/*` prints them in debugfs, with the cost of
/// newidle balance at the end of a run (ns), and the `avg_idle` and `max_idle_balance_cost` of
/// each CPU, which the kernel has in `sched/debug`.
pub(crate) fn write_state(out: &mut dyn Write, host: &Host, outcome: &Outcome) -> Result<()> {
    let style = kernel_style(host.policy.profile);
    for (cpu, stat) in outcome.schedstat.iter().enumerate() {
        out.write_all(render_domains(&host.topology, cpu, style).as_bytes())?;
        for (index, domain) in stat.domains.iter().enumerate() {
            writeln!(out, "cpu{cpu}/domain{index}/max_newidle_lb_cost:{}", domain.max_newidle_lb_cost)?;
        }
        writeln!(out, "cpu{cpu}/avg_idle:{}", stat.avg_idle)?;
        writeln!(out, "cpu{cpu}/max_idle_balance_cost:{}", stat.max_idle_balance_cost)?;
    }
    Ok(())
}

/// The domains of a CPU, lowest first, with their groups in the order in which the CPU goes round them.
fn domains(topology: &Topology, cpu: usize) -> Result<Value> {
    let mut list = Vec::new();
    for domain in topology.domains_of(cpu) {
        let mut value = serde_json::to_value(domain)?;
        let groups: Vec<_> = topology.groups_from(domain, cpu).collect();
        value["groups"] = serde_json::to_value(groups)?;
        list.push(value);
    }
    Ok(json!({"cpu": cpu, "domains": list}))
}
