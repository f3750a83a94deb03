//! What tasks do with mutexes, conditions, barriers, flags and timers, by hand.

mod support;

use coreward_engine::{Leaving, SimError};
use coreward_metrics::Metric;
use coreward_workload::{Attributes, Limits, Op, ProgramBuilder, Scale, Shared, parse};
use support::{Setup, Workload, messages_of_sockets, program, run, sleep, spawn, workload};

const MS: u64 = 1_000_000;

fn shared(w: Workload) -> Workload {
    let shared = Shared {
        mutexes: 2,
        conds: 1,
        barriers: vec![3],
        flags: 4,
        semaphores: 1,
        lists: 1,
        timers: 1,
        ..Shared::default()
    };
    Workload { shared, ..w }
}

/// Main spawns each of the programs once and waits for them.
fn team(programs: &[&[Op]]) -> Workload {
    let mut main = vec![Op::MarkStart];
    main.extend((1..=programs.len() as u32).map(spawn));
    main.extend([Op::WaitChildren, Op::MarkEnd]);
    let mut all = vec![program(&main)];
    all.extend(programs.iter().map(|ops| program(ops)));
    shared(workload(0, all))
}

fn seconds(w: Workload, machine: &str) -> f64 {
    metric(w, machine, Metric::runtime_s)
}

fn metric(w: Workload, machine: &str, metric: Metric) -> f64 {
    Setup::free(machine, w).run().outcome.metrics.get(metric).unwrap_or_else(|| panic!("no {metric:?}"))
}

/// Within 5 %.
fn near(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 0.05, "{got}, not {expected}");
}

#[test]
fn a_mutex_lets_one_in_at_a_time() {
    let inside: &[Op] = &[Op::Lock { mutex: 0 }, run(10 * MS), Op::Unlock { mutex: 0 }];
    let other: &[Op] = &[Op::Lock { mutex: 1 }, run(10 * MS), Op::Unlock { mutex: 1 }];
    near(seconds(team(&[inside, inside, inside]), "4c"), 0.030);
    near(seconds(team(&[inside, other]), "4c"), 0.010);
}

/// The kernel looks at the mutex once more before it lets a task wait: within 300 us it has become free.
#[test]
fn a_mutex_that_is_free_by_then_is_not_waited_for() {
    let inside: &[Op] = &[Op::Lock { mutex: 0 }, run(MS / 10), Op::Unlock { mutex: 0 }];
    let run = |wait_ns| {
        let run = Setup::free("4c", team(&[inside, inside])).cost("futex_wait_ns", wait_ns).run();
        let get = |m| run.outcome.metrics.get(m).unwrap();
        (get(Metric::runtime_s), get(Metric::context_switches_voluntary))
    };
    let ((waits_s, waits), (calls_s, calls)) = (run(MS / 100), run(3 * MS / 10));
    near(waits_s, 0.0002);
    near(calls_s, 0.0004);
    assert_eq!(waits - calls, 1.0, "{waits}, {calls}");
}

/// Two threads with a mutex each: on one cache line they take it from each other at every step.
#[test]
fn neighbouring_mutexes_share_a_cache_line() {
    let turns = |mutex| [Op::Lock { mutex }, run(100), Op::Unlock { mutex }].repeat(2000);
    let transfer = |mutex_bytes| {
        let mut w = team(&[&turns(0), &turns(1)]);
        w.shared.mutex_bytes = mutex_bytes;
        let run = Setup::free("2c", w).cost("transfer_llc_ns", 50).run();
        run.outcome.metrics.get(Metric::transfer_time_s).unwrap()
    };
    let (apart, together) = (transfer(0), transfer(40));
    assert!(together > 10.0 * apart, "{together}, {apart}");
    assert_eq!(transfer(64), apart, "each on a line of its own");
}

#[test]
fn turns_go_round() {
    let inside: &[Op] =
        &[Op::TakeTurn { of: 2 }, Op::Lock { mutex: 0 }, run(10 * MS), Op::Unlock { mutex: 0 }];
    near(seconds(team(&[inside, inside]), "4c"), 0.010);
    near(seconds(team(&[inside, inside, inside]), "4c"), 0.020);
}

