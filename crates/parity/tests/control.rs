//! Can parity fail? A rule that is changed on purpose has to be noticed, on its own path and on no other.

mod common;

use std::collections::BTreeMap;
use std::io::BufReader;

use common::{Shape, WF_TTWU, busy, file, placement};
use coreward_parity::{Reader, Record, Replay, SelectRule, Summary};
use coreward_policy::{Code, CpuMask, Decision, System, Task};

/// The summary of a file by a rule.
fn summary(bytes: &[u8], rule: SelectRule) -> Summary {
    let mut reader = Reader::new(BufReader::new(bytes), "f.cwc").unwrap();
    let host = &reader.machine().host;
    let policy = host.settings(Code::built_in(), host.profile().0);
    let mut replay = Replay::new(reader.machine(), &policy).unwrap().with_rule(rule);
    let mut summary = Summary::default();
    for record in &mut reader {
        replay.compare(&record.unwrap()).iter().for_each(|outcome| summary.count(outcome));
    }
    summary
}

/// The stable decisions and those of them that agree, by path.
fn stable(summary: &Summary) -> BTreeMap<&'static str, (u64, u64)> {
    summary.paths().map(|(path, tally)| (path.name(), (tally.stable, tally.stable_agree))).collect()
}

/// The policy, but that its scan for an idle CPU goes down from the target, not up.
fn scan_downwards(
    sys: &mut System,
    request: &coreward_policy::Placement,
    task: &mut Task,
    waker: Option<&mut Task>,
    allowed: &CpuMask,
) -> Decision {
    let mut decision = sys.select_task_rq_fair(request, task, waker, allowed);
    if sys.code().reason(decision.reason).name == "IDLE_CPU" {
        let (nr_cpus, target) = (sys.nr_cpus as i32, decision.target);
        let llc = sys.cpu[target as usize].llc;
        let idle = |cpu: &i32| {
            let rq = &sys.cpu[*cpu as usize];
            rq.llc == llc && rq.curr_is_idle != 0 && rq.nr_running == 0 && rq.ttwu_pending == 0
        };
        let mut downwards = (1..nr_cpus).map(|step| (target - step).rem_euclid(nr_cpus));
        decision.cpu = downwards.find(idle).unwrap_or(decision.cpu);
    }
    decision
}

fn recording(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/data/{name}.cwc", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn the_policy_agrees_with_both_kernels() {
    for name in ["hackbench-6.12", "hackbench-7.3"] {
        let summary = summary(&recording(name), System::select_task_rq_fair);
        let stable = stable(&summary);
        assert!(stable.len() >= 17, "{name} has {} paths", stable.len());
        assert!(stable.values().all(|(all, agree)| all == agree), "{name}: {stable:?}");
        // those that the kernel took while CPUs changed are there, and some of them differ
        assert!(!summary.disagreements().is_empty());
    }
}

#[test]
fn the_policy_agrees_where_capacities_differ() {
    let summary = summary(&recording("hackbench-juno-r0-7.3"), System::select_task_rq_fair);
    let stable = stable(&summary);
    assert!(stable.values().all(|(all, agree)| all == agree), "{stable:?}");
    assert_eq!(stable["wakeup: asymmetric capacity"], (2, 2));
}

#[test]
fn another_scan_order_changes_no_other_path() {
    for name in ["hackbench-6.12", "hackbench-7.3"] {
        let mut stable = stable(&summary(&recording(name), scan_downwards));
        assert!(stable.remove("wakeup: scan").is_some());
        assert!(stable.values().all(|(all, agree)| all == agree), "{name}: {stable:?}");
    }
}

/// Wakeups on an LLC of eight CPUs of which all but two are busy, placed as the kernel does.
fn scans() -> Vec<u8> {
    let machine = Shape::plain(1, 8).machine("6.12.107");
    let records = (2..7).map(|first| {
        let mut p = placement(&machine, WF_TTWU);
        let busy_cpus: Vec<_> = (0..8).filter(|cpu| *cpu != first && *cpu != 7).collect();
        busy(&mut p.states, &busy_cpus, 1);
        p.head.chosen = first as i32;
        Record::Placement(Box::new(p))
    });
    file(&machine, &records.collect::<Vec<_>>(), 0)
}

#[test]
fn the_report_names_what_differs() {
    let right = summary(&scans(), System::select_task_rq_fair);
    assert_eq!(stable(&right), BTreeMap::from([("wakeup: scan", (5, 5))]));
    let wrong = summary(&scans(), scan_downwards);
    assert_eq!(stable(&wrong), BTreeMap::from([("wakeup: scan", (5, 0))]));
    let disagreements = wrong.disagreements();
    assert_eq!(disagreements.len(), 1);
    let only = &disagreements[0];
    assert_eq!((only.path, only.policy, only.kernel), ("wakeup: scan", "idle CPU by scan", "idle CPU"));
    assert_eq!((only.kernel_choice, only.stable, only.example), ("same LLC", 5, 1));
}
