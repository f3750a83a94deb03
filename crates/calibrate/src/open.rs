//! What stays an assumption, and why.

use coreward_machine::{Costs, Machine};

use crate::Calibration;

/// A cost that was not measured here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Its name.
    pub name: &'static str,
    /// Why it was not.
    pub why: &'static str,
}

/// The costs that a calibration does not have.
pub(crate) fn open(found: &Calibration, machine: &Machine) -> Vec<Open> {
    let missing = Costs::FIELDS.iter().filter(|field| found.costs.iter().all(|cost| cost.name != field.name));
    missing.map(|field| Open { name: field.name, why: why(field.name, machine.nr_cpus()) }).collect()
}

fn why(name: &str, cpus: usize) -> &'static str {
    match name {
        "transfer_smt_ns" | "smt_pct" => "no two CPUs that may be used are siblings of a core",
        "transfer_llc_ns" => "no two cores that may be used share a last-level cache",
        "transfer_package_ns" => "no two last-level caches of a node have CPUs that may be used",
        "transfer_remote_ns" | "dram_remote_line_ns" => "no two nodes have CPUs that may be used",
        "dram_line_ns" => "twice the last-level cache is more memory than is taken for this",
        "stream_pct" | "lookahead_ns" | "socket_remote_pct" | "message_lines" | "ipi_send_ns"
        | "ipi_deliver_ns" | "ipi_handle_ns"
            if cpus < 2 =>
        {
            "there is one CPU"
        }
        "mlp_pct" => "it depends on what the software's loads wait for",
        "ipi_handle_ns" | "ipi_deliver_ns" => "the kernel has no membarrier(2)",
        "group_entity_ns" => "programs may not create task groups everywhere",
        "balance_ns" | "balance_cpu_ns" | "detach_task_ns" => {
            "user space does not see the steps of a load balance"
        }
        "tick_ns" => "no periodic interruptions were seen",
        "fork_start_ns" => "it depends on the pages that the program writes",
        "jitter_pct" => "it belongs to the software, not to the machine",
        "kernel_jitter_pct" => "user space does not see the pieces of a wakeup or a switch",
        _ => "there is no measurement of it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_is_measured_or_has_a_reason() {
        let machine = Machine::load("2c").unwrap();
        let open = open(&Calibration::default(), &machine);
        assert_eq!(open.len(), Costs::FIELDS.len());
        let why = |name: &str| open.iter().find(|open| open.name == name).unwrap().why;
        assert!(why("jitter_pct").contains("software"));
        assert_ne!(why("stream_pct"), why_of_one("stream_pct"));
    }

    fn why_of_one(name: &str) -> &'static str {
        why(name, 1)
    }
}