#[test]
fn a_condition_wakes_one_or_all() {
    let wait: &[Op] =
        &[Op::Lock { mutex: 0 }, Op::CondWait { cond: 0, mutex: 0 }, run(MS), Op::Unlock { mutex: 0 }];
    let broadcast: &[Op] = &[sleep(20 * MS), Op::Broadcast { cond: 0 }];
    let signal: &[Op] = &[sleep(20 * MS), Op::Signal { cond: 0 }];
    // they come out one after the other, with the mutex
    near(seconds(team(&[wait, wait, broadcast]), "4c"), 0.022);
    near(seconds(team(&[wait, signal]), "4c"), 0.021);
    let stuck = Setup::new("4c", team(&[wait, wait, signal])).try_run().err().expect("a deadlock");
    assert!(matches!(stuck, SimError::Deadlock { waiting: 2, .. }), "main and one that waits: {stuck}");
    assert!(stuck.to_string().ends_with(": task 3 waits for condition 0"), "{stuck}");
    let locked: &[Op] = &[Op::Lock { mutex: 0 }];
    let stuck = Setup::new("4c", team(&[locked, &[sleep(MS), Op::Lock { mutex: 0 }]]))
        .try_run()
        .err()
        .expect("a deadlock");
    assert!(stuck.to_string().ends_with(": task 3 waits for mutex 0"), "{stuck}");
    let stop: &[Op] = &[sleep(20 * MS), Op::Stop];
    near(seconds(team(&[wait, wait, stop]), "4c"), 0.022);
}

#[test]
fn a_barrier_waits_for_the_last() {
    let come = |ms: u64| vec![run(ms * MS), Op::Barrier { barrier: 0, starts: false }, run(5 * MS)];
    near(seconds(team(&[&come(1), &come(2), &come(20)]), "4c"), 0.025);
    let starts = |ms: u64| vec![run(ms * MS), Op::Barrier { barrier: 0, starts: true }, run(5 * MS)];
    near(seconds(team(&[&starts(1), &starts(2), &starts(20)]), "4c"), 0.005);
}

#[test]
fn a_spin_is_time_and_a_run_is_work() {
    // SMT siblings share the core: work takes longer, time does not
    near(seconds(team(&[&[Op::Spin { ns: 20 * MS }], &[Op::Spin { ns: 20 * MS }]]), "1c2t"), 0.020);
    assert!(seconds(team(&[&[run(20 * MS)], &[run(20 * MS)]]), "1c2t") > 0.030);
    // and it passes while another runs: the second sees that it has passed within a slice of 3 ms
    let both = seconds(team(&[&[Op::Spin { ns: 50 * MS }], &[Op::Spin { ns: 50 * MS }]]), "1c");
    assert!((0.050..0.054).contains(&both), "{both}");
}

#[test]
fn a_timer_has_no_drift_and_a_sleep_has() {
    let timer = Op::Timer { timer: 0, period_ns: 10 * MS, relative: true };
    let periods = |last: Op| {
        let body =
            ProgramBuilder::default().op(Op::Origin).repeat(10, |b| b.op(run(4 * MS)).op(last)).build();
        let main = [Op::MarkStart, spawn(1), Op::WaitChildren, Op::MarkEnd];
        shared(workload(0, vec![program(&main), body]))
    };
    near(seconds(periods(timer), "2c"), 0.100);
    near(seconds(periods(sleep(10 * MS)), "2c"), 0.140);
}

#[test]
fn a_missed_expiry_is_made_up_for_only_if_absolute() {
    let timed = |relative: bool| {
        let timer = Op::Timer { timer: 0, period_ns: 10 * MS, relative };
        let late: &[Op] = &[Op::Origin, run(25 * MS), timer, run(MS), timer, run(MS), timer];
        seconds(team(&[late]), "2c")
    };
    near(timed(true), 0.045);
    near(timed(false), 0.030);
}

