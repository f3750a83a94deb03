//! Tests of calibration as a whole.

use super::*;
use crate::measure::streams;

/// What runs next in this thread is not to run on one CPU only.
#[test]
fn the_thread_has_its_cpus_back() {
    let machine = Machine::load("2c").unwrap();
    let cpus = || rustix::thread::sched_getaffinity(None).unwrap();
    let before = cpus();
    transfers(&machine).unwrap();
    assert_eq!(cpus(), before, "transfers");
    switch_ns(&machine).unwrap();
    assert_eq!(cpus(), before, "a switch");
    let mut steps = 0;
    let few = |_: &str| {
        steps += 1;
        steps < 3
    };
    assert!(Calibration::pass(&machine, few).is_err(), "interrupted");
    assert_eq!(cpus(), before, "a part of a pass");
    Calibration::pass(&machine, |_| true).unwrap();
    assert_eq!(cpus(), before, "a pass");
}

#[test]
fn what_is_measured_is_written_with_how() {
    let mut machine = Machine::load("2c").unwrap();
    let sample = Sample { ns: 123.4, spread_ns: 5.0 };
    let mut found = Calibration::default();
    found.cost("syscall_ns", sample, "getppid()");
    found.apply(&mut machine, "today");
    assert_eq!(machine.costs.syscall_ns, 123);
    let source = &machine.sources["costs.syscall_ns"];
    assert_eq!(source, "measured: getppid(); mean 123, middle half within 5; today");
    assert_eq!(Machine::from_toml_str("m.toml", &machine.to_toml()).unwrap(), machine);
}

#[test]
fn forks_are_left_out_where_they_would_be_those_of_a_larger_program() {
    let mut found = Calibration::default();
    for name in ["syscall_ns", "fork_ns", "process_exit_ns", "exit_ns"] {
        found.cost(name, Sample { ns: 100.0, spread_ns: 1.0 }, "a way");
    }
    let left: Vec<_> = found.without_forks().costs.into_iter().map(|cost| cost.name).collect();
    assert_eq!(left, ["syscall_ns", "exit_ns"]);
}

#[test]
fn what_is_no_cost_and_what_was_not_measured_is_in_the_file() {
    let mut machine = Machine::load("2c").unwrap();
    let sample = Sample { ns: 12.0, spread_ns: 1.0 };
    let found = Calibration {
        contended: vec![Contended { cpus: 2, rmw: sample, read: sample }],
        refills: vec![Refill { bytes: 4096, source: "own L2", line: sample }],
        open: vec![Open { name: "smt_pct", why: "it is so" }],
        ..Calibration::default()
    };
    found.apply(&mut machine, "today");
    let read = Machine::from_toml_str("m.toml", &machine.to_toml()).unwrap();
    assert_eq!(read, machine);
    assert!(read.sources["contended.2"].contains("by 2 CPUs at a time: read-modify-write 12.0 ns"));
    assert!(read.sources["refill.own_L2.4096"].ends_with("own L2: 12.0 ns, middle half within 1.0; today"));
    assert!(read.sources["costs.smt_pct"].starts_with("not measured here, because it is so; kernel/sched/"));
}

#[test]
fn what_was_measured_of_lines_between_cpus_that_the_host_moved_is_doubted() {
    let sample = |ns| Sample { ns, spread_ns: 1.0 };
    let doubts = |after: f64| {
        let mut found = Calibration::default();
        let names = ["syscall_ns", "transfer_llc_ns", "lookahead_ns", "ipi_send_ns"];
        for (name, ns) in names.into_iter().zip([200.0, 30.0, 60.0, 5000.0]) {
            found.cost(name, sample(ns), "a way");
        }
        found.doubt_if_moved(&Transfers::from([("transfer_llc_ns".to_owned(), after)]));
        found.costs.into_iter().map(|cost| cost.doubt).collect::<Vec<_>>()
    };
    assert_eq!(doubts(59.0), [None, None, None, None]);
    let moved = "a line between two CPUs took 30 ns before and 170 ns afterwards: the host moved them";
    assert_eq!(doubts(170.0), [None, Some(moved.to_owned()), Some(moved.to_owned()), None]);
    assert!(doubts(14.0)[1].is_some());
}

#[test]
fn what_is_measured_badly_is_not_used_and_says_why() {
    let mut machine = Machine::load("2c").unwrap();
    let (good, wide) = (Sample { ns: 100.0, spread_ns: 5.0 }, Sample { ns: 100.0, spread_ns: 180.0 });
    let mut found = Calibration::default();
    found.cost("syscall_ns", good, "quiet");
    found.cost("pick_next_ns", wide, "quiet");
    found.doubt_if_busy(0.1);
    found.cost("tick_ns", good, "busy");
    found.doubt_if_busy(0.5);
    Calibration::of_passes(&[found], &machine).apply(&mut machine, "today");
    let default = Costs::default();
    assert_eq!(machine.costs, Costs { syscall_ns: 100, ..default.clone() });
    let source = |name: &str| &machine.sources[&format!("costs.{name}")];
    assert!(source("pick_next_ns").ends_with(
        "; kept, because what was measured is not used: the spread is wider than the figure, and has the default in \
         it (mean 100, middle half within 180; today)"
    ));
    assert!(source("tick_ns").contains("not used: other programs had 50 % of the CPUs meanwhile (mean 100"));
    assert_eq!(Machine::from_toml_str("m.toml", &machine.to_toml()).unwrap(), machine);
}

#[test]
fn a_copy_streams_more_lines_the_less_it_takes() {
    let sample = |ns, spread_ns| Sample { ns, spread_ns };
    let alone = sample(200.0, 10.0);
    assert_eq!(streams(sample(50.0, 20.0), alone), sample(400.0, 40.0));
    assert_eq!(streams(sample(0.0, 20.0), alone), sample(10_000.0, 1000.0), "nothing that could be measured");
    let unknown = streams(sample(50.0, 300.0), alone);
    assert!(unknown.spread_ns > unknown.ns, "this says nothing");
}

#[test]
fn each_distance_has_its_pair() {
    let pairs = Pairs::of(&Machine::load("2n2l2c2t").unwrap(), |cpu| cpu > 0);
    let names: Vec<_> = pairs.by_distance.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), 4);
    assert_eq!(pairs.first, 1, "CPU 0 is not allowed");
    let other = pairs.other.expect("there is another core in the LLC");
    assert!(other != 0 && other != 9, "neither CPU 0 nor the sibling: {other}");
}
