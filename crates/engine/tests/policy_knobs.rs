//! Every feature and tunable of the policy changes what tasks do, in a case chosen for it.

mod support;

use coreward_machine::DomainOptions;
use coreward_metrics::Metric;
use coreward_policy::{FEATURES, TUNABLES};
use coreward_workload::{Op, ProgramBuilder};
use support::{
    MS, Setup, Workload, hackbench, ping_pong, processes, restless, run, spawn, spinners, uneven, workload,
    yielders,
};

/// Many short messages between more tasks than CPUs, with pipes that never fill.
fn crowd(machine: &str) -> Setup {
    Setup::new(machine, hackbench("-g 2 -f 4 -l 60 -T --pipe"))
}

/// The same for long enough that ticks come, averages are full and pipes fill.
fn long_crowd() -> Setup {
    Setup::new("4c", hackbench("-g 3 -f 8 -l 600 -T --pipe"))
}

/// One pipe that fills.
fn full_pipe() -> Setup {
    Setup::new("1c", hackbench("-g 1 -f 1 -l 3000 -T --pipe"))
}

/// A profile whose queues are CFS's.
fn cfs(s: Setup) -> Setup {
    s.profile("linux-6.5")
}

/// Seed 000's variant on its baseline.
fn biased() -> Setup {
    cfs(crowd("4c")).feature("WAKEUP_BIAS_PREV", true)
}

/// Three writers to a pipe whose reader is slow.
fn slow_reader() -> Setup {
    let write = ProgramBuilder::default().repeat(700, |b| b.op(Op::WriteTo { channel: 0, bytes: 100 }));
    let read = Op::ReadFrom { channel: 0, bytes: 100 };
    let main = [spawn(1); 3].into_iter().fold(ProgramBuilder::default(), |b, op| b.op(op)).op(Op::MarkStart);
    let main = main.repeat(2100, |b| b.op(read).op(run(2000))).op(Op::MarkEnd).op(Op::WaitChildren);
    Setup::new("4c", workload(1, vec![main.build(), write.build()]))
}

/// The CPUs of half of the LLCs are little.
fn asymmetric(machine: &str, workload: Workload) -> Setup {
    unlike(machine, 446, workload)
}

/// The CPUs of half of the LLCs have this capacity.
fn unlike(machine: &str, capacity: u32, workload: Workload) -> Setup {
    let mut s = Setup::new(machine, workload);
    let little = s.machine.nr_llcs() / 2;
    s.machine.cpus.iter_mut().filter(|cpu| cpu.llc < little).for_each(|cpu| cpu.capacity = capacity);
    s
}

/// Two processes of as many threads each, which work for half of the time.
fn two_processes(machine: &str, threads: usize) -> Setup {
    Setup::new(machine, processes(2, threads, MS, MS, 60))
}

/// One process of more threads than an LLC has CPUs.
fn too_many() -> Setup {
    Setup::new("2l4c", processes(1, 12, MS, MS, 60))
}

/// Seed 003's form of cache-aware placement, as the RFC had it.
fn cache_aware(s: Setup) -> Setup {
    s.feature("CACHE_AWARE_WAKEUP", true).feature("CACHE_AWARE_HOT", true).tunable("llc_switch_pct", 100)
}

/// Linux 7.3's.
fn sched_cache(s: Setup) -> Setup {
    s.profile("linux-7.3")
}

/// Features that act on what simulated tasks never are: SCHED_IDLE, kept off CPUs, or so light that
/// their turn would be shorter than the least granularity; or hardly ever, as balancing takes first
/// those that have waited, which are eligible, and as tasks of one weight keep within the limits of lag
/// and need no conversion of time; or on what other classes take of a CPU, which is nothing.
/// Their cases are states built by hand, in policy/tests.
const NOT_SIMULATED: [&str; 11] = [
    "DST_GROUP_ALLOWED",
    "SCHED_IDLE_AVOIDS_PEERS",
    "SIS_KEEP_IDLE_CORES",
    "LB_ELIGIBLE",
    "IDLE_SLEEPERS",
    "BASE_SLICE",
    "LAG_MAX_SLICE",
    "EXACT_DELTA",
    "LB_REDUCED_CAPACITY",
    "REWEIGHT_PLACES",
    "REWEIGHT_DEADLINE",
];