#[test]
fn an_answer_is_measured_from_the_look_at_the_clock() {
    // two askers; the answerer sleeps, then wakes both
    let ask =
        |flag| vec![Op::Clear { flag: 0 }, Op::Enlist { list: 0 }, Op::Post { flag }, Op::Await { flag: 0 }];
    let answer: &[Op] = &[sleep(20 * MS), Op::PostListed { list: 0 }];
    let asker = program(&ask(3));
    let mut w = team(&[answer]);
    w.programs[0] = program(&[
        Op::MarkStart,
        spawn(1),
        Op::Spawn { program: 2, base: 0, process: false },
        Op::Spawn { program: 2, base: 1, process: false },
        Op::WaitChildren,
        Op::MarkEnd,
    ]);
    w.programs.push(asker);
    let metrics = Setup::new("4c", w).run().outcome.metrics;
    let longest = metrics.get(Metric::reply_latency_us_max).unwrap();
    assert!((1.0..1000.0).contains(&longest), "{longest}");
}

fn up(semaphore: u32) -> Op {
    Op::Up { semaphore, reply: None }
}

fn down(semaphore: u32) -> Op {
    Op::Down { semaphore, count: 1, request: false }
}

#[test]
fn an_answer_goes_to_whom_the_request_came_from() {
    // two askers with a semaphore each, of which the second asks first; what is no request changes nothing
    let asker =
        |own, thinks| vec![run(thinks), Op::Up { semaphore: 0, reply: Some(own) }, down(own), run(10 * MS)];
    let request = Op::Down { semaphore: 0, count: 1, request: true };
    let server =
        [Op::Answer, request, down(3), run(MS), Op::Answer, Op::Answer, request, run(50 * MS), Op::Answer];
    let (first, second) = (asker(1, 20 * MS), asker(2, 10 * MS));
    let mut w = team(&[&first, &second, &server, &[up(3)]]);
    w.shared.semaphores = 4;
    near(seconds(w.clone(), "4c"), 0.020 + 0.050 + 0.010);
    // the last one first, of two that wait
    w.programs[3] = program(&[run(30 * MS), request, request, Op::Answer, run(50 * MS), Op::Answer]);
    near(seconds(w.clone(), "4c"), 0.030 + 0.050 + 0.010);
    // the other way round, the first asker is never answered
    w.programs[3] = program(&[request, up(2), request, up(2)]);
    let stuck = Setup::free("4c", w).try_run();
    assert!(matches!(&stuck, Err(SimError::Deadlock { first, .. }) if first.ends_with("for semaphore 1")));
}

#[test]
fn a_stop_ends_waits_for_semaphores() {
    let taker = ProgramBuilder::default().until_stopped(|b| b.op(down(0)).op(run(MS))).build();
    let mut w = team(&[&[run(10 * MS), up(0), sleep(20 * MS), Op::Stop], &[run(30 * MS)]]);
    w.programs[2] = taker;
    near(seconds(w, "4c"), 0.030);
}

/// Each of 100 messages there and back has 20 lines of 100 ns, whether or not the tasks wait for each other.
#[test]
fn messages_of_sockets_move_lines_between_cpus() {
    let took = |apart, sockets: &[u32]| {
        let mut w = messages_of_sockets(100, apart);
        w.shared.sockets = sockets.to_vec();
        let setup = Setup::free("2c", w).cost("transfer_llc_ns", 100).cost("message_lines", 20);
        setup.run().outcome.metrics.get(Metric::transfer_time_s).unwrap()
    };
    let kernel = took(true, &[]);
    near(took(true, &[0, 1]) - kernel, 200.0 * 20.0 * 100e-9);
    near(took(true, &[1]) - kernel, 100.0 * 20.0 * 100e-9);
    assert_eq!(took(false, &[0, 1]), took(false, &[]));
}

