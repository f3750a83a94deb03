//! Every cost of the table moves what it should move: no knob is dead.

mod support;

use coreward_machine::{Costs, IdleState};
use coreward_metrics::Metric;
use coreward_workload::{ChannelKind, Op, ProgramBuilder, Scale};
use support::{
    MS, Setup, Workload, hackbench, messages_of_sockets, ping_pong, program, run, single, sleep, spawn,
    spinners, uneven, workload,
};

/// Which way the metric goes when the cost grows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Goes {
    Up,
    Down,
}
use Goes::{Down, Up};

/// Where a cost shows: a run in which nothing else costs anything, the cost's small
/// and large value, the metric and its direction.
struct Case {
    name: &'static str,
    setup: Setup,
    small: u64,
    large: u64,
    metric: Metric,
    goes: Goes,
}

fn case(name: &'static str, setup: Setup, metric: Metric, goes: Goes, small: u64, large: u64) -> Case {
    Case { name, setup, small, large, metric, goes }
}

/// Threads that run and sleep for half a millisecond each.
fn napping(threads: u32) -> Workload {
    let naps = ProgramBuilder::default().repeat(200, |b| b.op(run(MS / 2)).op(sleep(MS / 2))).build();
    let main: Vec<Op> = [Op::MarkStart]
        .into_iter()
        .chain((0..threads).map(|_| spawn(1)))
        .chain([Op::WaitChildren, Op::MarkEnd])
        .collect();
    workload(0, vec![program(&main), naps])
}

/// Time to and fro between the two CPUs of a machine.
fn messages(machine: &str) -> Setup {
    Setup::free(machine, ping_pong(100, 10_000))
}

/// The same, where an idle CPU has to be interrupted.
fn interrupts() -> Setup {
    let mut s = messages("2c");
    let name = "C1".to_owned();
    s.machine.idle_states = vec![IdleState {
        name,
        exit_ns: 0,
        residency_ns: 0,
        polling: false,
        promoted: false,
        source: String::new(),
    }];
    s
}

/// Two tasks with a working set that take turns on one CPU.
fn footprint(private_bytes: u64, l2_bytes: u64) -> Setup {
    let mut s = Setup::free("1c", spinners(3, 50 * MS));
    s.machine.caches.l2_bytes = l2_bytes;
    s.workload.footprint.private_bytes = private_bytes;
    s
}

/// Tasks that move between nodes, with working sets that no cache holds.
fn far_memory() -> Setup {
    let mut s = Setup::free("2n2c", hackbench("-g 2 -f 4 -l 400 -T --pipe"));
    s.machine.llc_bytes = vec![64 << 10; 2];
    s.machine.caches.l2_bytes = 32 << 10;
    s.workload.footprint.private_bytes = 128 << 10;
    s
}

/// One task that creates another.
fn child(process: bool) -> Workload {
    let spawn = Op::Spawn { program: 1, base: 0, process };
    workload(0, vec![program(&[spawn, Op::WaitChildren]), program(&[run(MS)])])
}

