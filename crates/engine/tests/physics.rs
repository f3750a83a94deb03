//! What things take: time on CPUs of any speed, sharing, and sleeping, on machines where nothing else costs.

mod support;

use coreward_engine::Leaving;
use coreward_machine::IdleState;
use coreward_metrics::{Metric, Part};
use coreward_workload::{ChannelKind, Op, ProgramBuilder, Workload};
use std::collections::{BTreeMap, BTreeSet};
use support::{
    MS, Run, Setup, hackbench, ping_pong, processes, program, restless, run, single, sleep, spawn, spinners,
    workload,
};

#[test]
fn a_spinner_alone_takes_its_work() {
    let r = Setup::free("1c", single(&[run(7 * MS + 13)])).run();
    assert_eq!(r.runtime_ns(), 7 * MS + 13);
    assert_eq!(r.get(Metric::context_switches), 0.0);
    assert_eq!(r.get(Metric::busy_s), r.get(Metric::runtime_s));
}

#[test]
fn work_takes_longer_on_a_smaller_cpu() {
    for capacity in [446, 512, 1023, 1] {
        let mut s = Setup::free("1c", single(&[run(MS)]));
        s.machine.cpus[0].capacity = capacity;
        assert_eq!(s.run().runtime_ns(), (MS * 1024).div_ceil(u64::from(capacity)), "at {capacity}");
    }
}

#[test]
fn sleeping_takes_the_same_time_on_any_cpu() {
    for capacity in [1024, 446] {
        let mut s = Setup::free("1c", single(&[sleep(3 * MS)]));
        s.machine.cpus[0].capacity = capacity;
        let r = s.run();
        assert_eq!(r.runtime_ns(), 3 * MS);
        assert_eq!(r.get(Metric::busy_s), 0.0);
        assert_eq!(r.get(Metric::wakeup_latency_us_p50), 0.0);
    }
}

/// The first task computes beside one thread.
fn pair(ns: u64) -> support::Workload {
    let main = [spawn(1), Op::MarkStart, run(ns), Op::WaitChildren, Op::MarkEnd];
    workload(0, vec![program(&main), program(&[run(ns)])])
}

#[test]
fn smt_siblings_share_what_a_core_can_do() {
    for pct in [100, 115, 160, 200] {
        let r = Setup::free("1c2t", pair(10 * MS)).cost("smt_pct", pct).run();
        let expected = 2 * 10 * MS * 100 / pct;
        // the rate is a whole number of 1024ths
        assert!(r.runtime_ns().abs_diff(expected) <= expected / 500, "{pct} %: {} ns", r.runtime_ns());
        // two cores do not share
        assert_eq!(Setup::free("2c", pair(10 * MS)).cost("smt_pct", pct).run().runtime_ns(), 10 * MS);
    }
}

#[test]
fn a_sibling_that_ends_gives_the_core_back() {
    let main = [spawn(1), Op::MarkStart, run(10 * MS), Op::WaitChildren, Op::MarkEnd];
    let w = workload(0, vec![program(&main), program(&[run(4 * MS)])]);
    // half speed each until the short one is done at 8 ms, then 6 ms alone
    assert_eq!(Setup::free("1c2t", w).cost("smt_pct", 100).run().runtime_ns(), 14 * MS);
}

/// Time on a CPU of each task but the first two ids (idle, main), by the switches of one CPU.
fn cpu_time(r: &Run, upto: u64) -> BTreeMap<i32, u64> {
    let mut time: BTreeMap<i32, u64> = BTreeMap::new();
    let mut since = 0;
    for (now, _, prev, _, _) in r.switches().take_while(|s| s.0 <= upto) {
        *time.entry(prev).or_default() += now - since;
        since = now;
    }
    time.retain(|pid, _| *pid > 1);
    time
}

/// Three spinners on one CPU with HZ 1000 and a request of `slice` ns.
fn share(slice: i64) -> Run {
    let mut s = Setup::free("1c", spinners(3, 60 * MS)).tunable("base_slice_ns", slice);
    s.machine.hz = 1000;
    s.run()
}