/// Where each feature matters.
fn feature_case(name: &str) -> Option<Setup> {
    Some(match name {
        "WAKEUP_BIAS_PREV" => crowd("4c").profile("linux-6.5"),
        "UTIL_FITS_CAPACITY" | "SELECT_BIAS_PREV" => crowd("4c").profile("linux-6.5"),
        // the bias looks at estimates
        "UTIL_EST" => biased(),
        // an idle previous CPU of another cache, and a waker that will sleep
        "WA_IDLE" => Setup::new("2l2c", ping_pong(200, 30_000)),
        // no CPU is idle
        "WA_WEIGHT" => crowd("2l4c2t"),
        "WA_BIAS" => long_crowd(),
        // the scan limit is learnt by periodic balance of a whole cache
        "SIS_UTIL" => Setup::new("2l2c", uneven()),
        "TTWU_QUEUE_IDLE" | "TTWU_QUEUE_L2" => crowd("4c"),
        "SYNC_ON_WAKER" => Setup::new("2c", ping_pong(200, 30_000)),
        "TTWU_QUEUE" => Setup::new("2l2c", ping_pong(200, 30_000)),
        "WAKEUP_PREEMPTION" => crowd("1c"),
        "EEVDF" => cfs(crowd("1c")),
        // sleeps of more than half a latency
        "GENTLE_FAIR_SLEEPERS" => cfs(Setup::new("1c", restless(3, 4 * MS, 9 * MS, 20))),
        "START_DEBIT" => cfs(Setup::new("1c", uneven())),
        // eight tasks on one CPU
        "NEXT_BUDDY" | "LAST_BUDDY" => cfs(Setup::new("1c", restless(16, 2 * MS, 8 * MS, 10))),
        // all tasks that are woken on crowded CPUs are buddies, and nothing else is hot
        "CACHE_HOT_BUDDY" => cfs(Setup::new("4c", restless(50, 2 * MS, 8 * MS, 60)))
            .feature("NEXT_BUDDY", true)
            .tunable("migration_cost_ns", 0),
        "RUN_TO_PARITY" => long_crowd(),
        "PLACE_LAG" => crowd("1c"),
        // requests that end between two ticks
        "PLACE_DEADLINE_INITIAL" => Setup::new("1c", spinners(3, 20 * MS)).feature("HRTICK", true),
        "DELAY_DEQUEUE" => crowd("2l4c2t"),
        "DELAY_ZERO" => Setup::new("1c", uneven()),
        // tasks that are moved in the middle of a request
        "PLACE_REL_DEADLINE" => long_crowd(),
        // requests that end between two ticks, on CPUs that others wake tasks for
        "PREEMPT_SHORT" => Setup::new("2n2l2c2t", hackbench("-g 5 -f 6 -l 400 -T --pipe")),
        "PICK_BUDDY" => long_crowd().feature("NEXT_BUDDY", true),
        "YIELD_FORFEITS" => Setup::new("1c", yielders(4, 50)),
        "PROTECT_SLICE" | "WAKEUP_PICK" | "WAKEUP_PROTECT" => long_crowd().profile("linux-7.3"),
        "DELAY_KEEPS_LAG" => Setup::new("1c", uneven()).profile("linux-7.3"),
        // requests that end between two ticks
        "HRTICK" => Setup::new("1c", uneven()),
        "PREEMPT_FULL" | "PREEMPT_LAZY" => long_crowd(),
        "TG_LOAD_AVG_RATELIMIT" => crowd("2l4c2t"),
        "PIPE_WAKE_WHILE_FULL" => full_pipe(),
        "PIPE_TIMES" => Setup::new("1c", ping_pong(20, 0)),
        "ASYM_IDLE_CORE" => asymmetric("4l2c2t", hackbench("-g 1 -f 3 -l 60 -T --pipe")),
        // the scan limit is learnt by periodic balance
        "ASYM_SIS_UTIL" => asymmetric("2l2c", uneven()),
        "NI_RANDOM" => crowd("2l4c2t"),
        // a rate is first worked out after 512 calls
        "NI_RATE" => Setup::new("4c", restless(6, 100_000, 100_000, 3000)),
        "LB_RUNNABLE" => crowd("2l4c2t"),
        // CPUs that are idle for a quarter of the time, and tasks that wait for them all the same
        // an idle previous CPU of another cache, which is more loaded than the waker's
        "WA_IDLE_PREV" => crowd("4l2c"),
        "SIS_ONE_SEARCH" => crowd("2l4c2t").profile("linux-5.10"),
        "SIS_PROP" => two_processes("2l4c", 8).profile("linux-5.10"),
        "RECENT_USED_PREV" => Setup::new("2l4c2t", hackbench("-g 2 -f 4 -l 300 -T --pipe")),
        "LB_SMT_BALANCE" => crowd("2l4c2t"),
        "IMB_NUMA_NR" => crowd("2n1l4c"),
        "IMB_NUMA_QUARTER" => crowd("2n1l4c").profile("linux-5.15"),
        // three caches that are fully busy
        "LB_BUSIEST_SIBLING" => Setup::new("4l2c", restless(9, 7 * MS, MS, 80)),
        "LB_UTIL_BOOST" => Setup::new("2l2c", restless(12, 2 * MS, 6 * MS, 80)),
        "LB_IDLE_CORE" => Setup::new("2l4c2t", uneven()),
        // tasks that leave load behind when they sleep
        "LB_SKIP_EMPTY" => Setup::new("4l4c", restless(40, MS, 2 * MS, 200)),
        // big cores that are bigger by more than 5 %, and by less than the margin of tasks
        "LB_CAPACITY_GREATER" => unlike("4l2c", 900, spinners(6, 60 * MS)),
        // two misfits that never sleep
        "LB_MISFIT_FIRST" => asymmetric("4l2c", spinners(6, 60 * MS)),
        "GROUP_RUNNABLE" => Setup::new("2l2c", restless(12, 2 * MS, 6 * MS, 80)),
        // a cache that has room, but for none of the tasks that wait
        "LB_ACTIVE_TASK" => asymmetric("2l2c", spinners(5, 400 * MS)).profile("linux-5.10"),
        // a cache that has room, but not for one of the tasks that crowd the other
        "LB_UTIL_RELAX" => asymmetric("2l2c", spinners(5, 60 * MS)),
        "ILB_IDLE_CORE" => Setup::new("2l4c2t", uneven()),
        // misfits on little cores, and big cores that are half busy
        "ASYM_LB" => asymmetric("4l2c2t", spinners(14, 60_000_000)),
        "IDLEST_BY_LOAD" => crowd("2l4c2t"),
        "WA_EFFECTIVE_LOAD" => crowd("2l4c2t").profile("linux-4.8"),
        // a cost is first decayed after a second, and matters if CPUs are idle for about as long
        "NEWIDLE_COST_DECAY" => {
            Setup::new("4c", restless(6, 100_000, 100_000, 8000)).cost("balance_ns", 50_000)
        }
        // threads are forked one after the other and soon sleep
        "IDLEST_LOAD_AVG" => crowd("2l4c2t").profile("linux-4.8"),
        // wakeups of tasks that are too big for a little core
        "WAKE_CAP" => asymmetric("2l2c", uneven()).profile("linux-5.5"),
        // big cores that are busy, and tasks that only fit these
        "DST_GROUP_STATS" => asymmetric("2l2c", restless(6, 2 * MS, MS, 60)).profile("linux-5.5"),
        "ASYM_WAKE_SCAN" => asymmetric("4l2c", hackbench("-g 1 -f 3 -l 60 -T --pipe")),
        "ASYM_WAKE_FITS" => asymmetric("4l2c", hackbench("-g 1 -f 3 -l 60 -T --pipe")),
        "NEWIDLE_MIN_IDLE" => crowd("2l4c2t"),
        "SCHED_CACHE" => sched_cache(two_processes("2l4c", 3)),
        "CACHE_AWARE_WAKEUP" => two_processes("2l4c", 3),
        // an LLC that is busier than a quarter, from which balancing would take tasks
        "CACHE_AWARE_HOT" => two_processes("2l4c", 8),
        // fewer threads than CPUs, the one that waits for them included
        "CACHE_AWARE_CHECK_ALL" => cache_aware(Setup::new("2l4c", processes(6, 2, MS, MS, 60))),
        _ => return None,
    })
}