fn cases() -> Vec<Case> {
    use Metric as M;
    let pipes = || Setup::free("1c", hackbench("-g 1 -f 3 -l 50 -T --pipe"));
    let sockets = || Setup::free("1c", hackbench("-g 1 -f 3 -l 50 -T --sockets"));
    let far_sockets = || {
        let mut setup = Setup::free("2c", ping_pong(50, 10_000)).cost("socket_op_ns", 1000);
        setup.workload.channels.iter_mut().for_each(|channel| channel.kind = ChannelKind::UnixStream);
        setup
    };
    let mutexes = || {
        let inside = [Op::Lock { mutex: 0 }, run(MS), Op::Unlock { mutex: 0 }];
        let main = [&[spawn(1)], &inside[..], &[Op::WaitChildren]].concat();
        let mut both = workload(0, vec![program(&main), program(&inside)]);
        both.shared.mutexes = 1;
        Setup::free("2c", both)
    };
    let packets = |test| {
        let command = format!("netperf -t {test} -l 1");
        // 10 ms of the second
        Setup::free("1c", coreward_workload::parse(&command, Scale(10_000)).unwrap()).cost("syscall_ns", 1000)
    };
    let processes = || Setup::free("1c", child(true));
    let threads = || Setup::free("1c", child(false));
    let pulls = || Setup::free("4c", uneven());
    vec![
        case("transfer_smt_ns", messages("1c2t"), M::transfer_time_s, Up, 0, 1000),
        case("transfer_llc_ns", messages("2c"), M::transfer_time_s, Up, 0, 1000),
        case("transfer_package_ns", messages("2l1c"), M::transfer_time_s, Up, 0, 1000),
        case("transfer_remote_ns", messages("2n1c"), M::transfer_time_s, Up, 0, 1000),
        case("llc_line_ns", footprint(1 << 20, 1 << 20), M::refill_time_s, Up, 0, 50),
        case("dram_line_ns", footprint(1 << 20, 4 << 20), M::refill_time_s, Up, 0, 500),
        case("dram_remote_line_ns", far_memory(), M::refill_time_s, Up, 0, 100),
        case("mlp_pct", messages("2c").cost("transfer_llc_ns", 100), M::transfer_time_s, Down, 100, 400),
        case("stream_pct", messages("2c").cost("transfer_llc_ns", 100), M::transfer_time_s, Down, 100, 400),
        case("smt_pct", Setup::free("1c2t", spinners(2, 10 * MS)), M::runtime_s, Down, 100, 150),
        case("context_switch_ns", messages("2c"), M::runtime_s, Up, 0, 1000),
        case(
            "tlb_refill_ns",
            Setup::free("1c", hackbench("-g 1 -f 4 -l 50 --pipe")),
            M::runtime_s,
            Up,
            0,
            1000,
        ),
        case("pick_next_ns", messages("2c"), M::runtime_s, Up, 0, 1000),
        case("syscall_ns", pipes(), M::runtime_s, Up, 0, 1000),
        case("wakeup_ns", messages("2c"), M::wakeup_time_s, Up, 0, 1000),
        case("enqueue_ns", messages("2c"), M::runtime_s, Up, 0, 1000),
        case("dequeue_ns", pipes(), M::runtime_s, Up, 0, 1000),
        case("group_entity_ns", messages("2c"), M::runtime_s, Up, 0, 1000),
        case("balance_cpu_ns", pulls(), M::newidle_time_s, Up, 0, 1000),
        case("balance_ns", pulls(), M::balance_time_s, Up, 0, 1000),
        case("detach_task_ns", pulls(), M::newidle_time_s, Up, 0, 10_000),
        case("ipi_send_ns", interrupts(), M::busy_s, Up, 0, 1000),
        case("ipi_deliver_ns", interrupts(), M::wakeup_latency_us_p50, Up, 0, 1000),
        case("ipi_handle_ns", interrupts(), M::wakeup_latency_us_p50, Up, 0, 1000),
        case("tick_ns", Setup::free("1c", single(&[run(50 * MS)])), M::runtime_s, Up, 0, 10_000),
        case("thread_ns", threads(), M::runtime_s, Up, 0, 10_000),
        case("thread_start_ns", threads(), M::runtime_s, Up, 0, 10_000),
        case("fork_ns", processes(), M::runtime_s, Up, 0, 10_000),
        case("fork_start_ns", processes(), M::runtime_s, Up, 0, 10_000),
        case("process_exit_ns", processes(), M::runtime_s, Up, 0, 10_000),
        case("reap_ns", processes(), M::runtime_s, Up, 0, 10_000),
        case("child_scan_ns", processes(), M::runtime_s, Up, 0, 10_000),
        case("exit_ns", Setup::free("1c", spinners(9, MS)), M::runtime_s, Up, 0, 10_000),
        case("shared_file_ns", pipes(), M::runtime_s, Up, 0, 1000),
        case("pipe_op_ns", pipes(), M::runtime_s, Up, 0, 1000),
        case("socket_op_ns", sockets(), M::runtime_s, Up, 0, 1000),
        case("tcp_send_ns", packets("TCP_RR"), M::messages_per_s, Down, 0, 1000),
        case("udp_send_ns", packets("UDP_RR"), M::messages_per_s, Down, 0, 1000),
        case(
            "message_lines",
            Setup::free("2c", messages_of_sockets(100, true)).cost("transfer_llc_ns", 100),
            M::runtime_s,
            Up,
            0,
            20,
        ),
        case("copy_ns_per_kib", pipes(), M::runtime_s, Up, 0, 1000),
        case("pipe_read_ns", pipes(), M::runtime_s, Up, 0, 1000),
        case("pipe_mtime_ns", pipes().profile("linux-6.12"), M::runtime_s, Up, 0, 1000),
        case("pipe_atime_ns", pipes().profile("linux-6.12"), M::runtime_s, Up, 0, 1000),
        case("socket_read_ns", sockets(), M::runtime_s, Up, 0, 1000),
        case("socket_remote_pct", far_sockets(), M::transfer_time_s, Up, 0, 1000),
        case("socket_send_ns", sockets(), M::runtime_s, Up, 0, 1000),
        case("wait_ns", pipes(), M::runtime_s, Up, 0, 1000),
        case("lookahead_ns", messages("2c").cost("transfer_llc_ns", 100), M::transfer_time_s, Down, 0, 1000),
        case("futex_wait_ns", mutexes(), M::busy_s, Up, 0, 1000),
        case("futex_wake_ns", mutexes(), M::busy_s, Up, 0, 1000),
        case("timer_arm_ns", Setup::free("1c", single(&[sleep(MS)])), M::busy_s, Up, 0, 1000),
        case("timer_ns", Setup::free("1c", single(&[sleep(MS)])), M::runtime_s, Up, 0, 1000),
        // slower CPUs look less used, so that SIS_UTIL lets wakeups look at more of them
        case("all_core_freq_pct", Setup::new("1n1l16c1t", napping(28)), M::cpus_scanned, Down, 50, 100),
    ]
}

