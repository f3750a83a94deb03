//! Task groups: weights and quotas, also changed in mid-run.

mod support;

use coreward_engine::{GroupUse, SimError};
use coreward_metrics::Metric;
use coreward_policy::Profile;
use coreward_workload::{Attributes, Op, ProgramBuilder, Scale, TaskGroup, rt_app};
use support::{MS, Run, Setup, program, run, spawn, workload};

/// The tick of the machines here, in ns.
const TICK: u64 = 4 * MS;

/// For two seconds, as many spinning threads of each group as it says; those of group "" are in the workload's own.
fn spinning(groups: &[(&str, u32)]) -> coreward_workload::Workload {
    let task = |(i, (group, n)): (usize, &(&str, u32))| {
        format!("\"t{i}\": {{\"instance\": {n}, \"loop\": -1, \"taskgroup\": \"{group}\", \"run\": 700}}")
    };
    let tasks: Vec<_> = groups.iter().enumerate().map(task).collect();
    let text = format!("{{\"global\": {{\"duration\": 2}}, \"tasks\": {{{}}}}}", tasks.join(", "));
    rt_app::from_text("groups.json", &text, Scale::FULL).unwrap()
}

fn changed(setup: &Setup, changes: &[&str]) -> Run {
    let run = setup.run_changed(changes).unwrap_or_else(|error| panic!("{changes:?}: {error}"));
    assert_eq!(run.outcome.checks.violations, [], "{changes:?}");
    run
}

fn group<'a>(run: &'a Run, name: &str) -> &'a GroupUse {
    run.outcome.groups.iter().find(|group| group.name == name).unwrap()
}

/// CPU time of /a as a multiple of that of /b.
fn ratio(run: &Run) -> f64 {
    group(run, "/a").cpu_ns as f64 / group(run, "/b").cpu_ns as f64
}

#[test]
fn groups_share_by_their_weights() {
    for profile in Profile::ALL {
        let setup = Setup::new("1c", spinning(&[("/a", 1), ("/b", 1)])).profile(profile);
        for (weight, share) in [(100, 1.0), (300, 3.0), (50, 0.5)] {
            let run = changed(&setup, &[&format!("0s weight /a {weight}")]);
            let got = ratio(&run);
            assert!((got / share - 1.0).abs() < 0.05, "{profile}: {weight}: {got}");
        }
    }
}

#[test]
fn the_number_of_tasks_of_a_group_does_not_matter() {
    let setup = |groups: &[(&str, u32)]| Setup::new("1c", spinning(groups));
    let run = changed(&setup(&[("/a", 3), ("/b", 1)]), &[]);
    assert!((ratio(&run) - 1.0).abs() < 0.05, "{}", ratio(&run));
    // beside tasks of the workload's own group, /a is one of four
    let run = changed(&setup(&[("/a", 3), ("", 3)]), &[]);
    let share = group(&run, "/a").cpu_ns as f64 / group(&run, "/").cpu_ns as f64;
    assert!((share - 0.25).abs() < 0.02, "{share}");
}

#[test]
fn a_weight_changes_in_mid_run() {
    let setup = Setup::new("1c", spinning(&[("/a", 1), ("/b", 1)]));
    // half of the first second, and three quarters of the second one
    let share = 0.5 / 2.0 + 0.75 / 2.0;
    let got = ratio(&changed(&setup, &["1s weight /a 300"]));
    assert!((got / (share / (1.0 - share)) - 1.0).abs() < 0.05, "{got}");
    let back = ratio(&changed(&setup, &["0s weight /a 300", "1us weight /a 100"]));
    assert!((back - 1.0).abs() < 0.05, "{back}");
}

