//! Decisions made by hand, one for each path: what the kernel does is worked out from its rules, and has to be what the
//! policy does; and a change of an input makes the decision unstable only if the path reads it.

mod common;

use common::{Shape, WF_EXEC, WF_FORK, WF_SYNC, WF_TTWU, balance, busy, compare, placement, replay};
use coreward_machine::CpuSet;
use coreward_parity::format::{CPU_CURR_IDLE, ChangedCpu, CpuState, Queue, TASK_PERCPU_KTHREAD};
use coreward_parity::{Choice, Outcome, Placement, Record, RecordedMachine};

const KERNELS: [&str; 2] = ["6.12.107+deb13-amd64", "7.3.4+deb13-amd64"];

/// On both kernels: the policy has to choose `chosen` on this path, and any other choice is a disagreement.
fn check(shape: &Shape, path: &str, chosen: i32, make: impl Fn(&RecordedMachine) -> Placement) {
    for release in KERNELS {
        let machine = shape.machine(release);
        let mut placement = make(&machine);
        placement.head.chosen = chosen;
        let outcome = compare(&machine, placement.clone());
        assert_eq!((outcome.path.name(), &outcome.policy), (path, &Choice::Cpu(chosen)), "{release}");
        assert!(outcome.agrees() && outcome.is_stable());
        placement.head.chosen = (chosen + 1) % 4;
        assert!(!compare(&machine, placement).agrees());
    }
}

#[test]
fn target_idle() {
    // the waker on CPU 0 is busy and the previous CPU idle: that is the target
    check(&Shape::plain(1, 4), "wakeup: target idle", 1, |machine| {
        let mut p = placement(machine, WF_TTWU);
        busy(&mut p.states, &[0], 1);
        p.head.prev_cpu = 1;
        p
    });
}

#[test]
fn previous_cpu_idle() {
    // a sync waker that is alone makes its own CPU the target, which is not idle yet
    check(&Shape::plain(1, 4), "wakeup: previous CPU idle", 2, |machine| {
        let mut p = placement(machine, WF_TTWU | WF_SYNC);
        busy(&mut p.states, &[0], 1);
        p.head.prev_cpu = 2;
        p
    });
}

#[test]
fn percpu_kthread() {
    check(&Shape::plain(1, 4), "wakeup: per-CPU kthread", 0, |machine| {
        let mut p = placement(machine, WF_TTWU);
        busy(&mut p.states, &[0], 1);
        p.head.waker.flags = TASK_PERCPU_KTHREAD;
        p
    });
}

#[test]
fn recent_cpu() {
    check(&Shape::plain(1, 4), "wakeup: recent CPU", 3, |machine| {
        let mut p = placement(machine, WF_TTWU);
        busy(&mut p.states, &[0], 1);
        p.head.task.recent_used_cpu = 3;
        p
    });
}

fn scan(machine: &RecordedMachine) -> Placement {
    let mut p = placement(machine, WF_TTWU);
    busy(&mut p.states, &[0, 1], 1);
    p
}

#[test]
fn scan_begins_after_the_target() {
    check(&Shape::plain(1, 4), "wakeup: scan", 2, scan);
}

#[test]
fn idle_core() {
    // CPU 2 is idle, but its sibling is not; CPUs 1 and 3 are an idle core
    check(&Shape::smt(), "wakeup: idle core", 1, |machine| {
        let mut p = placement(machine, WF_TTWU);
        busy(&mut p.states, &[0], 1);
        p.states.cpus.iter_mut().for_each(|cpu| cpu.has_idle_cores = 1);
        p
    });
}

#[test]
fn smt_sibling() {
    // no idle core is noted: the sibling of the previous CPU comes first
    check(&Shape::smt(), "wakeup: SMT", 2, |machine| {
        let mut p = placement(machine, WF_TTWU);
        busy(&mut p.states, &[0], 1);
        p
    });
}

#[test]
fn asymmetric_capacity() {
    // 600 does not fit 446; the scan begins with the target, so CPU 2 is the first that is big enough
    check(&Shape::asymmetric(), "wakeup: asymmetric capacity", 2, |machine| {
        let mut p = placement(machine, WF_TTWU);
        busy(&mut p.states, &[0], 1);
        p.head.task.util_avg = 600;
        p
    });
}

#[test]
fn fallback() {
    check(&Shape::plain(1, 4), "wakeup: fallback", 0, |machine| {
        let mut p = placement(machine, WF_TTWU);
        busy(&mut p.states, &[0, 1, 2, 3], 2);
        p
    });
}

#[test]
fn fork_goes_to_the_idlest_group() {
    // the second LLC has two idle CPUs, the first one; there its first CPU
    check(&Shape::plain(2, 2), "fork", 2, |machine| {
        let mut p = placement(machine, WF_FORK);
        busy(&mut p.states, &[0], 1);
        p.states.cpus[2].idle_stamp = 1;
        p
    });
}

#[test]
fn exec_stays_where_it_is_alone() {
    check(&Shape::plain(1, 4), "exec", 0, |machine| {
        let mut p = placement(machine, WF_EXEC);
        busy(&mut p.states, &[0], 1);
        (p.head.task.last_update_time, p.head.task.cfs_rq_update_time) = (1, 1);
        (p.head.task.util_avg, p.head.task.runnable_avg) = (1024, 1024);
        p
    });
}

/// CPU 0 has three tasks, the others none.
fn pull(machine: &RecordedMachine, idle_type: u32) -> Vec<Outcome> {
    let mut balance = balance(machine, 3, 4, idle_type);
    busy(&mut balance.states, &[0], 3);
    balance.group = CpuSet::single(0);
    let queue = Queue { sequence: balance.head.sequence, src_cpu: 0, pad: 0 };
    let mut replay = replay(machine);
    let mut outcomes = replay.compare(&Record::Balance(Box::new(balance)));
    outcomes.extend(replay.compare(&Record::Queue(queue)));
    outcomes
}

