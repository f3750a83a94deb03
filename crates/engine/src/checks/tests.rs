//! Each invariant has a run that breaks it, and one that does not.

use super::*;
use crate::{NoTrace, Settings};
use coreward_machine::{DomainOptions, Machine, Topology};
use coreward_policy::layout::SD_BALANCE_NEWIDLE;
use coreward_policy::{PolicySettings, Profile};
use coreward_workload::{Scale, rt_app};

const BIG_LITTLE: &str = "[[llc]]\ncpus = \"0-1\"\n[capacity]\n\"0\" = 300\n";

/// The threads of one task, which may use CPU 0 at first and all from 100 ms on.
fn released(instances: u32) -> String {
    format!(
        "{{\"tasks\": {{\"t\": {{\"instance\": {instances}, \"loop\": 1, \"phases\": {{
            \"held\": {{\"cpus\": [0], \"loop\": 1, \"runtime\": 100000}},
            \"free\": {{\"cpus\": [0, 1, 2, 3], \"loop\": 1, \"run\": 2000000}}}}}}}}}}"
    )
}

/// Something that is done to a simulation before an event.
type Tamper = fn(&mut Simulation);

/// What is found in a run to which something is done before each event.
fn found(machine: &str, workload: &str, mut tamper: impl FnMut(&mut Simulation)) -> Checks {
    let machine = if machine.contains('\n') {
        Machine::from_toml_str("test.toml", machine).unwrap()
    } else {
        Machine::load(machine).unwrap()
    };
    let topology = Topology::build(&machine, &DomainOptions::default()).unwrap();
    let workload = rt_app::from_text("test.json", workload, Scale::FULL).unwrap();
    let settings = Settings {
        policy: PolicySettings::new(Profile::DEFAULT),
        seed: 1,
        task_group_depth: 0,
        steady: false,
        limit_ns: u64::MAX >> 12,
    };
    let mut trace = NoTrace;
    let mut sim = Simulation::new(&machine, &topology, &workload, &settings, &mut trace).unwrap();
    while sim.nr_live > 0 {
        tamper(&mut sim);
        sim.step().unwrap();
    }
    sim.watch.found
}

fn broken(checks: &Checks) -> Vec<Invariant> {
    checks.violations.iter().map(|violation| violation.invariant).collect()
}

/// Nothing is ever balanced.
fn unbalanced(sim: &mut Simulation) {
    for cpu in 0..sim.cpus.len() {
        for level in 0..sim.sys.cpu[cpu].nr_sd as usize {
            let sd = &mut sim.sys.cpu_sd[cpu][level];
            sd.last_balance = u64::MAX / 2;
            let domain = sd.domain as usize;
            sim.sys.domain[domain].flags &= !SD_BALANCE_NEWIDLE;
        }
    }
}

#[test]
fn tasks_that_are_never_pulled_break_work_conservation() {
    let intact = found("4c", &released(3), |_| ());
    assert_eq!(broken(&intact), []);
    assert!(intact.idle_beside_waiting_ns < NOTICE_NS, "{intact:?}");
    let stuck = found("4c", &released(3), unbalanced);
    assert_eq!(broken(&stuck), [Invariant::WorkConserving], "{stuck:?}");
    assert!(stuck.idle_beside_waiting_ns > 1_000_000_000, "{stuck:?}");
    assert!(stuck.violations[0].to_string().contains("wait on CPU 0, now task "), "{stuck:?}");
}

#[test]
fn a_misfit_that_is_never_pulled_is_found() {
    let intact = found(BIG_LITTLE, &released(1), |_| ());
    assert_eq!(broken(&intact), []);
    let stuck = found(BIG_LITTLE, &released(1), unbalanced);
    assert_eq!(broken(&stuck), [Invariant::Misfit]);
    assert!(
        stuck.idle_beside_misfit_ns > intact.idle_beside_misfit_ns + 1_000_000_000,
        "{intact:?} {stuck:?}"
    );
    assert!(stuck.violations[0].what.starts_with("CPU 1 has been idle for "), "{stuck:?}");
}

#[test]
fn a_task_that_is_never_charged_starves_the_others() {
    let intact = found("1c", &released(2), |_| ());
    assert_eq!(broken(&intact), []);
    assert!((1..100_000_000).contains(&intact.waiting_ns), "{intact:?}");
    let mut free = None;
    let starved = found("1c", &released(2), |sim| {
        let curr = &mut sim.cpus[0].fair.rq.curr;
        if curr.id == 1 {
            curr.vruntime = *free.get_or_insert(curr.vruntime);
        }
    });
    assert_eq!(broken(&starved), [Invariant::Starvation]);
    assert!(starved.violations[0].what.starts_with("task 3 has waited on CPU 0 for "), "{starved:?}");
}

#[test]
fn a_sum_that_is_not_that_of_the_tasks_is_found() {
    let tampers: [Tamper; 5] = [
        |sim| sim.sys.cpu[0].load_weight += 1,
        |sim| sim.sys.cpu[0].cfs_nr_running += 1,
        |sim| sim.sys.cpu[0].idle_nr_running += 1,
        |sim| sim.sys.cpu[0].cfs_nr_delayed += 1,
        |sim| sim.sys.cpu[0].avg.util_est += 1,
    ];
    for tamper in tampers {
        let mut left = 1;
        let checks = found("2c", &released(3), |sim| {
            if left > 0 && sim.now > START_NS + 1_000_000_000 {
                left -= 1;
                tamper(sim);
            }
        });
        assert!(broken(&checks).contains(&Invariant::Sums), "{checks:?}");
    }
}

#[test]
fn domains_that_do_not_cover_are_found() {
    let tampers: [(Tamper, &str); 4] = [
        (|_| (), ""),
        (|sim| sim.sys.cpu[3].nr_sd -= 1, "do not span its partition"),
        (|sim| sim.sys.group[0].span.bits[0] = 0, "do not cover it"),
        (|sim| sim.sys.cpu_sd[0][0].local_group += 1, "is not in its own group"),
    ];
    for (tamper, what) in tampers {
        let mut first = true;
        let checks = found("2n2c", &released(1), |sim| {
            if std::mem::take(&mut first) {
                tamper(sim);
                sim.check_domains(&[sim.masks[0]]);
            }
        });
        match checks.violations.as_slice() {
            [] => assert_eq!(what, ""),
            [violation, ..] => {
                assert!(!what.is_empty() && violation.what.contains(what), "{violation:?}")
            }
        }
    }
}
