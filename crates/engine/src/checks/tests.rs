//! Each invariant has a run that breaks it, and one that does not.

use super::*;
use crate::Settings;
use crate::testing::{begun, settings};
use coreward_machine::Machine;
use coreward_policy::layout::SD_BALANCE_NEWIDLE;
use coreward_policy::{Changes, PolicySettings, Profile, feature_words};
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

/// Does something to a simulation that has just begun.
fn at_start(machine: &str, mut look: impl FnMut(&mut Simulation)) {
    with_simulation(machine, &released(1), |sim| look(sim));
}

/// What is found in a run to which something is done before each event.
fn found(machine: &str, workload: &str, mut tamper: impl FnMut(&mut Simulation)) -> Checks {
    with_simulation(machine, workload, |sim| {
        while sim.nr_live > 0 {
            tamper(sim);
            sim.step().unwrap();
        }
        std::mem::take(&mut sim.watch.found)
    })
}

fn with_simulation<R>(machine: &str, workload: &str, then: impl FnOnce(&mut Simulation) -> R) -> R {
    let machine = if machine.contains('\n') {
        Machine::from_toml_str("test.toml", machine).unwrap()
    } else {
        Machine::load(machine).unwrap()
    };
    let workload = rt_app::from_text("test.json", workload, Scale::FULL).unwrap();
    // with this seed, the first task does not begin on CPU 0
    begun(&machine, &workload, &Settings { seed: 2, ..settings(&Changes::default(), 0) }, then)
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
fn only_a_group_whose_idle_cpus_all_help_owes_a_misfit_its_help() {
    // of CPUs 2 and 3 the first balances for both
    let machine = |small: &str| {
        format!("[[llc]]\ncpus = \"0-1\"\n[[llc]]\ncpus = \"2-3\"\n[capacity]\n\"{small}\" = 300\n")
    };
    let stuck = |small: &str| broken(&found(&machine(small), &released(1), unbalanced));
    assert_eq!(stuck("0-1"), [Invariant::Misfit]);
    assert_eq!(stuck("0-2"), []);
}

#[test]
fn a_cpu_counts_as_bigger_by_the_rule_of_the_kernel() {
    let machine = "[[llc]]\ncpus = \"0-1\"\n[capacity]\n\"0\" = 900\n";
    at_start(machine, |sim| {
        // 14 % more: more than the 5 % of capacity_greater(), less than the 25 % of capacity_margin
        assert!(sim.is_bigger(1, 0) && !sim.is_bigger(0, 1));
        let older = PolicySettings::new(Profile::named("linux-5.10").unwrap());
        sim.sys.features = feature_words(older.features);
        assert!(!sim.is_bigger(1, 0));
    });
}

#[test]
fn a_group_with_a_free_cpu_or_with_time_to_spare_is_not_overloaded() {
    let overloaded = |nr_running: [u32; 2], util_avg: [u64; 2]| {
        let mut found = (false, false);
        at_start("2n2c", |sim| {
            for cpu in 0..2 {
                sim.sys.cpu[cpu].nr_running = nr_running[cpu];
                sim.sys.cpu[cpu].avg.util_avg = util_avg[cpu];
            }
            // as CPU 1 sees CPU 0, and as another node sees both
            found = (sim.is_overloaded(1, 0), sim.is_overloaded(2, 0));
        });
        found
    };
    assert_eq!(overloaded([2, 0], [1000, 0]), (true, false));
    assert_eq!(overloaded([2, 1], [1000, 1000]), (true, true));
    assert_eq!(overloaded([2, 1], [1000, 100]), (true, false));
    assert_eq!(overloaded([2, 1], [100, 100]), (false, false));
    assert_eq!(overloaded([2, 1], [3000, 100]), (true, false));
}

#[test]
fn a_group_is_overloaded_if_that_is_seen_by_the_cpu_that_balances() {
    // to CPU 2, CPU 1 is a group; CPU 0, which balances for both, sees a group of CPUs 1 and 2
    let machine = "shape = \"3n1l1c1t\"\ndistances = [[10, 31, 20], [31, 10, 21], [20, 21, 10]]\n";
    at_start(machine, |sim| {
        (sim.sys.cpu[1].nr_running, sim.sys.cpu[1].avg.util_avg) = (2, 1000);
        assert_eq!(sim.idle_beside(2, 1).next(), Some(0));
        assert!(sim.is_overloaded(2, 1) && !sim.is_overloaded(0, 1));
    });
}

#[test]
fn a_misfit_counts_as_unhelped_only_while_somebody_could_help() {
    let machine = "[[llc]]\ncpus = \"0-1\"\n[[llc]]\ncpus = \"2-3\"\n[capacity]\n\"0-1\" = 300\n";
    // for every fourth look, the cores of the big CPUs are busy
    let checks = found(machine, &released(1), |sim| {
        unbalanced(sim);
        let busy = u32::from(sim.watch.looks % 4 == 0);
        sim.cpus[2..].iter_mut().for_each(|cpu| cpu.active_siblings = busy);
    });
    assert_eq!(broken(&checks), []);
    assert!((1..NOTICE_NS).contains(&checks.idle_beside_misfit_ns), "{checks:?}");
}

#[test]
fn each_cpu_that_balances_for_a_group_has_a_time_of_its_own_to_pull() {
    let checks = |looks| {
        found("[[llc]]\ncpus = \"0-0\"\n[[llc]]\ncpus = \"1-2\"\n", &released(4), |sim| {
            unbalanced(sim);
            // for every so many looks, CPU 2 is the first idle one
            let levels = sim.sys.cpu[2].nr_sd;
            sim.sys.cpu[1].nr_sd = if sim.watch.looks % looks == 0 { 0 } else { levels };
        })
    };
    assert_eq!(broken(&checks(u32::MAX)), [Invariant::WorkConserving]);
    assert_eq!(broken(&checks(8)), []);
}

#[test]
fn what_bound_tasks_leave_idle_is_claimed_when_their_intervals_are_over() {
    // all may run anywhere after 100 ms, and have work for 400 ms or 2 s
    let stuck = |run: &str| broken(&found("4c", &released(3).replace("2000000", run), unbalanced));
    assert_eq!(stuck("130000"), []);
    assert_eq!(stuck("2000000"), [Invariant::WorkConserving]);
}

#[test]
fn before_6_8_a_task_may_be_too_big_for_what_a_group_has_to_spare() {
    at_start("2c", |sim| {
        sim.tasks[0].policy.avg.util_avg = 600;
        sim.sys.cpu[1].avg.util_avg = 500;
        assert!(!sim.exceeds_spare(0, 1, 0));
        sim.sys.features = feature_words(PolicySettings::new(Profile::named("linux-6.6").unwrap()).features);
        assert!(sim.exceeds_spare(0, 1, 0));
        sim.sys.cpu[1].avg.util_avg = 400;
        assert!(!sim.exceeds_spare(0, 1, 0));
    });
}

#[test]
fn before_6_5_a_cpu_without_siblings_is_given_no_task_of_a_whole_core() {
    at_start("1n1l2c2t", |sim| {
        let newer = sim.sys.features;
        let older = feature_words(PolicySettings::new(Profile::named("linux-6.1").unwrap()).features);
        let mut spares_none = |features| {
            sim.sys.features = features;
            let with = sim.spares_no_task(1, 0);
            // as if CPU 3 were offline: the domain of their core is gone
            let lowest = sim.sys.cpu_sd[1][0];
            (sim.sys.cpu_sd[1][0], sim.sys.cpu[1].nr_sd) = (sim.sys.cpu_sd[1][1], 1);
            let without = sim.spares_no_task(1, 0);
            (sim.sys.cpu_sd[1][0], sim.sys.cpu[1].nr_sd) = (lowest, 2);
            [with, without]
        };
        assert_eq!([spares_none(older), spares_none(newer)], [[false, true], [false, false]]);
    });
}

#[test]
fn each_cpu_that_balances_for_a_group_has_a_time_of_its_own_to_help_a_misfit() {
    let machine = "[[llc]]\ncpus = \"0-1\"\n[[llc]]\ncpus = \"2-3\"\n[capacity]\n\"0-1\" = 300\n";
    // for every fourth look, CPU 3 is the first idle one
    let checks = found(machine, &released(1), |sim| {
        unbalanced(sim);
        let levels = sim.sys.cpu[3].nr_sd;
        sim.sys.cpu[2].nr_sd = if sim.watch.looks % 4 == 0 { 0 } else { levels };
    });
    assert_eq!(broken(&checks), []);
    assert!((1..NOTICE_NS).contains(&checks.idle_beside_misfit_ns), "{checks:?}");
}

#[test]
fn a_wait_is_judged_by_the_heaviest_queue_during_it() {
    // beside tasks of nice -20, those of nice 19 have a turn in 3 s together; when the heavy ones have ended, the last of
    // the others has still to wait for a turn of each, but in a light queue
    let workload = r#"{"tasks": {
        "light": {"instance": 40, "loop": 1, "priority": 19, "run": 5000},
        "heavy": {"instance": 6, "loop": 1, "priority": -20, "run": 600000}}}"#;
    let found = found("1c", workload, |_| ());
    assert!(found.waiting_ns > 3_600_000_000, "{found:?}");
    assert_eq!(broken(&found), []);
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
