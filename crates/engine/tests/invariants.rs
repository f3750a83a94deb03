//! What holds in every run: tasks are neither lost nor doubled, and CPUs do not sleep while tasks wait.

mod support;

use coreward_engine::Leaving;
use coreward_metrics::Metric;
use coreward_policy::Profile;
use coreward_workload::Op;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use support::{Event, MS, Run, Setup, Workload, hackbench, program, run, sleep, spawn, workload};

/// Where a task is, by what the observer has been told.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    New,
    Asleep,
    Waiting,
    Running,
    Dead,
}

/// Follows all tasks and CPUs through the events of a run.
struct Follower {
    now: u64,
    curr: Vec<i32>,
    tasks: BTreeMap<i32, (Is, Option<usize>)>,
}

impl Follower {
    fn step(&mut self, event: &Event) -> Result<(), String> {
        let (Event::Fork { now, .. }
        | Event::Waking { now, .. }
        | Event::Migrate { now, .. }
        | Event::Switch { now, .. }) = *event
        else {
            return Ok(());
        };
        expect(now >= self.now, "time goes on")?;
        self.now = now;
        match *event {
            Event::Fork { pid, .. } => {
                expect(self.tasks.insert(pid, (Is::New, None)).is_none(), "a new task has a new id")
            }
            Event::Waking { pid, target, new, .. } => self.waking(pid, target, new),
            Event::Migrate { pid, from, to, .. } => self.migrate(pid, from, to),
            Event::Switch { cpu, prev, leaving, next, .. } => self.switch(cpu, prev, leaving, next),
            Event::Decision(_) => Ok(()),
        }
    }

    fn task(&mut self, pid: i32) -> Result<&mut (Is, Option<usize>), String> {
        self.tasks.get_mut(&pid).ok_or_else(|| format!("task {pid} was never created"))
    }

    fn waking(&mut self, pid: i32, target: usize, new: bool) -> Result<(), String> {
        let task = self.task(pid)?;
        let before = if new { Is::New } else { Is::Asleep };
        expect(task.0 == before, "who wakes slept, or is new")?;
        task.0 = Is::Waiting;
        // the move to the target comes after it, but that of a new task before
        if task.1.is_none() {
            task.1 = Some(target);
        }
        Ok(())
    }

    fn migrate(&mut self, pid: i32, from: usize, to: usize) -> Result<(), String> {
        let task = self.task(pid)?;
        expect(from != to, "a move goes elsewhere")?;
        expect(task.1.is_none_or(|at| at == from), "a move starts where the task is")?;
        expect(task.0 != Is::Dead, "who ended does not move")?;
        let running = task.0 == Is::Running;
        task.1 = Some(to);
        if running {
            // active balance: the stopper took it off its CPU
            task.0 = Is::Waiting;
            self.curr[from] = 0;
        }
        Ok(())
    }

    fn switch(&mut self, cpu: usize, prev: i32, leaving: Leaving, next: i32) -> Result<(), String> {
        expect(self.curr[cpu] == prev, "who leaves a CPU came there")?;
        expect(prev != next, "a switch is from one to another")?;
        self.curr[cpu] = next;
        if prev != 0 {
            let task = self.task(prev)?;
            task.0 = match leaving {
                Leaving::Preempted => Is::Waiting,
                Leaving::Blocked => Is::Asleep,
                Leaving::Exited => Is::Dead,
            };
        }
        if next != 0 {
            let task = self.task(next)?;
            expect(task.0 == Is::Waiting, "who comes has waited, and runs nowhere else")?;
            expect(task.1 == Some(cpu), "who comes is on this CPU's queue")?;
            task.0 = Is::Running;
        }
        Ok(())
    }

    fn idle(&self) -> usize {
        self.curr.iter().filter(|pid| **pid == 0).count()
    }
}

fn expect(condition: bool, what: &str) -> Result<(), String> {
    if condition { Ok(()) } else { Err(what.to_owned()) }
}

/// Follows a run to its end, where all tasks have to have ended.
fn follow(r: &Run, nr_cpus: usize, mut each: impl FnMut(&Follower)) -> Result<(), String> {
    let mut f = Follower { now: 0, curr: vec![0; nr_cpus], tasks: BTreeMap::new() };
    for event in &r.events {
        f.step(event).map_err(|what| format!("not so: {what}; at {event:?}"))?;
        each(&f);
    }
    expect(f.tasks.values().all(|t| t.0 == Is::Dead), "all tasks end")?;
    expect(f.idle() == nr_cpus, "all CPUs end idle")
}