/// Two tasks spin on a CPU for two seconds, the first in a group until it has done half a second of work, and does `op`.
/// CPU time of the groups, in ms.
fn after_half_a_second(groups: &[TaskGroup], op: Op) -> Vec<u64> {
    let spins = |b: ProgramBuilder| b.until_stopped(|b| b.op(run(MS))).build();
    let body = spins(ProgramBuilder::default().at_most_until_stopped(500, |b| b.op(run(MS))).op(op));
    let main = program(&[spawn(1), spawn(2), Op::Sleep { ns: 2_000 * MS }, Op::Stop]);
    let mut w = workload(0, vec![main, body, spins(ProgramBuilder::default())]);
    w.groups = groups.to_vec();
    w.attributes = vec![
        Attributes::default(),
        Attributes { group: Some(0), ..Attributes::default() },
        Attributes::default(),
    ];
    let run = Setup::free("1c", w).run();
    assert_eq!(run.outcome.checks.violations, []);
    run.outcome.groups.iter().map(|group| group.cpu_ns / MS).collect()
}

fn close(got: u64, wanted: u64) {
    assert!(got.abs_diff(wanted) <= wanted / 20 + 10, "{got} instead of {wanted}");
}

#[test]
fn a_group_begins_with_its_weight_and_its_quota() {
    let stays = Op::SetGroup { group: Some(0) };
    let a = TaskGroup::new("/a");
    // half of two seconds
    close(after_half_a_second(std::slice::from_ref(&a), stays)[1], 1_000);
    close(after_half_a_second(&[TaskGroup { weight: 300, ..a.clone() }], stays)[1], 1_500);
    close(after_half_a_second(&[TaskGroup { weight: 50, ..a.clone() }], stays)[1], 667);
    close(after_half_a_second(&[TaskGroup { max: Some((20 * MS, 100 * MS)), ..a }], stays)[1], 400);
}

#[test]
fn a_task_moves_to_another_group_in_mid_run() {
    let groups = [TaskGroup::new("/a"), TaskGroup { weight: 300, ..TaskGroup::new("/b") }];
    let [_, a, b] = after_half_a_second(&groups, Op::SetGroup { group: Some(1) })[..] else { panic!() };
    // one second for the half, then three quarters of the other
    close(a, 500);
    close(b, 750);
    let [_, a, b] = after_half_a_second(&groups, Op::SetGroup { group: None })[..] else { panic!() };
    close(a, 500);
    assert_eq!(b, 0);
    // out of a group with a small share, it has half
    let groups = [TaskGroup { weight: 50, ..TaskGroup::new("/a") }];
    close(after_half_a_second(&groups, Op::SetGroup { group: None })[1], 500);
}

/// A lag grew with each move by what the weight in effect is less than the task's own.
#[test]
fn moving_to_and_fro_does_not_starve_others() {
    let moves = |op: Op| ProgramBuilder::default().until_stopped(|b| b.op(run(MS)).op(op)).build();
    let stays = Op::SetGroup { group: Some(0) };
    let programs = vec![
        program(&[spawn(1), spawn(1), spawn(2), Op::Sleep { ns: 500 * MS }, Op::Stop]),
        moves(stays),
        moves(Op::Yield),
    ];
    let mut w = workload(0, programs);
    w.groups = vec![TaskGroup::new("/a")];
    let moved = Attributes { nice: -20, group: Some(0), ..Attributes::default() };
    w.attributes = vec![Attributes::default(), moved, Attributes::default()];
    let run = Setup::free("1c", w).run();
    assert_eq!(run.outcome.checks.violations, []);
    let share = group(&run, "/a").cpu_ns as f64 / group(&run, "/").cpu_ns as f64;
    assert!((share - 0.5).abs() < 0.05, "{share}");
}

#[test]
fn a_task_that_moves_to_a_group_without_quota_left_waits_for_its_next_period() {
    let limited = TaskGroup { max: Some((10 * MS, 100 * MS)), ..TaskGroup::new("/b") };
    let [_, a, b] =
        after_half_a_second(&[TaskGroup::new("/a"), limited], Op::SetGroup { group: Some(1) })[..]
    else {
        panic!()
    };
    close(a, 500);
    close(b, 100);
}