#[test]
fn one_cpu_is_shared_fairly_at_all_times() {
    for slice in [1_000_000, 3_000_000, 5_000_000] {
        let r = share(slice);
        let first_exit = r.switches().find(|s| s.3 == Leaving::Exited).unwrap().0;
        for (now, ..) in r.switches().take_while(|s| s.0 < first_exit) {
            let time = cpu_time(&r, now);
            let of = |pid| time.get(&pid).copied().unwrap_or(0);
            let (most, least) = ((2..5).map(of).max().unwrap(), (2..5).map(of).min().unwrap());
            // EEVDF bounds the lag by a request, to which a tick comes because nothing else preempts
            assert!(most - least <= slice as u64 + 2 * MS, "{slice} ns, at {now}: {time:?}");
        }
        assert_eq!(r.runtime_ns(), 180 * MS, "and all of it is used");
    }
}

#[test]
fn tasks_take_turns_by_the_request() {
    // 180 ms in requests that end at the first tick after they are served
    for (slice, turns) in
        [(100_000, 180), (1_000_000, 180), (2_000_000, 90), (5_000_000, 36), (30_000_000, 6)]
    {
        let involuntary = share(slice).get(Metric::context_switches_involuntary) as i64;
        assert!((involuntary - turns).abs() <= turns / 10 + 3, "{slice} ns: {involuntary} of {turns}");
    }
}

#[test]
fn without_competition_nobody_is_preempted() {
    let r = Setup::free("4c", spinners(4, 20 * MS)).run();
    let fair = Setup::free("4c", spinners(4, 20 * MS)).tunable("base_slice_ns", 100_000).run();
    assert!(r.runtime_ns() < 21 * MS, "four CPUs work at once: {} ns", r.runtime_ns());
    assert!(fair.get(Metric::context_switches_involuntary) <= 4.0);
}

#[test]
fn a_wakeup_takes_what_its_parts_take() {
    // the timer interrupts the idle CPU, wakes the task there, and that switches to it
    let parts = [
        ("timer_ns", 1000, 1),
        ("wakeup_ns", 2000, 1),
        ("enqueue_ns", 3000, 1),
        ("context_switch_ns", 4000, 1),
        ("pick_next_ns", 5000, 1),
    ];
    for (name, ns, most) in parts {
        let r = Setup::free("1c", single(&[sleep(MS)])).cost(name, ns).run();
        let extra = r.runtime_ns() - MS;
        assert!(extra >= ns && extra <= most * ns, "{name}: {extra} ns");
    }
    // what comes before the sleep delays it: a system call; a dequeue and a switch to idle do not
    assert_eq!(Setup::free("1c", single(&[sleep(MS)])).cost("syscall_ns", 500).run().runtime_ns(), MS + 500);
    assert_eq!(Setup::free("1c", single(&[sleep(MS)])).cost("dequeue_ns", 500).run().runtime_ns(), MS);
}

#[test]
fn each_level_of_task_groups_adds_its_entity() {
    let extra = |depth, main: &[Op]| {
        let mut s = Setup::free("1c", workload(0, vec![program(main), program(&[sleep(MS)])]));
        s.settings.task_group_depth = depth;
        s.clone().cost("group_entity_ns", 1000).run().runtime_ns() - s.run().runtime_ns()
    };
    // the CPU's only task starts and wakes up
    assert_eq!([0, 1, 3].map(|depth| extra(depth, &[sleep(MS)])), [0, 2000, 6000]);
    // it starts, and runs while another one wakes up
    assert_eq!(extra(3, &[spawn(1), run(5 * MS), Op::WaitChildren]), 3000);
}