/// A device takes its time, and its interrupt the CPU's; a timer also has to be armed.
#[test]
fn a_device_interrupts_without_a_timer() {
    let waits = |wait: Op| {
        let setup = Setup::free("1c", team(&[&[wait, run(MS)]]));
        let setup =
            setup.cost("timer_arm_ns", MS / 10).cost("timer_ns", MS / 5).cost("ipi_handle_ns", MS / 2);
        setup.run().outcome.metrics.get(Metric::runtime_s).unwrap()
    };
    near(waits(Op::Device { ns: 2 * MS }), 0.0035);
    near(waits(Op::Sleep { ns: 2 * MS }), 0.0032);
    let drawn = |device| {
        let mut w = team(&[&[Op::SleepDrawn { of: 0, device }, run(MS)]]);
        w.shared.distributions = vec![vec![2 * MS]];
        Setup::free("1c", w)
            .cost("ipi_handle_ns", MS / 2)
            .run()
            .outcome
            .metrics
            .get(Metric::runtime_s)
            .unwrap()
    };
    near(drawn(true), 0.0035);
    near(drawn(false), 0.003);
}

/// A new task preempts its parent, but for one that waits for it in the same system call, by vfork().
#[test]
fn nothing_preempts_a_parent_before_it_waits_for_its_child() {
    let preempted = |fork: Op| {
        let parent = [run(50 * MS), fork, down(0), run(MS)];
        let mut w = team(&[&parent, &[run(MS / 10), up(0), run(MS)]]);
        w.programs[0] = program(&[Op::MarkStart, spawn(1), Op::WaitChildren, Op::MarkEnd]);
        let ran = Setup::free("1c", w).run();
        let mut left = ran.switches().filter(|s| s.2 == 2).map(|s| s.3);
        left.next() == Some(Leaving::Preempted)
    };
    assert!(!preempted(Op::Vfork { program: 2 }));
    assert!(preempted(Op::Spawn { program: 2, base: 0, process: true }));
}

#[test]
fn draws_are_the_programs_and_the_seeds() {
    let ops = ProgramBuilder::default()
        .repeat(100, |b| b.op(Op::RunDrawn { of: 0 }).op(Op::SleepDrawn { of: 1, device: false }))
        .build();
    let team = |programs: usize| {
        let mut w = team(&vec![&[] as &[Op]; programs]);
        w.programs[1..].fill(ops.clone());
        w
    };
    let mut w = team(1);
    w.shared.distributions = vec![vec![MS, 3 * MS], vec![2 * MS]];
    let busy = |w: &Workload, machine, seed| {
        Setup::free(machine, w.clone()).seed(seed).run().outcome.metrics.get(Metric::busy_s).unwrap()
    };
    let (first, second) = (busy(&w, "1c", 1), busy(&w, "1c", 2));
    assert!((0.15..0.25).contains(&first) && first != second, "{first} {second}");
    near(busy(&w, "4c", 1), first);
    near(seconds(w.clone(), "1c"), first + 0.2);
    // a second task has draws of its own
    let mut two = team(2);
    two.shared.distributions = w.shared.distributions.clone();
    assert_ne!(busy(&two, "4c", 1), 2.0 * first);
    w.shared.distributions = vec![vec![], vec![MS]];
    assert_eq!(busy(&w, "1c", 1), 0.0, "nothing can be drawn");
}

#[test]
fn a_semaphore_keeps_what_nobody_has_waited_for() {
    let (up, down) = (up(0), down(0));
    // two at once before the other looks: it takes both, and then waits for the third
    let giver: &[Op] = &[up, up, run(40 * MS), up];
    near(seconds(team(&[giver, &[run(10 * MS), down, down]]), "2c"), 0.040);
    near(seconds(team(&[giver, &[run(10 * MS), down, down, down, run(10 * MS)]]), "2c"), 0.050);
    let stuck = Setup::free("2c", team(&[giver, &[down, down, down, down]])).try_run();
    assert!(matches!(&stuck, Err(SimError::Deadlock { first, .. }) if first.ends_with("for semaphore 0")));
}