/// Costs that move no metric in one direction; each has a test of its own.
const OTHERS: [&str; 3] = ["idle_return_ns", "jitter_pct", "kernel_jitter_pct"];

#[test]
fn every_cost_moves_its_metric() {
    let mut still = Vec::new();
    for c in cases() {
        let value = |v| c.setup.clone().cost(c.name, v).run().get(c.metric);
        let (small, large) = (value(c.small), value(c.large));
        let moved = if c.goes == Up { large > small } else { large < small };
        if !moved {
            still.push(format!("{}: {} {small} to {large}, not {:?}", c.name, c.metric.name(), c.goes));
        }
    }
    assert!(still.is_empty(), "{still:#?}");
}

#[test]
fn every_cost_has_a_case() {
    let named: Vec<&str> = cases().iter().map(|c| c.name).chain(OTHERS).collect();
    for field in Costs::FIELDS {
        assert_eq!(named.iter().filter(|n| **n == field.name).count(), 1, "{}", field.name);
    }
    assert_eq!(named.len(), Costs::FIELDS.len());
}

#[test]
fn jitter_spreads_work_evenly_and_no_further_than_it_says() {
    let times = |pct| -> Vec<u64> {
        let one = |seed| {
            Setup::free("1c", single(&[run(MS)])).cost("jitter_pct", pct).seed(seed).run().runtime_ns()
        };
        (0..40).map(one).collect()
    };
    assert!(times(0).iter().all(|t| *t == MS));
    let some = times(10);
    assert!(some.iter().all(|t| (MS * 9 / 10..=MS * 11 / 10).contains(t)), "{some:?}");
    let (low, high) = (some.iter().min().unwrap(), some.iter().max().unwrap());
    assert!(*low < MS * 95 / 100 && *high > MS * 105 / 100, "{low} to {high}");
    let mean = some.iter().sum::<u64>() / 40;
    // of 40 uniform draws; their mean is off by more than 3 % of the work once in a thousand times
    assert!(mean.abs_diff(MS) < MS * 3 / 100, "{mean}");
}

#[test]
fn kernel_jitter_lets_switches_differ_but_not_their_mean() {
    let times = |pct| -> Vec<u64> {
        // 100 rounds by two tasks on one CPU, with hardly more than switches
        let one = |seed| {
            let setup = messages("1c").cost("context_switch_ns", 10_000).cost("kernel_jitter_pct", pct);
            setup.seed(seed).run().runtime_ns()
        };
        (0..40).map(one).collect()
    };
    let (never, some) = (times(0), times(30));
    assert!(never.iter().all(|t| *t == never[0]), "{never:?}");
    assert!(some.iter().any(|t| *t < never[0]) && some.iter().any(|t| *t > never[0]), "{some:?}");
    // some 200 switches in each of 40 runs, 29 % of each varies: the mean is off by 0.3 %
    let mean = some.iter().sum::<u64>() / 40;
    assert!(mean.abs_diff(never[0]) < never[0] / 80, "{mean}, not {}", never[0]);
}

#[test]
fn a_cost_is_charged_once_for_each_thing_that_it_is_for() {
    // 100 rounds of two system calls each by two tasks, none of which waits for a CPU
    let extra =
        |name, ns| messages("2c").cost(name, ns).run().runtime_ns() - messages("2c").run().runtime_ns();
    // the first task: a write and a read a round; the second one too; nobody else is in between
    let syscalls = extra("syscall_ns", 1000) / 1000;
    assert!((200..=400).contains(&syscalls), "{syscalls}");
    // two wakeups a round, each on the path of the task that waits for it
    for name in ["wakeup_ns", "context_switch_ns", "pick_next_ns", "enqueue_ns"] {
        let times = extra(name, 1000) as f64 / 1000.0;
        assert!((190.0..=300.0).contains(&times), "{name}: {times}");
    }
    // ten thousand bytes a round and direction
    let copied = |bytes| {
        let (out, back) = (Op::WriteTo { channel: 0, bytes }, Op::ReadFrom { channel: 0, bytes });
        let w = Workload { channels: workload(1, vec![]).channels, ..single(&[out, back]) };
        Setup::free("1c", w).cost("copy_ns_per_kib", 1024).run().runtime_ns()
    };
    assert_eq!((copied(1), copied(1000), copied(10_000)), (2, 2000, 20_000));
}