#[test]
fn a_long_queue_of_messages_on_sockets_comes_from_the_llc() {
    let extra = |l2_bytes, kind: &str| {
        let mut s = Setup::free("1c", hackbench(&format!("-g 1 -f 2 -l 200 -T {kind}")));
        s.machine.caches.l2_bytes = l2_bytes;
        s.clone().cost("llc_line_ns", 100).run().runtime_ns() - s.run().runtime_ns()
    };
    let (all, some) = (extra(1 << 10, "--sockets"), extra(1 << 18, "--sockets"));
    // 800 messages, 6 lines each
    assert!(all > 800 * 5 * 100 && all <= 800 * 6 * 100, "{all} ns");
    assert!(some > 0 && some < all / 2, "{some} of {all} ns");
    assert_eq!(extra(1 << 20, "--sockets"), 0, "half of it holds them all");
    assert_eq!(extra(1 << 10, "--pipe"), 0);
}

#[test]
fn a_pipes_times_are_set_by_each_write_and_read_before_6_15() {
    let (write, read) = (Op::WriteTo { channel: 0, bytes: 100 }, Op::ReadFrom { channel: 0, bytes: 100 });
    let time = |profile| {
        let mut w = ping_pong(1, 0);
        w.programs = vec![program(&[Op::MarkStart, write, write, read, write, read, Op::MarkEnd])];
        let s = Setup::free("1c", w).cost("pipe_mtime_ns", 1000).cost("pipe_atime_ns", 300);
        s.profile(profile).run().runtime_ns()
    };
    assert_eq!(time("linux-6.12") - time("linux-6.18"), 3 * 1000 + 2 * 300);
}

#[test]
fn readers_that_have_more_to_do_preempt_their_writers_less() {
    // what a block takes is either the reader's own or the next task's, the writer's
    let preempted = |own, next| {
        let s = Setup::free("1c", hackbench("-g 1 -f 4 -l 2000 -T --pipe")).cost("syscall_ns", 1000);
        let s = s.cost("wait_ns", own).cost("dequeue_ns", next).profile("linux-6.5");
        s.run().get(Metric::context_switches_involuntary)
    };
    let (readers, writers) = (preempted(4000, 0), preempted(0, 4000));
    assert!(writers > 2.0 * readers, "{readers} and {writers} preemptions");
}

#[test]
fn a_socket_takes_longer_with_messages_that_fall_out_or_come_from_another_cpu() {
    // how much longer with sockets that take 1000 ns, for each of 800 messages
    let for_each = |machine, l2_bytes| {
        let mut s = Setup::free(machine, hackbench("-g 1 -f 2 -l 200 -T --sockets"));
        s.machine.caches.l2_bytes = l2_bytes;
        s.cost("socket_op_ns", 1000).run().runtime_ns() / 800
    };
    let (kept, fallen_out) = (for_each("1c", 1 << 30), for_each("1c", 1 << 10));
    assert!((2000..=2050).contains(&kept), "a write and a read, and some that find nothing: {kept}");
    assert!((500..=560).contains(&(fallen_out - kept)), "40 % of a read, 15 % of a write: {fallen_out}");
    let mut s = Setup::free("2c", ping_pong(100, 10_000)).cost("socket_op_ns", 1000);
    s.workload.channels.iter_mut().for_each(|channel| channel.kind = ChannelKind::UnixStream);
    s.machine.caches.l2_bytes = 1 << 30;
    let message = s.run().runtime_ns() / 200;
    assert!((12_500..=12_620).contains(&message), "10 us of work, and 30 % of either more: {message}");
}

#[test]
fn a_look_into_an_empty_socket_takes_less_than_a_message() {
    let on_sockets = |mut w: Workload| {
        w.channels.iter_mut().for_each(|channel| channel.kind = ChannelKind::UnixStream);
        w
    };
    // on one CPU, each read finds nothing at first
    let message =
        Setup::free("1c", on_sockets(ping_pong(100, 0))).cost("socket_op_ns", 1000).run().runtime_ns() / 200;
    assert!((2000..2100).contains(&message), "a write and a read: {message} ns");
    // the message comes after 6 us, while the reader looks, from 2 to 7 us
    let (write, read) = (Op::WriteTo { channel: 0, bytes: 100 }, Op::ReadFrom { channel: 0, bytes: 100 });
    let mut w = on_sockets(ping_pong(1, 0));
    w.programs = vec![
        program(&[spawn(1), Op::MarkStart, run(2000), read, Op::MarkEnd, Op::WaitChildren]),
        program(&[write]),
    ];
    let s = Setup::free("2c", w).cost("socket_op_ns", 1000).cost("syscall_ns", 5000).run();
    assert!((8300..8400).contains(&s.runtime_ns()), "the read begins at 7 us: {}", s.runtime_ns());
}