/// Where each tunable matters, and a value that is far from its default.
fn tunable_case(name: &str) -> Option<(Setup, i64)> {
    Some(match name {
        "spare_capacity_threshold" => (biased(), 1024),
        "migration_cost_ns" => (crowd("4c"), 0),
        "base_slice_ns" => (Setup::new("1c", uneven()), 10_000_000),
        "latency_ns" => (cfs(Setup::new("1c", spinners(3, 60 * MS))), 60_000_000),
        "min_granularity_ns" => (cfs(Setup::new("1c", spinners(12, 60 * MS))), 20_000_000),
        "wakeup_granularity_ns" => (cfs(crowd("1c")), 20_000_000),
        "nr_migrate" => (Setup::new("4c", uneven()), 1),
        // the builder of the domains asks for it
        "relax_domain_level" => (Setup::new("2l2c", uneven()), 0),
        // LLCs that are half busy, or busy
        "llc_overaggr_pct" => (sched_cache(two_processes("2l4c", 6)).tunable("llc_aggr_tolerance", 100), 10),
        "llc_imb_pct" => (sched_cache(two_processes("2l4c", 6)).tunable("llc_aggr_tolerance", 100), 100),
        "llc_aggr_tolerance" => (sched_cache(two_processes("2l4c", 8)), 100),
        // each threshold where the other one keeps nobody
        "cache_util_divisor" => (cache_aware(too_many()).tunable("cache_running_divisor", 1), 1),
        "cache_running_divisor" => (cache_aware(too_many()).tunable("cache_util_divisor", 1), 1024),
        "llc_epoch_period" => (cache_aware(too_many()), 1_000_000),
        // ticks are further apart than the epochs
        "llc_epoch_affinity_timeout" => (cache_aware(too_many()).tunable("llc_epoch_period", 500_000), 1),
        "llc_min_occupancy" => (cache_aware(too_many()), 1024),
        // now one cache is ahead, now another
        "llc_switch_pct" => (cache_aware(Setup::new("4l2c", processes(2, 10, 5 * MS, 15 * MS, 60))), 1000),
        // tasks that leave their CPUs idle most of the time
        "vcpu_pack" => (Setup::new("4c", restless(3, MS, 9 * MS, 60)), 15),
        "capacity_margin" => (asymmetric("4l2c", hackbench("-g 2 -f 3 -l 60 -T --pipe")), 4096),
        _ => return None,
    })
}