#[test]
fn several_messages_are_waited_for_at_once() {
    let giver: &[Op] = &[up(0), run(10 * MS), up(0), run(10 * MS), up(0), run(10 * MS)];
    let wakeups = |taker: &[Op]| {
        let outcome = Setup::free("2c", team(&[giver, taker])).run().outcome;
        let of = |metric| outcome.metrics.get(metric).unwrap();
        (of(Metric::wakeups), of(Metric::runtime_s))
    };
    let at_once = Op::Down { semaphore: 0, count: 3, request: false };
    let ((one, length), (each, as_long)) = (wakeups(&[at_once]), wakeups(&[down(0), down(0), down(0)]));
    assert_eq!((length, as_long), (0.030, 0.030));
    assert!((1.0..=2.0).contains(&(each - one)), "woken {one} and {each} times");
    let stuck = Setup::free("2c", team(&[giver, &[down(0), at_once]])).try_run();
    assert!(matches!(stuck, Err(SimError::Deadlock { .. })), "two are not three");
}

#[test]
fn a_process_gives_back_its_memory_before_its_last_wakeups() {
    let end = |first: &[Op]| {
        let ends: Vec<Op> = [first, &[up(0)]].concat();
        let setup = Setup::free("2c", team(&[&ends, &[down(0), run(10 * MS)]]));
        setup.cost("exit_ns", 1_000_000).run().outcome.metrics.get(Metric::runtime_s).unwrap()
    };
    // the other one, too, needs 1 ms for its end
    near(end(&[run(5 * MS)]), 0.016);
    near(end(&[run(5 * MS), Op::Exit]), 0.017);
}

#[test]
fn a_wait_for_a_channel_ends_when_nothing_else_can_happen() {
    // the second task may take both that the first one gives, which waits for the third one's answer
    let programs: [&[Op]; 3] = [
        &[run(10 * MS), up(0), down(1), run(10 * MS), up(0)],
        &[down(0), run(20 * MS)],
        &[run(MS), down(0), up(1), run(10 * MS)],
    ];
    let mut w = team(&programs);
    (w.shared.semaphores, w.shared.channels) = (2, 2);
    let outcome = Setup::free("4c", w.clone()).run().outcome;
    assert_eq!(outcome.lent, 1);
    // when the second task has ended, after 30 ms
    near(outcome.metrics.get(Metric::runtime_s).unwrap(), 0.040);
    // that the first task ends the run after a time is nothing
    let mut timed = w.clone();
    timed.programs[0] = program(&[Op::MarkStart, spawn(1), spawn(2), spawn(3), sleep(50 * MS), Op::MarkEnd]);
    let outcome = Setup::free("4c", timed).run().outcome;
    assert_eq!(outcome.lent, 1);
    near(outcome.metrics.get(Metric::runtime_s).unwrap(), 0.050);
    w.shared.channels = 0;
    let stuck = Setup::free("4c", w).try_run();
    assert!(matches!(stuck, Err(SimError::Deadlock { .. })), "a semaphore is not lent");
}

#[test]
fn a_cpus_lock_is_spun_for() {
    // one CPU, and two tasks that take turns within what they hold it for
    let inside: &[Op] = &[Op::LockCpu, run(20 * MS), Op::UnlockCpu];
    let free: &[Op] = &[run(20 * MS)];
    let with = metric(team(&[inside, inside]), "1c", Metric::busy_s);
    let without = metric(team(&[free, free]), "1c", Metric::busy_s);
    near(without, 0.040);
    assert!(with > without * 1.2, "the second spins while it has the CPU: {with} against {without}");
    assert!(with < without * 3.0, "the one that holds it gets its turns meanwhile: {with} against {without}");
    near(seconds(team(&[inside, inside]), "4c"), 0.020);
}

#[test]
fn a_task_without_an_event_counts_among_those_that_could_have_had_one() {
    let stddev = |events| {
        let w = parse(&format!("sysbench threads --threads=3 --events={events} --time=0 run"), Scale::FULL);
        Setup::new("4c", w.unwrap()).run().outcome.metrics.get(Metric::events_per_task_stddev).unwrap()
    };
    // sysbench prints 0.3333/0.47 and 0.6667/0.47
    near(stddev(1), (2.0f64 / 9.0).sqrt());
    near(stddev(2), (2.0f64 / 9.0).sqrt());
}