#[test]
fn a_sockets_buffers_come_line_by_line() {
    let lines = |kind, lookahead_ns| {
        let mut s = Setup::free("2c", ping_pong(100, 10_000)).cost("transfer_llc_ns", 1000);
        s.workload.channels.iter_mut().for_each(|channel| channel.kind = kind);
        // all lines of the data together
        let s = s.cost("stream_pct", 10_000).cost("lookahead_ns", lookahead_ns).run();
        s.outcome.cpu_time.ns(Part::ChannelLines)
    };
    for lookahead_ns in [0, 400, 1000] {
        let extra = lines(ChannelKind::UnixStream, lookahead_ns) - lines(ChannelKind::Pipe, lookahead_ns);
        // 200 messages, each of which is written with 1 line and read with 4, whatever was asked for ahead; whoever looks
        // into an empty pipe also fetches a line of data; a pipe's first page is new
        let all = 200 * (2 + 3) * 1000;
        assert!(extra >= all * 3 / 4 && extra <= all + 1000, "{extra} of {all} ns");
    }
}

fn idle_state(exit_ns: u64, polling: bool) -> IdleState {
    IdleState { name: "C".into(), exit_ns, residency_ns: 0, polling, promoted: false, source: String::new() }
}

/// Two tasks on two CPUs that wake each other.
fn remote_wakeups(state: IdleState) -> Setup {
    let mut s = Setup::free("2c", ping_pong(50, 20_000));
    s.machine.idle_states = vec![state];
    s
}

#[test]
fn a_deeper_idle_state_takes_longer_to_leave() {
    let mut last = None;
    for exit_ns in [0, 1_000, 30_000, 200_000] {
        let r = remote_wakeups(idle_state(exit_ns, true)).run();
        let latency = r.get(Metric::wakeup_latency_us_p50);
        assert!(latency >= exit_ns as f64 / 1e3, "{latency} us after {exit_ns} ns");
        assert!(latency <= exit_ns as f64 / 1e3 * 1.02 + 0.1, "{latency} us after {exit_ns} ns");
        let now = (latency, r.runtime_ns());
        assert!(last.is_none_or(|last| last < now));
        last = Some(now);
    }
}

#[test]
fn a_cpu_leaves_its_idle_state_before_it_handles_a_timer() {
    let of = |exit_ns, polling| {
        let mut s = Setup::free("1c", single(&[sleep(MS), run(MS), sleep(MS)]));
        s.machine.idle_states = vec![idle_state(exit_ns, polling)];
        let r = s.run();
        (r.runtime_ns(), r.get(Metric::wakeup_latency_us_p99))
    };
    let (free, _) = of(0, false);
    for polling in [false, true] {
        let (time, latency) = of(100_000, polling);
        assert_eq!(time - free, 200_000, "each sleep ends so much later");
        assert!(latency < 1.0, "and no wakeup takes longer: {latency}");
    }
}

#[test]
fn perfs_processes_take_longer_to_end_and_its_threads_do_not() {
    let time = |command: &str| {
        let w = coreward_workload::parse(command, coreward_workload::Scale::FULL).unwrap();
        Setup::free("1c", w).cost("process_exit_ns", 100_000).run().runtime_ns()
    };
    // 40 processes, each of which costs 8 times as much in perf
    let longer = time("perf bench sched messaging -g 1 -l 1 -p") - time("hackbench -g 1 -l 1 -p");
    assert_eq!(longer, 40 * 700_000);
    assert_eq!(time("perf bench sched messaging -g 1 -l 1 -p -t"), time("hackbench -g 1 -l 1 -p -T"));
}

