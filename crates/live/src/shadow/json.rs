//! The report for programs.

use std::time::Duration;

use coreward_live_args::{By, Policy};
use coreward_policy::Code;
use serde_json::{Map, Value, json};

use super::Counted;
use super::count::{DISTANCES, KINDS, Moves, mean};

fn moves(moves: &Moves) -> Value {
    DISTANCES
        .iter()
        .zip(&moves[1..])
        .map(|(name, n)| ((*name).to_owned(), json!(n)))
        .collect::<Map<_, _>>()
        .into()
}

/// What was decided in `elapsed`.
pub(super) fn report(named: &Policy, elapsed: Duration, counted: &Counted, by: Option<By>) -> Value {
    let totals = &counted.totals;
    let kinds = KINDS.iter().zip(&totals.kinds).map(|(name, counts)| {
        let value = json!({
            "decisions": counts.decisions,
            "per_second": counts.decisions as f64 / elapsed.as_secs_f64(),
            "elsewhere": counts.elsewhere,
            "kernel_moves": moves(&counts.kernel),
            "policy_moves": moves(&counts.policy),
            "avoided": moves(&counts.avoided),
            "added": moves(&counts.added),
        });
        ((*name).to_owned(), value)
    });
    let reasons =
        Code::built_in().reasons().map(|reason| reason.name).zip(&totals.reasons).filter(|(_, n)| n[0] > 0);
    let drift = &totals.drift;
    let mut report = json!({
        "profile": named.profile,
        "sched_feat": named.options.sched_feat,
        "set": named.options.set.iter().map(|a| format!("{}={}", a.name, a.value)).collect::<Vec<_>>(),
        "seconds": elapsed.as_secs_f64(),
        "kinds": kinds.collect::<Map<_, _>>(),
        "reasons": reasons.map(|(name, [decisions, elsewhere])| {
            (name.to_owned(), json!({ "decisions": decisions, "elsewhere": elsewhere }))
        }).collect::<Map<_, _>>(),
        "sync": totals.sync,
        "preferred_llc": totals.preferred_llc,
        "unplaced": totals.unplaced,
        "lost": totals.lost,
        "ns_per_decision": mean(totals.ns, totals.decided),
        "picture": {
            "samples": drift.samples,
            "idle_differs": drift.idle,
            "nr_running_differs": drift.nr_running,
            "nr_running_error": mean(drift.nr_running_sum, drift.samples),
            "util_avg_error": mean(drift.util_sum, drift.samples),
        },
    });
    if by.is_some() {
        let shares = counted.shares.iter().map(|(name, share)| {
            json!({
                "name": name,
                "decisions": share.decisions,
                "elsewhere": share.elsewhere,
                "avoided": moves(&share.avoided),
                "added": moves(&share.added),
            })
        });
        report["by"] = shares.collect();
    }
    report
}
