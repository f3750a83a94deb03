//! What stays an assumption, and why.

use coreward_machine::Costs;

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
pub(crate) fn open(found: &Calibration) -> Vec<Open> {
    let measured = |name: &str| found.costs.iter().any(|cost| cost.name == name);
    let pair = measured("transfer_llc_ns");
    let missing = Costs::FIELDS.iter().filter(|field| !measured(field.name));
    missing.map(|field| Open { name: field.name, why: why(field.name, pair) }).collect()
}

const NO_PAIR: &str = "no two cores that may be used share a last-level cache";

/// Why a cost was not measured; `pair`: two cores that share a last-level cache could be used.
fn why(name: &str, pair: bool) -> &'static str {
    match name {
        "transfer_smt_ns" | "smt_pct" => "no two CPUs that may be used are siblings of a core",
        "transfer_llc_ns" => NO_PAIR,
        "transfer_package_ns" => "no two last-level caches of a node have CPUs that may be used",
        "transfer_remote_ns" => "no two nodes have CPUs that may be used",
        "dram_line_ns" => "twice the last-level cache is more memory than is taken for this",
        "stream_pct" | "lookahead_ns" | "socket_remote_pct" | "message_lines" | "ipi_send_ns"
        | "ipi_deliver_ns" | "ipi_handle_ns" | "idle_return_ns"
            if !pair =>
        {
            NO_PAIR
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
    use crate::{Measured, sample::Sample};

    #[test]
    fn every_cost_is_measured_or_has_a_reason() {
        let open = open(&Calibration::default());
        assert_eq!(open.len(), Costs::FIELDS.len());
        let why = |name: &str| open.iter().find(|open| open.name == name).unwrap().why;
        assert!(why("jitter_pct").contains("software"));
        assert_eq!(why("stream_pct"), NO_PAIR);
        assert!(why("dram_remote_line_ns").contains("no measurement"));
    }

    #[test]
    fn what_takes_two_cpus_is_missing_for_another_reason_where_there_are_two() {
        let sample = Sample { ns: 50.0, spread_ns: 1.0 };
        let transfer = Measured { name: "transfer_llc_ns", sample, how: "", doubt: None };
        let found = Calibration { costs: vec![transfer], ..Calibration::default() };
        let why = |name: &str| open(&found).into_iter().find(|open| open.name == name).unwrap().why;
        assert_ne!(why("stream_pct"), NO_PAIR);
        assert!(why("ipi_handle_ns").contains("membarrier"));
    }
}