#[test]
fn a_parent_waits_for_each_process_and_looks_at_all() {
    // one after the other: the first runs while the parent sleeps
    let ns = |reap_ns, child_scan_ns| {
        let main = [
            &[Op::MarkStart][..],
            &[sleep(MS), Op::Spawn { program: 1, base: 0, process: true }].repeat(2),
            &[Op::WaitChildren, Op::MarkEnd],
        ];
        let w = workload(0, vec![program(&main.concat()), program(&[run(MS * 3 / 2)])]);
        let s = Setup::free("2c", w).cost("reap_ns", reap_ns).cost("child_scan_ns", child_scan_ns);
        (s.run().get(Metric::busy_s) * 1e9).round() as u64
    };
    assert_eq!(ns(1000, 0) - ns(0, 0), 2 * 1000);
    // both are looked at before it sleeps, one on the average to find the first, then the other twice, the second time
    // half of it
    assert_eq!(ns(0, 1000) - ns(0, 0), 2000 + 1000 + 1000 + 500);
}

#[test]
fn threads_are_waited_for_together() {
    let waits = |process| {
        let main = [
            &[Op::MarkStart][..],
            &[Op::Spawn { program: 1, base: 0, process }, sleep(MS)].repeat(4),
            &[Op::WaitChildren, Op::MarkEnd],
        ];
        let w = workload(0, vec![program(&main.concat()), program(&[run(5 * MS)])]);
        Setup::free("6c", w).run().get(Metric::wakeups)
    };
    assert_eq!(waits(true) - waits(false), 3.0);
}

#[test]
fn the_last_to_poll_is_woken_first() {
    let main = [
        &vec![spawn(1); 3][..],
        &[sleep(MS), Op::MarkStart, Op::WriteTo { channel: 0, bytes: 1 }, Op::WaitChildren, Op::MarkEnd],
    ];
    let poller = program(&[Op::Poll { channel: 0 }, run(MS)]);
    let run = Setup::free("1c", workload(1, vec![program(&main.concat()), poller])).run();
    let order: Vec<_> = run.switches().map(|(.., next)| next).filter(|pid| *pid > 1).collect();
    assert_eq!(order[..6], [2, 3, 4, 4, 3, 2]);
}

#[test]
fn a_process_loses_translations_to_each_other_one_that_runs() {
    let refills = |workload: Workload| {
        let run = |cost| Setup::free("1c", workload.clone()).cost("tlb_refill_ns", cost).run();
        let (with, without) = (run(600), run(0));
        let ns = (with.get(Metric::busy_s) - without.get(Metric::busy_s)) * 1e9;
        ns / 600.0 / with.get(Metric::context_switches_voluntary)
    };
    assert_eq!(refills(restless(10, MS / 10, MS, 20)), 0.0, "threads share theirs");
    // each address space is new once; from then on, a sixth for each of the others
    let two = refills(processes(2, 1, MS / 10, MS, 20));
    assert!((0.15..0.3).contains(&two), "{two}");
    let five = refills(processes(5, 1, MS / 10, MS, 20));
    assert!((0.6..0.75).contains(&five), "{five}");
    let nine = refills(processes(9, 1, MS / 10, MS, 20));
    assert!((0.9..1.1).contains(&nine), "{nine}");
}

#[test]
fn cpus_of_an_idle_machine_went_idle_at_different_times() {
    // a child starts in the idler half of the machine, on the CPU that was the last to go idle there, or beside it
    let starts = |seed| {
        let main = [Op::MarkStart, spawn(1), run(MS), Op::WaitChildren, Op::MarkEnd];
        let run =
            Setup::new("1n2l4c1t", workload(0, vec![program(&main), program(&[run(MS)])])).seed(seed).run();
        run.switches().find(|(.., next)| *next == 2).map(|(_, cpu, ..)| cpu)
    };
    let cpus: BTreeSet<_> = (1..=40).map(starts).collect();
    assert_eq!(cpus, (0..8).map(Some).collect());
}