/// Checks what the metrics say against the events and against each other.
fn check(r: &Run, nr_cpus: usize) -> Result<(), String> {
    follow(r, nr_cpus, |_| ())?;
    let m = |metric| r.get(metric);
    let (runtime, busy) = (m(Metric::runtime_s), m(Metric::busy_s));
    expect(busy <= runtime * nr_cpus as f64 * (1.0 + 1e-9), "CPUs are busy at most all of the time")?;
    // the kernel's work of an event, some us, is on the task's clock when it is begun
    let begun = nr_cpus as f64 * 1e-4;
    expect(m(Metric::task_clock_s) <= busy + begun, "a CPU with a task is busy")?;
    expect(
        m(Metric::idle_while_waiting_s) <= runtime * nr_cpus as f64 - busy + 1e-9,
        "idle time is not busy time",
    )?;
    let split =
        [Metric::migrations_smt, Metric::migrations_llc, Metric::migrations_node, Metric::migrations_remote];
    expect(
        split.map(m).iter().sum::<f64>() == m(Metric::cpu_migrations),
        "migrations are split by distance",
    )?;
    let switches = m(Metric::context_switches_voluntary) + m(Metric::context_switches_involuntary);
    expect(switches == m(Metric::context_switches), "context switches are of one kind or the other")?;
    let migrations = r.events.iter().filter(|e| matches!(e, Event::Migrate { .. })).count() as f64;
    expect(m(Metric::cpu_migrations) <= migrations, "all migrations are seen")
}

/// Small machines, regular and, for the wakeup path of asymmetric ones, with some little CPUs.
fn machines() -> impl Strategy<Value = (String, bool)> {
    let shape = (1usize..=2, 1usize..=3, 1usize..=3, 1usize..=2);
    (shape.prop_map(|(n, l, c, t)| format!("{n}n{l}l{c}c{t}t")), prop::bool::weighted(0.2))
}

fn on((name, little): &(String, bool), w: Workload, profile: &str, seed: u64) -> Setup {
    let mut s = Setup::new(name, w).profile(profile).seed(seed);
    if *little {
        // whole packages, so that threads of a core are alike
        s.machine.cpus.iter_mut().filter(|c| c.llc == 0).for_each(|c| c.capacity = 446);
    }
    s
}

/// Tasks that compute, sleep, yield, and start others.
fn mixture() -> impl Strategy<Value = Workload> {
    let op = prop_oneof![
        4 => (1u64..4_000_000).prop_map(run),
        2 => (1u64..3_000_000).prop_map(sleep),
        1 => Just(Op::Yield),
    ];
    let programs = prop::collection::vec((prop::collection::vec(op, 1..6), 1u64..8), 1..4);
    (programs, 1u32..14).prop_map(|(programs, tasks)| {
        let n = programs.len() as u32;
        let mut main = vec![Op::MarkStart];
        main.extend((0..tasks).map(|i| spawn(1 + i % n)));
        main.extend([Op::WaitChildren, Op::MarkEnd]);
        let mut all = vec![program(&main)];
        all.extend(programs.into_iter().map(|(ops, times)| program(&ops.repeat(times as usize))));
        workload(0, all)
    })
}

/// Found by `mixtures_end_while_cpus_come_and_go`: before 6.5, the only CPU of a core that is online stays idle beside a
/// core with both, however many tasks wait there.
#[test]
fn a_core_with_one_cpu_online_gets_its_share_since_6_5() {
    let mut main = vec![Op::MarkStart];
    main.extend((0..7).map(|_| spawn(1)));
    main.extend([Op::WaitChildren, Op::MarkEnd]);
    let w = workload(0, vec![program(&main), program(&[run(3_527_817); 6])]);
    let ends = |profile| {
        let s = Setup::new("1n1l2c2t", w.clone()).profile(profile);
        let r = s.run_changed(&["18ms offline 1,3", "18ms online 1"]).unwrap();
        assert_eq!(r.outcome.checks.violations, [], "{profile}");
        r.get(Metric::runtime_s)
    };
    assert!(ends("linux-6.1") > 1.2 * ends("linux-6.5"));
}

/// Found likewise: since 6.6, a core that runs two tasks comes before a misfit. If it is the misfit's own, one of them is
/// taken after three attempts that fail; if it is a big one, nobody is taken, because a task alone on its CPU stays there.
#[test]
fn a_misfit_waits_while_a_core_runs_two_tasks() {
    let run_on = |machine: &str, seed, programs: &[&[Op]]| {
        let mut main = vec![Op::MarkStart];
        main.extend((0..11).map(|i| spawn(1 + i % programs.len() as u32)));
        main.extend([Op::WaitChildren, Op::MarkEnd]);
        let all = std::iter::once(program(&main)).chain(programs.iter().map(|ops| program(ops))).collect();
        on(&(machine.to_owned(), true), workload(0, all), "linux-6.12", seed).run()
    };
    let ops = [run(1_653_119), run(3_637_920), run(1_764_968), run(3_323_378)].repeat(3);
    let own = run_on("2n3l1c2t", 6_837_346_393_166_511_269, &[&ops]);
    assert_eq!(own.outcome.checks.violations, []);
    assert!(own.events.iter().any(|event| matches!(event, Event::Migrate { from: 0, to: 1, .. })));
    let ops = [run(2_696_418), run(2_056_265), run(2_352_871)].repeat(6);
    let (short, sleeper) = ([run(224_442); 2], [run(721_972), sleep(1_336_768)]);
    let other = run_on("1n3l1c2t", 12_000_996_143_450_429_006, &[&short, &sleeper, &ops]);
    assert_eq!(other.outcome.checks.violations, []);
}