#[test]
fn a_quota_caps_the_cpu_time_of_each_period() {
    for profile in Profile::ALL {
        let setup = Setup::new("4c", spinning(&[("/a", 6)])).profile(profile);
        let run = changed(&setup, &["0s max /a 60ms/100ms"]);
        let a = group(&run, "/a");
        assert!((19..=20).contains(&a.periods), "{profile}: {a:?}");
        // what a tick notices too late is missing in the next period
        let (least, most) = (a.periods * 60 * MS, (a.periods + 1) * 60 * MS + 4 * TICK);
        assert!((least..=most).contains(&a.cpu_ns), "{profile}: {a:?}");
        assert!(a.throttled_periods >= a.periods - 1, "{profile}: {a:?}");
        // four CPUs, each throttled for most of 85 % of the time
        assert!((5_000 * MS..=8_000 * MS).contains(&a.throttled_ns), "{profile}: {a:?}");
        assert!(group(&run, "/").cpu_ns - a.cpu_ns < MS, "{profile}");
    }
}

#[test]
fn a_quota_of_more_than_all_cpus_throttles_nobody() {
    let setup = Setup::new("4c", spinning(&[("/a", 6)]));
    let run = changed(&setup, &["0s max /a 500ms/100ms"]);
    let a = group(&run, "/a");
    assert_eq!((a.throttled_periods, a.throttled_ns), (0, 0));
    assert!(a.cpu_ns > 7_900 * MS, "{a:?}");
}

#[test]
fn a_quota_of_the_workload_holds_for_all_its_groups() {
    let setup = Setup::new("2c", spinning(&[("/a", 1), ("/b", 1)]));
    let run = changed(&setup, &["0s max / 50ms/100ms"]);
    let all = group(&run, "/").cpu_ns;
    assert!((1_000 * MS - 50 * MS..=1_050 * MS + 2 * TICK).contains(&all), "{all}");
    assert!((ratio(&run) - 1.0).abs() < 0.2, "{}", ratio(&run));
}

#[test]
fn a_quota_changes_in_mid_run() {
    let setup = Setup::new("1c", spinning(&[("/a", 1)]));
    let ms = |changes: &[&str]| group(&changed(&setup, changes), "/a").cpu_ns / MS;
    let close = |got: u64, expected: u64| assert!(got.abs_diff(expected) <= 25, "{got} {expected}");
    close(ms(&["0s max /a 20ms/100ms"]), 400);
    close(ms(&["0s max /a 20ms/100ms", "1s max /a max"]), 1200);
    close(ms(&["1s max /a 20ms/100ms"]), 1200);
    close(ms(&["0s max /a 20ms/100ms", "1s max /a 40ms/100ms"]), 600);
    close(ms(&["0s max /a 20ms/100ms", "1s max /a 20ms/50ms"]), 600);
}

#[test]
fn throttled_tasks_leave_their_cpu_to_others_and_survive_its_loss() {
    let setup = Setup::new("2c", spinning(&[("/a", 2), ("/b", 2)]));
    let run = changed(&setup, &["0s max /a 10ms/100ms"]);
    let (a, b) = (group(&run, "/a").cpu_ns, group(&run, "/b").cpu_ns);
    assert!(a < 240 * MS && b > 3_700 * MS, "{a} {b}");
    let run = changed(&setup, &["0s max /a 10ms/100ms", "150ms offline 1", "1s online 1"]);
    let a = group(&run, "/a").cpu_ns;
    assert!((150 * MS..240 * MS).contains(&a), "{a}");
}

#[test]
fn groups_without_weights_and_quotas_change_nothing() {
    let plain = Setup::new("4c", spinning(&[("", 6)]));
    assert!(plain.run().outcome.groups.is_empty());
    let run = changed(&plain, &["5s max / 20ms"]);
    assert_eq!(run.get(Metric::context_switches), plain.run().get(Metric::context_switches));
}

#[test]
fn changes_of_groups_that_there_are_not_are_refused() {
    let setup = Setup::new("1c", spinning(&[("/a", 1)]));
    for (change, what) in [
        ("0s weight /c 100", "there is no task group /c, allowed are /, /a"),
        ("0s max /c max", "there is no task group /c"),
        ("0s weight / 100", "nothing competes with the whole workload"),
    ] {
        match setup.run_changed(&[change]) {
            Err(SimError::Change { why, .. }) => assert!(why.contains(what), "{why}"),
            other => panic!("{change}: {:?}", other.map(|run| run.outcome.end_ns)),
        }
    }
}