#[test]
fn an_idle_cpu_chooses_the_state_that_its_idle_time_pays_for() {
    let exits = |residency_ns| {
        let mut s = remote_wakeups(idle_state(0, true));
        s.machine.idle_states.push(IdleState { residency_ns, ..idle_state(10_000, true) });
        (s.run().get(Metric::idle_exit_s) * 1e9 / 10_000.0).round()
    };
    assert_eq!(exits(0), 101.0, "the deepest that pays, and the first task finds its CPU in it");
    // the first guess is 1 ms and moves an eighth of the way to 40 us each time: 24 times on each CPU until 80
    assert!((20.0..60.0).contains(&exits(80_000)), "{}", exits(80_000));
    assert!(exits(900_000) <= 6.0);
}

#[test]
fn an_idle_cpu_is_promoted_when_it_has_been_idle_for_long_enough() {
    let exits = |residency_ns| {
        let mut s = remote_wakeups(idle_state(0, true));
        let promoted = IdleState { residency_ns, promoted: true, ..idle_state(10_000, true) };
        s.machine.idle_states.push(promoted);
        (s.run().get(Metric::idle_exit_s) * 1e9 / 10_000.0).round()
    };
    assert!(exits(20_000) >= 99.0, "each idle time is longer, {}", exits(20_000));
    assert!(exits(80_000) <= 3.0, "whatever was expected, idle times are shorter: {}", exits(80_000));
}

#[test]
fn a_woken_task_is_charged_for_the_way_out_of_the_idle_loop() {
    let seen = |polling, idle_return_ns| {
        let r = remote_wakeups(idle_state(10_000, polling)).cost("idle_return_ns", idle_return_ns).run();
        let charged: u64 = r.outcome.schedstat.iter().map(|cpu| cpu.rq_cpu_time).sum();
        (charged, r.runtime_ns(), r.get(Metric::idle_exit_s))
    };
    let (none, runtime_ns, idle_exit_s) = seen(false, 0);
    // a turn of each task for each of 50 rounds
    assert_eq!(seen(false, 4_000), (none + 100 * 4_000, runtime_ns, idle_exit_s));
    // the whole exit at most
    assert_eq!(seen(false, 90_000), (none + 100 * 10_000, runtime_ns, idle_exit_s));
    // it takes woken tasks when it has left the loop
    assert_eq!(seen(true, 4_000), seen(true, 0));
}

#[test]
fn only_cpus_that_do_not_poll_are_interrupted() {
    for (name, ns) in [("ipi_deliver_ns", 5000), ("ipi_handle_ns", 7000)] {
        let runtime =
            |polling, ns| remote_wakeups(idle_state(100, polling)).cost(name, ns).run().runtime_ns();
        assert_eq!(runtime(true, ns), runtime(true, 0), "{name} while polling");
        let extra = runtime(false, ns) - runtime(false, 0);
        // 100 wakeups, each of which somebody waits for
        assert!((90 * ns..=100 * ns).contains(&extra), "{name}: {extra} ns");
    }
}

#[test]
fn sending_an_interrupt_keeps_the_sender_busy_and_delays_nobody_else() {
    let ran = |polling, ns| remote_wakeups(idle_state(100, polling)).cost("ipi_send_ns", ns).run();
    let busy = |polling, ns| (ran(polling, ns).get(Metric::busy_s) * 1e9).round() as u64;
    assert_eq!(busy(true, 400), busy(true, 0), "a CPU that polls is not interrupted");
    // 100 wakeups; each is over before the answer comes
    let extra = busy(false, 400) - busy(false, 0);
    assert!((90 * 400..=100 * 400).contains(&extra), "{extra} ns");
    assert_eq!(ran(false, 400).runtime_ns(), ran(false, 0).runtime_ns());
}

