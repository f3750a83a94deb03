//! Where a policy has nothing to act on, it changes nothing.

mod support;

use coreward_metrics::Metric;
use coreward_metrics::difference::Difference;
use support::{Setup, hackbench};

fn values(s: &Setup, metric: Metric) -> Vec<f64> {
    (1..=10).map(|seed| s.clone().seed(seed).run().get(metric)).collect()
}

/// p of no difference between the previous-CPU bias and its baseline (Welch, ten seeds a side).
fn bias_p_value(machine: &str, options: &str, metric: Metric) -> f64 {
    let s = Setup::new(machine, hackbench(options)).profile("linux-6.5");
    let (base, bias) = (values(&s, metric), values(&s.feature("WAKEUP_BIAS_PREV", true), metric));
    Difference::unpaired(&base, &bias).unwrap().p_value()
}

#[test]
fn a_cpu_for_each_task_leaves_the_bias_nothing_to_change() {
    // 4 senders and 4 receivers on 16 CPUs of one cache: none meets another, not even while they are forked
    for options in ["-g 1 -f 4 -l 400 -T --pipe", "-g 1 -f 4 -l 400 -P --sockets"] {
        let p = bias_p_value("1n1l16c1t", options, Metric::runtime_s);
        assert!(p > 0.05, "{options}: p = {p}");
    }
}

#[test]
fn one_cpu_leaves_the_bias_nothing_to_change() {
    assert_eq!(bias_p_value("1c", "-g 1 -f 3 -l 100 -T --pipe", Metric::runtime_s), 1.0);
}

#[test]
fn the_same_comparison_sees_a_difference_where_there_is_one() {
    let p = bias_p_value("2l4c2t", "-g 2 -f 8 -l 100 -T --pipe", Metric::cpu_migrations);
    assert!(p < 0.05, "p = {p}");
}

#[test]
fn a_feature_of_no_consequence_changes_not_a_byte() {
    // the scan limit is learnt by periodic balance, for which this run is too short
    let s = Setup::new("1n1l8c1t", hackbench("-g 1 -f 4 -l 20 -T --pipe"));
    for seed in 1..=3 {
        let run = |on| format!("{:?}", s.clone().seed(seed).feature("SIS_UTIL", on).run().outcome);
        assert_eq!(run(true), run(false));
    }
}