/// A run differs for one of a few seeds: a knob that only matters in a tie may not show in one run.
fn differ(a: &Setup, b: &Setup) -> bool {
    (1..=8).any(|seed| {
        let behaviour = |s: &Setup| s.clone().seed(seed).run().behaviour();
        behaviour(a) != behaviour(b)
    })
}

#[test]
fn every_feature_changes_what_tasks_do() {
    let mut dead = Vec::new();
    for (i, f) in FEATURES.iter().enumerate().filter(|(_, f)| !NOT_SIMULATED.contains(&f.name)) {
        let s = feature_case(f.name).unwrap_or_else(|| panic!("{} has no case", f.name));
        let is_on = s.settings.policy.features >> i & 1 == 1;
        if !differ(&s, &s.clone().feature(f.name, !is_on)) {
            dead.push(f.name);
        }
    }
    assert!(dead.is_empty(), "{dead:?}");
}

#[test]
fn every_tunable_changes_what_tasks_do() {
    let mut dead = Vec::new();
    for t in TUNABLES {
        let (s, value) = tunable_case(t.name).unwrap_or_else(|| panic!("{} has no case", t.name));
        assert!((t.min..=t.max).contains(&value) && value != t.default, "{}", t.name);
        let moved = if t.name == "relax_domain_level" {
            let relaxed = DomainOptions { relax_domain_level: Some(value as i32), ..Default::default() };
            s.run_with(&relaxed).unwrap().behaviour() != s.run().behaviour()
        } else {
            differ(&s, &s.clone().tunable(t.name, value))
        };
        if !moved {
            dead.push(t.name);
        }
    }
    assert!(dead.is_empty(), "{dead:?}");
}

/// A metric without a knob and with it, summed over a few seeds.
fn pair(without: Setup, with: Setup, metric: Metric) -> (f64, f64) {
    let sum = |s: &Setup| (1..=3).map(|seed| s.clone().seed(seed).run().get(metric)).sum();
    (sum(&without), sum(&with))
}

fn switched(s: Setup, feature: &str, metric: Metric) -> (f64, f64) {
    pair(s.clone().feature(feature, false), s.feature(feature, true), metric)
}