#[test]
fn a_task_clock_does_not_run_before_there_is_a_task() {
    let ran = |ns| remote_wakeups(idle_state(ns, true)).run();
    let extra = |metric| ((ran(5_000).get(metric) - ran(0).get(metric)) * 1e9).round() as i64;
    // 100 wakeups of a CPU that leaves its idle state for 5 us; the waker has its own while it waits
    assert!(extra(Metric::busy_s) >= 90 * 5_000, "{}", extra(Metric::busy_s));
    assert!(extra(Metric::task_clock_s) <= 10 * 5_000, "{}", extra(Metric::task_clock_s));
    // and it runs in all work: that of a task that never sleeps is the time of the run
    let r = Setup::free("1c", single(&[run(7 * MS)])).run();
    assert_eq!((r.get(Metric::task_clock_s) * 1e9).round() as u64, 7 * MS);
}

#[test]
fn ticks_take_their_time_from_whoever_runs() {
    for (hz, ticks) in [(100, 10), (250, 25), (1000, 100)] {
        let mut s = Setup::free("1c", single(&[run(100 * MS)])).cost("tick_ns", 10_000);
        s.machine.hz = hz;
        let extra = s.run().runtime_ns() - 100 * MS;
        assert!(extra.abs_diff(ticks * 10_000) <= 10_000, "{hz} Hz: {extra} ns");
    }
    // and there are none while a CPU is idle
    let r = Setup::free("1c", single(&[sleep(100 * MS)])).cost("tick_ns", 10_000).run();
    assert_eq!(r.runtime_ns(), 100 * MS);
}

#[test]
fn yielding_lets_the_others_go_first() {
    let order = |between: &[Op]| -> Vec<i32> {
        let of = |ns| program(&[&[run(ns)], between, &[run(ns)]].concat());
        let main = [spawn(1), spawn(2), Op::WaitChildren];
        let w = workload(0, vec![program(&main), of(MS / 10), of(MS / 5)]);
        let r = Setup::free("1c", w).run();
        r.switches().filter(|s| s.2 > 1).map(|s| s.2).collect()
    };
    assert_eq!(order(&[Op::Yield]), [2, 3, 2, 3]);
    assert_eq!(order(&[]), [2, 3], "neither used up its request");
}

#[test]
fn a_task_that_waits_for_itself_is_reported() {
    let stuck = single(&[Op::ReadFrom { channel: 0, bytes: 1 }]);
    let stuck = support::Workload { channels: workload(1, vec![]).channels, ..stuck };
    let error = Setup::free("2c", stuck).try_run().err().unwrap().to_string();
    let what = "1 tasks wait and nothing will wake them: task 1 waits to read channel 0";
    assert!(error.contains("stuck") && error.ends_with(what), "{error}");
    let mut endless = Setup::free("1c", single(&[run(u64::MAX / 1024 / 2)]));
    endless.settings.limit_ns = 5 * MS;
    let error = endless.try_run().err().unwrap().to_string();
    assert!(error.contains("within 5000000 ns"), "{error}");
}

#[test]
fn who_reads_a_closed_channel_takes_what_is_left_and_leaves_its_loop() {
    let (message, part) = (Op::Write { channel: 0, bytes: 10 }, Op::Read { channel: 0, bytes: 10 });
    let close = Op::Close { channel: 0 };
    // it comes late and finds two messages, or waits when the channel is closed
    for wait in [5 * MS, 0] {
        let main =
            [Op::MarkStart, spawn(1), message, message, sleep(MS), close, Op::WaitChildren, Op::MarkEnd];
        let reader =
            ProgramBuilder::default().op(sleep(wait)).repeat(u64::MAX, |b| b.op(part)).op(run(3 * MS));
        let mut w = workload(1, vec![program(&main), reader.build()]);
        w.first_message_channel = 0;
        let r = Setup::free("2c", w).run();
        assert_eq!(r.runtime_ns(), wait.max(MS) + 3 * MS);
        assert_eq!((r.get(Metric::messages_per_s) * r.get(Metric::runtime_s)).round(), 2.0);
    }
}