/// The longest time for which a task waited while a CPU was idle.
fn longest_neglect(r: &Run, nr_cpus: usize) -> u64 {
    let mut since = None;
    let mut waiting: BTreeSet<i32> = BTreeSet::new();
    let mut longest = 0;
    follow(r, nr_cpus, |f| {
        let now_waiting: BTreeSet<i32> =
            f.tasks.iter().filter(|t| t.1.0 == Is::Waiting).map(|t| *t.0).collect();
        if let Some(since) = since {
            longest = longest.max(f.now - since);
        }
        // it counts as one neglect as long as one of the same tasks waits on
        waiting = if since.is_some() { &waiting & &now_waiting } else { now_waiting.clone() };
        if f.idle() == 0 || now_waiting.is_empty() {
            since = None;
        } else if since.is_none() || waiting.is_empty() {
            since = Some(f.now);
            waiting = now_waiting;
        }
    })
    .unwrap();
    longest
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hackbench_delivers_and_ends(
        machine in machines(),
        (groups, fds, loops, bytes) in (1u32..4, 1u32..5, 1u64..60, prop_oneof![Just(1u32), Just(100), Just(4096), 1u32..70_000]),
        (pipes, threads) in any::<(bool, bool)>(),
        task_group_depth in 0u32..5,
        profile in 0usize..Profile::ALL.len(),
        bias in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let options = format!(
            "-g {groups} -f {fds} -l {loops} -s {bytes} {} {}",
            if pipes { "--pipe" } else { "--sockets" },
            if threads { "-T" } else { "-P" },
        );
        let mut s = on(&machine, hackbench(&options), Profile::ALL[profile], seed).feature("WAKEUP_BIAS_PREV", bias);
        s.settings.task_group_depth = task_group_depth;
        let r = s.run();
        check(&r, s.machine.nr_cpus()).map_err(TestCaseError::fail)?;
        let tasks = r.events.iter().filter(|e| matches!(e, Event::Fork { .. })).count() as u32;
        prop_assert_eq!(tasks, 1 + groups * fds * 2);
        let messages = (r.get(Metric::messages_per_s) * r.get(Metric::runtime_s)).round() as u64;
        prop_assert_eq!(messages, u64::from(groups * fds * fds) * loops);
    }

    #[test]
    fn mixtures_end(machine in machines(), w in mixture(), profile in 0usize..Profile::ALL.len(), seed in any::<u64>()) {
        let s = on(&machine, w, Profile::ALL[profile], seed);
        check(&s.run(), s.machine.nr_cpus()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn mixtures_end_while_cpus_come_and_go(
        machine in machines(),
        w in mixture(),
        profile in 0usize..Profile::ALL.len(),
        changes in prop::collection::vec((0u32..60, 0usize..3, any::<[u8; 4]>()), 1..8),
        seed in any::<u64>(),
    ) {
        let s = on(&machine, w, Profile::ALL[profile], seed);
        let nr_cpus = s.machine.nr_cpus();
        // CPU 0 stays
        let change = |(ms, kind, cpus): &(u32, usize, [u8; 4])| {
            let cpus: Vec<String> = cpus.iter().map(|cpu| (usize::from(*cpu) % nr_cpus).max(nr_cpus.min(2) - 1).to_string()).collect();
            let cpus = cpus.join(",");
            match kind {
                0 => format!("{ms}ms offline {cpus}"),
                1 => format!("{ms}ms online {cpus}"),
                _ => format!("{ms}ms cpus 0,{cpus}"),
            }
        };
        let changes: Vec<String> = changes.iter().map(change).filter(|_| nr_cpus > 1).collect();
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        let r = s.run_changed(&changes).map_err(|error| TestCaseError::fail(format!("{changes:?}: {error}")))?;
        check(&r, nr_cpus).map_err(|what| TestCaseError::fail(format!("{changes:?}: {what}")))?;
        prop_assert_eq!(&r.outcome.checks.violations, &[], "{:?}", changes);
    }

    #[test]
    fn nobody_waits_long_beside_an_idle_cpu_of_the_same_cache(
        cores in 1usize..=8, w in mixture(), profile in 0usize..Profile::ALL.len(), seed in any::<u64>()
    ) {
        let s = Setup::new(&format!("{cores}c"), w).profile(Profile::ALL[profile]).seed(seed);
        let neglect = longest_neglect(&s.run(), cores);
        // an idle CPU balances each 1 ms for each CPU of the domain, in whole ticks of 4 ms, and is told by a tick
        prop_assert!(neglect <= (cores as u64).next_multiple_of(4) * MS + 8 * MS, "{} ns", neglect);
    }
}