#[test]
fn balances_pull_from_the_only_busy_queue() {
    for release in KERNELS {
        let machine = Shape::plain(1, 4).machine(release);
        for (idle_type, name) in [(2, "newidle"), (1, "idle")] {
            let outcomes = pull(&machine, idle_type);
            let paths: Vec<_> = outcomes.iter().map(|o| o.path.name()).collect();
            assert_eq!(paths, ["group", "imbalance", "queue"].map(|part| format!("{name}: {part}")));
            assert!(outcomes[0].agrees() && outcomes[2].agrees());
            // nothing was filled in for the imbalance
            assert!(!outcomes[1].agrees());
        }
    }
}

#[test]
fn a_balance_of_nothing_is_balanced() {
    let machine = Shape::plain(1, 4).machine(KERNELS[0]);
    let mut balance = balance(&machine, 3, 4, 0);
    let outcomes = replay(&machine).compare(&Record::Balance(Box::new(balance.clone())));
    assert_eq!(outcomes.len(), 1);
    assert!(outcomes[0].agrees());
    assert_eq!(outcomes[0].path.name(), "busy: group");
    balance.group = CpuSet::single(1);
    let outcomes = replay(&machine).compare(&Record::Balance(Box::new(balance)));
    assert_eq!((outcomes.len(), outcomes[0].relation), (1, "only the kernel pulls"));
}

#[test]
fn each_group_has_the_state_of_its_own_cpus() {
    let machine = Shape::plain(2, 2).machine(KERNELS[0]);
    let mut balance = balance(&machine, 0, 4, 1);
    busy(&mut balance.states, &[2, 3], 2);
    // entries come CPU by CPU, the lower domain first: these are CPU 1 alone, and the LLC of CPUs 2 and 3
    balance.states.groups[2].capacity = 700;
    balance.states.groups[5].capacity = 1500;
    balance.states.groups[7].capacity = 1500;
    let [local, busiest] = replay(&machine).describe_groups(&balance);
    // the local group is brought up to date with the groups of its CPUs, 1024 and 700
    assert!(local.ends_with(", capacity 1724"), "{local}");
    assert!(busiest.ends_with(", capacity 1500"), "{busiest}");
}

#[test]
fn the_lowest_balance_has_renewed_the_capacity_of_its_cpu() {
    let machine = Shape::plain(1, 4).machine(KERNELS[0]);
    let mut balance = balance(&machine, 0, 4, 1);
    busy(&mut balance.states, &[1], 2);
    let after = CpuState { capacity: 900, ..balance.states.cpus[0] };
    balance.states.changed = vec![ChangedCpu { cpu: 0, pad: 0, after }];
    let mut replay = replay(&machine);
    let [local, _] = replay.describe_groups(&balance);
    assert!(local.ends_with(", capacity 900"), "{local}");
    assert!(replay.compare(&Record::Balance(Box::new(balance.clone())))[0].is_stable());
    balance.states.changed[0].cpu = 1;
    assert!(!replay.compare(&Record::Balance(Box::new(balance)))[0].is_stable());
}

#[test]
fn a_queue_without_its_balance_is_no_comparison() {
    let machine = Shape::plain(1, 4).machine(KERNELS[0]);
    let queue = Queue { sequence: 5, src_cpu: 0, pad: 0 };
    assert!(replay(&machine).compare(&Record::Queue(queue)).is_empty());
}

/// The scan of a machine of two LLCs, of which CPU `cpu` was changed meanwhile.
fn is_stable_with(cpu: u32, change: fn(&mut CpuState)) -> bool {
    let machine = Shape::plain(2, 4).machine(KERNELS[0]);
    let mut p = scan(&machine);
    let mut after = p.states.cpus[cpu as usize];
    change(&mut after);
    p.states.changed = vec![ChangedCpu { cpu, pad: 0, after }];
    compare(&machine, p).is_stable()
}

#[test]
fn only_what_the_path_may_read_makes_it_unstable() {
    assert!(!is_stable_with(3, |cpu| cpu.nr_running = 1));
    assert!(!is_stable_with(2, |cpu| cpu.flags &= !CPU_CURR_IDLE));
    assert!(!is_stable_with(0, |cpu| cpu.nr_idle_scan = 1));
    // the other LLC, loads of CPUs that are not compared, what only balancing reads
    assert!(is_stable_with(4, |cpu| cpu.nr_running = 1));
    assert!(is_stable_with(2, |cpu| cpu.load_avg = 1));
    assert!(is_stable_with(2, |cpu| cpu.idle_stamp = 1));
    assert!(is_stable_with(0, |cpu| cpu.misfit_task_load = 1));
}

#[test]
fn a_failed_search_for_a_core_may_take_its_note_back() {
    let machine = Shape::smt().machine(KERNELS[0]);
    let with_note = |busy_cpus: &[usize]| {
        let mut p = placement(&machine, WF_TTWU);
        busy(&mut p.states, busy_cpus, 1);
        p.states.cpus.iter_mut().for_each(|cpu| cpu.has_idle_cores = 1);
        let after = p.states.cpus.iter().map(|cpu| CpuState { has_idle_cores: 0, ..*cpu });
        p.states.changed = (0..).zip(after).map(|(cpu, after)| ChangedCpu { cpu, pad: 0, after }).collect();
        compare(&machine, p).is_stable()
    };
    assert!(with_note(&[0, 1]), "no core is idle: the search itself has found that out");
    assert!(!with_note(&[0]), "a core is idle: somebody else took the note back");
}
