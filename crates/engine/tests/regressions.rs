//! Mistakes that were made once: each test here failed before it was mended.

mod support;

use coreward_engine::Leaving;
use coreward_metrics::Metric;
use coreward_workload::Op;
use support::{Event, MS, Setup, hackbench, program, run, spawn, spinners, uneven, workload};

/// A refill that a tick interrupts is paid again in full by the next turn, on top of what was
/// left of the first: what is left to do grows by each turn and the run never ends.
#[test]
fn a_refill_longer_than_a_tick_comes_to_an_end() {
    // 256 KiB are 4096 lines of 1 us: 4.1 ms, with a tick each 4 ms
    let mut s = Setup::free("1c", spinners(2, 10 * MS)).cost("dram_line_ns", 1000);
    s.machine.caches.l2_bytes = 32 << 10;
    s.machine.llc_bytes = vec![32 << 10];
    s.workload.footprint.private_bytes = 256 << 10;
    s.settings.limit_ns = 10_000 * MS;
    assert!(s.try_run().is_ok());
}

/// With one LLC for all CPUs, SCHED_CACHE kept a waiting task off the idle CPU of another cluster, since it was already
/// in the LLC that its process prefers. Linux switches SCHED_CACHE off there (sched_cache_set()).
#[test]
fn preferred_caches_do_not_keep_a_cpu_idle_where_there_is_only_one() {
    let mut s = Setup::new("4c", spinners(5, 400 * MS)).profile("linux-7.3");
    for (cpu, place) in s.machine.cpus.iter_mut().enumerate() {
        place.cluster = Some(cpu / 2);
        place.capacity = if cpu % 2 == 0 { 1024 } else { 512 };
    }
    let idle_s = |s: &Setup, seed| s.clone().seed(seed).run().get(Metric::idle_while_waiting_s);
    let without = s.clone().feature("SCHED_CACHE", false);
    let mut sum_s = 0.0;
    for seed in 1..=20 {
        assert_eq!(idle_s(&s, seed), idle_s(&without, seed));
        sum_s += idle_s(&without, seed);
    }
    assert!(sum_s < 20.0 * 0.1, "{sum_s}");
}

/// Active balance takes a running task off its CPU without a switch that an observer (a trace file) sees.
#[test]
fn active_balance_shows_the_switch_to_the_stopper() {
    let mut s = Setup::free("2l2c", uneven());
    s.machine.cpus.iter_mut().filter(|c| c.llc == 0).for_each(|c| c.capacity = 446);
    for seed in 1..=20 {
        let r = s.clone().seed(seed).run();
        let mut curr = [0; 4];
        for e in &r.events {
            match *e {
                Event::Switch { cpu, prev, next, .. } => {
                    assert_eq!(curr[cpu], prev, "{e:?}");
                    curr[cpu] = next;
                }
                Event::Migrate { pid, .. } => assert!(!curr.contains(&pid), "{e:?} while it runs"),
                _ => {}
            }
        }
    }
}

/// The counters of /proc/schedstat count. (lb_nobusyq needs a busiest group without a queue to pull from, which these runs have not.)
#[test]
fn every_schedstat_counter_counts() {
    let runs: Vec<_> = ["2n2l2c2t", "2l2c", "4c"]
        .iter()
        .flat_map(|m| {
            let mut asym = Setup::new(m, uneven());
            asym.machine.cpus.iter_mut().filter(|c| c.llc == 0).for_each(|c| c.capacity = 446);
            [Setup::new(m, uneven()).run(), asym.run()]
        })
        .chain([Setup::new("2n2l2c2t", hackbench("-g 5 -f 6 -l 400 -T --pipe")).run()])
        .chain([Setup::free("1c", yielders()).run()])
        .collect();
    let cpus = || runs.iter().flat_map(|r| &r.outcome.schedstat);
    let domains = || cpus().flat_map(|c| &c.domains);
    let counters = [
        ("yld_count", cpus().map(|c| c.yld_count).sum::<u64>()),
        ("rq_cpu_time", cpus().map(|c| c.rq_cpu_time).sum()),
        ("run_delay", cpus().map(|c| c.run_delay).sum()),
        ("alb_pushed", domains().map(|d| d.alb_pushed).sum()),
        ("ttwu_move_affine", domains().map(|d| d.ttwu_move_affine).sum()),
        ("ttwu_wake_remote", domains().map(|d| d.ttwu_wake_remote).sum()),
    ];
    let still: Vec<_> = counters.iter().filter(|c| c.1 == 0).map(|c| c.0).collect();
    assert!(still.is_empty(), "{still:?}");
    // readers take attempts to be those that moved a task and those that did not
    assert!(domains().all(|d| d.alb_count == d.alb_pushed + d.alb_failed));
}

/// Two tasks that yield once each.
fn yielders() -> coreward_workload::Workload {
    let program_of_each = program(&[run(MS / 10), Op::Yield, run(MS / 10)]);
    workload(0, vec![program(&[spawn(1), spawn(1), Op::WaitChildren]), program_of_each])
}

/// run_delay is all time that tasks wait for a CPU, not only that after wakeups.
#[test]
fn run_delay_counts_preempted_tasks_too() {
    // two that share a CPU for 40 ms: one of them waits all the time
    let r = Setup::free("1c", spinners(2, 20 * MS)).run();
    let delay: u64 = r.outcome.schedstat.iter().map(|c| c.run_delay).sum();
    assert!(delay >= 30 * MS, "{delay}");
}

/// Of two equal deadlines the waiting task's wins (pick_eevdf: the current one only if it is before).
#[test]
fn a_tie_of_deadlines_goes_to_the_waiting_task() {
    let w = workload(
        0,
        vec![
            program(&[spawn(1), spawn(1), Op::WaitChildren]),
            program(&[run(MS / 10), Op::Yield, run(MS / 10)]),
        ],
    );
    let r = Setup::free("1c", w).run();
    let order: Vec<i32> = r.switches().filter(|s| s.2 > 1).map(|s| s.2).collect();
    assert_eq!(order, [2, 3, 2, 3]);
    assert_eq!(r.switches().filter(|s| s.3 == Leaving::Exited).count(), 3);
}

/// rq_cpu_time is the time from each switch to a task to the switch away from it, on every CPU and in the whole run.
/// The trace has the times of events, and accounting those of the kernel's steps within them, which differ by less than
/// a microsecond and a fiftieth here.
#[test]
fn rq_cpu_time_is_the_time_of_tasks() {
    for (machine, w) in [
        ("1c", spinners(2, 20 * MS)),
        ("2n2l2c2t", uneven()),
        ("2n2l2c2t", hackbench("-g 5 -f 6 -l 400 -T --pipe")),
        ("2n2l2c2t", hackbench("-g 1 -f 2 -l 400 --pipe")),
    ] {
        let r = Setup::new(machine, w).run();
        let mut of_tasks = vec![0; r.outcome.schedstat.len()];
        let mut running = vec![(0, 0); of_tasks.len()];
        for (now, cpu, _, _, next) in r.switches() {
            let (since, task) = std::mem::replace(&mut running[cpu], (now, next));
            of_tasks[cpu] += if task == 0 { 0 } else { now - since };
        }
        assert!(running.iter().all(|(_, task)| *task == 0), "in the end all are idle");
        let told: Vec<_> = r.outcome.schedstat.iter().map(|c| c.rq_cpu_time).collect();
        for (told, of_tasks) in told.iter().zip(&of_tasks) {
            assert!(told.abs_diff(*of_tasks) <= 1000 + of_tasks / 50, "{machine}: {told} and {of_tasks} ns");
        }
    }
}