#[test]
fn knobs_do_what_they_are_for() {
    let (without, with) = switched(biased(), "WAKEUP_BIAS_PREV", Metric::cpu_migrations);
    assert!(with < without / 2.0, "tasks stay: {with} migrations, not {without}");

    let strict = biased().tunable("spare_capacity_threshold", 1024);
    let (strict, lax) = pair(strict, biased().tunable("spare_capacity_threshold", 0), Metric::cpu_migrations);
    assert!(lax < strict, "the less has to be spare, the more tasks stay: {lax}, {strict}");

    let (without, with) = switched(crowd("1c"), "WAKEUP_PREEMPTION", Metric::context_switches_involuntary);
    assert!(with > without, "woken tasks preempt: {with}, {without}");

    let (without, with) = switched(crowd("2l4c2t"), "TG_LOAD_AVG_RATELIMIT", Metric::tg_load_avg_wait_s);
    assert!(with < without / 1.5, "the group's line is left alone: {with} s, {without} s");

    let (without, with) = switched(slow_reader(), "PIPE_WAKE_WHILE_FULL", Metric::wakeups);
    assert!(with > 2.0 * without, "writers wake in vain: {with}, {without}");

    let (without, with) = switched(Setup::new("1c", ping_pong(200, 0)), "PIPE_TIMES", Metric::runtime_s);
    assert!(with > without, "each message sets two times: {with} s, {without} s");

    let turns = Setup::new("2c", ping_pong(200, 30_000));
    let (without, with) = switched(turns, "SYNC_ON_WAKER", Metric::cpu_migrations);
    assert!(with > without, "tasks that take turns come together: {with} migrations, not {without}");

    let granularity = |ns| cfs(crowd("1c")).tunable("wakeup_granularity_ns", ns);
    let (wide, none) = pair(granularity(20_000_000), granularity(0), Metric::context_switches_involuntary);
    assert!(none > wide, "woken tasks preempt sooner: {none}, {wide}");

    let slice = |ns| Setup::new("1c", uneven()).tunable("base_slice_ns", ns);
    let (long, short) = pair(slice(10_000_000), slice(100_000), Metric::context_switches_involuntary);
    assert!(short > long, "short requests end more often: {short}, {long}");
}

#[test]
fn relaxing_all_levels_leaves_no_newidle_balance() {
    let s = Setup::new("2l2c", uneven());
    let attempts = |level| {
        let options = DomainOptions { relax_domain_level: level, ..Default::default() };
        let r = s.run_with(&options).unwrap();
        r.outcome.schedstat.iter().flat_map(|c| &c.domains).map(|d| d.lb_count[2]).sum::<u64>()
    };
    assert!(attempts(None) > 0);
    assert_eq!(attempts(Some(0)), 0);
    assert_eq!(attempts(Some(-1)), attempts(None));
}

#[test]
fn a_tasks_group_matters_only_to_tasks_in_one() {
    let root = |on| {
        let mut s = crowd("2l4c2t").feature("TG_LOAD_AVG_RATELIMIT", on);
        s.settings.task_group_depth = 0;
        s.run()
    };
    assert_eq!(root(true).hash(), root(false).hash());
    assert_eq!(root(false).get(Metric::tg_load_avg_wait_s), 0.0);
}

#[test]
fn each_task_group_around_the_workload_adds_its_line() {
    let wait = |depth| {
        let mut s = crowd("2l4c2t");
        s.settings.task_group_depth = depth;
        s.run().get(Metric::tg_load_avg_wait_s)
    };
    assert!(wait(0) < wait(1) && wait(1) < wait(3), "{} {} {}", wait(0), wait(1), wait(3));
}

#[test]
fn what_a_machine_has_not_got_cannot_matter() {
    // one CPU: nothing to choose; equal capacities: nothing to fit; pipes that never fill
    for name in ["WAKEUP_BIAS_PREV", "WA_IDLE", "WA_WEIGHT", "WA_BIAS", "SIS_UTIL"] {
        let s = crowd("1c");
        assert!(!differ(&s.clone().feature(name, true), &s.feature(name, false)), "{name}");
    }
    for name in NOT_SIMULATED {
        let s = crowd("4l2c2t");
        assert!(!differ(&s.clone().feature(name, true), &s.feature(name, false)), "{name}");
    }
    let alike = crowd("4c");
    assert!(!differ(&alike, &alike.clone().tunable("capacity_margin", 4096)));
    let s = Setup::new("1c", ping_pong(200, 0));
    assert!(!differ(&s, &s.clone().feature("PIPE_WAKE_WHILE_FULL", false)));
}