#[test]
fn requests_are_taken_by_whom_they_are_for() {
    let taker = ProgramBuilder::default()
        .until_stopped(|b| b.op(Op::TakeRequest).op(Op::EventStart).op(run(MS)).op(Op::EventEnd))
        .build();
    let mut main = ProgramBuilder::default().op(Op::MarkStart);
    for base in 0..2 {
        main = main.op(Op::Spawn { program: 1, base, process: false });
    }
    let main = main
        .repeat(10, |b| b.op(Op::SendRequest { first: 0, count: 2 }))
        .op(sleep(20 * MS))
        .op(Op::Stop)
        .op(Op::WaitChildren)
        .op(Op::MarkEnd)
        .build();
    let w = shared(workload(0, vec![main, taker]));
    let m = Setup::new("4c", w).run().outcome.metrics;
    assert_eq!(m.get(Metric::events), Some(10.0));
    assert_eq!(m.get(Metric::events_per_task_stddev), Some(0.0), "five each");
    near(m.get(Metric::event_latency_us_avg).unwrap(), 1000.0);
}

#[test]
fn limits_end_a_run() {
    let body = ProgramBuilder::default()
        .until_stopped(|b| b.op(Op::EventStart).op(run(MS)).op(Op::EventEnd))
        .build();
    let main = [Op::MarkStart, spawn(1), spawn(1), Op::WaitChildren, Op::MarkEnd];
    let of = |limits: Limits| Workload { limits, ..workload(0, vec![program(&main), body.clone()]) };
    let by_events = of(Limits { events: 7, ..Limits::default() });
    assert_eq!(metric(by_events, "2c", Metric::events), 7.0);
    near(seconds(of(Limits { time_ns: 50 * MS, ..Limits::default() }), "2c"), 0.050);
}

#[test]
fn events_are_counted_by_the_second() {
    // the first second has ten events of 99 ms, the next two have five of 199 ms
    let busy = |ms: u64, times: u64| {
        ProgramBuilder::default().repeat(times, |b| b.op(Op::EventStart).op(run(ms * MS)).op(Op::EventEnd))
    };
    let body =
        busy(99, 10).repeat(10, |b| b.op(Op::EventStart).op(run(199 * MS)).op(Op::EventEnd)).op(run(50 * MS));
    let main = [Op::MarkStart, spawn(1), Op::WaitChildren, Op::MarkEnd];
    let m = Setup::free("2c", workload(0, vec![program(&main), body.build()])).run().outcome.metrics;
    let at = |metric| m.get(metric).unwrap();
    let percentiles = [Metric::events_per_s_p20, Metric::events_per_s_p50, Metric::events_per_s_p90].map(at);
    assert_eq!(percentiles, [5.0, 5.0, 10.0]);
}

#[test]
fn a_nice_task_gets_its_share() {
    // 1024 against 110 (nice 10): the first has 10 ms after 11.07 ms
    let ends = |nice| {
        let mut w = team(&[&[run(200 * MS), Op::MarkEnd], &[run(200 * MS)]]);
        w.attributes =
            vec![Attributes::default(), Attributes::default(), Attributes { nice, ..Attributes::default() }];
        seconds(w, "1c")
    };
    near(ends(10), 0.200 * (1.0 + 110.0 / 1024.0));
    assert!(ends(0) > 0.35);
}

#[test]
fn a_footprint_of_its_own_is_refilled() {
    let refill = |bytes| {
        let mut w = support::restless(9, 50_000, 50_000, 200);
        w.attributes =
            vec![Attributes { private_bytes: Some(bytes), ..Attributes::default() }; w.programs.len()];
        Setup::new("1n2l2c1t", w).run().outcome.metrics.get(Metric::refill_time_s).unwrap()
    };
    assert!(refill(256 << 10) > 2.0 * refill(4 << 10));
}
