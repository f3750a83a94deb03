use coreward_machine::Costs;
use coreward_workload::recorded::{Recorded, Step};
use coreward_workload::{Op, Role};

use super::*;
use crate::Recording;

mod far;
mod message;
mod speed;

/// Lines of ftrace: `AT CPU CURRENT[!] EVENT`, with `!` for an interrupt, times in us, and tasks `name:pid`.
fn ftrace(lines: &str) -> String {
    let mut text = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, cpu, current, event, ..] = words[..] else { panic!("{line}") };
        let (current, flags) = match current.strip_suffix('!') {
            Some(current) => (current, "d.h2."),
            None => (current, "d..2."),
        };
        let (comm, pid) = current.split_once(':').unwrap();
        let task = |word: &str, prefix: &str| {
            let (comm, pid) = word.split_once(':').unwrap();
            format!("{prefix}comm={comm} {prefix}pid={pid} {prefix}prio=120")
        };
        let fields = match (event, &words[4..]) {
            ("sched_switch", [state, next]) => {
                format!("{} prev_state={state} ==> {}", task(current, "prev_"), task(next, "next_"))
            }
            ("sched_process_fork", [child]) => {
                let (name, child) = child.split_once(':').unwrap();
                format!("comm={comm} pid={pid} child_comm={name} child_pid={child}")
            }
            ("sched_process_exec", _) => format!("filename=/x pid={pid} old_pid={pid}"),
            ("softirq_entry", [action]) => format!("vec=1 [action={action}]"),
            ("softirq_exit" | "hrtimer_expire_exit" | "hrtimer_expire_entry", _) => String::new(),
            (_, [woken]) => format!("{} target_cpu=000", task(woken, "")),
            _ => panic!("{line}"),
        };
        let seconds = at.parse::<u64>().unwrap();
        text += &format!("{comm}-{pid} [00{cpu}] {flags} 1.{seconds:06}: {event}: {fields}\n");
    }
    text
}

fn imported_with(text: &str, options: Options) -> Result<(Recorded, Report), ImportError> {
    let mut recording = Recording::of(text.as_bytes().to_vec()).unwrap();
    let mut import = Import::new(Options { to_ns: u64::MAX, ..options });
    while let Some(event) = recording.next_event().unwrap() {
        import.event(&event)?;
    }
    import.finish(&recording)
}

/// The costs of everything are 0, so that work is what the lines say.
fn free(shape: &str) -> Machine {
    let mut machine = Machine::load(shape).unwrap();
    for field in Costs::FIELDS.iter().filter(|field| field.min == 0) {
        machine.costs.set(field.name, 0).unwrap();
    }
    machine
}

fn imported(lines: &str) -> (Recorded, Report) {
    let options = Options { machine: Some(free("2c")), ..Options::default() };
    imported_with(&ftrace(lines), options).unwrap()
}

/// The steps of the task of that name, in us.
fn steps(recorded: &Recorded, name: &str) -> Vec<Step> {
    let task = recorded
        .tasks
        .iter()
        .find(|task| task.name == name)
        .unwrap_or_else(|| panic!("no {name}: {recorded:?}"));
    let us = |step: &Step| match *step {
        Step::Run(ns) => Step::Run(ns / 1000),
        Step::Sleep(ns) => Step::Sleep(ns / 1000),
        Step::Device(ns) => Step::Device(ns / 1000),
        Step::Until(ns) => Step::Until(ns / 1000),
        other => other,
    };
    task.steps.iter().map(us).collect()
}

/// A client asks a server on another CPU, which answers; then it thinks on a timer. A third task preempts the server.
const ASKS: &str = "
    000 0 i:0 sched_switch R client:10
    100 0 client:10 sched_waking server:11
    120 1 i:0 sched_switch R server:11
    150 0 client:10 sched_switch S i:0
    200 1 server:11 sched_switch R other:12
    300 1 other:12 sched_switch S server:11
    350 1 server:11 sched_waking client:10
    360 0 i:0 sched_switch R client:10
    370 1 server:11 sched_switch S i:0
    400 0 client:10 sched_switch S i:0
    900 0 i:0! sched_waking client:10
    920 0 i:0 sched_switch R client:10
    930 0 client:10 sched_switch S i:0
";

#[test]
fn a_task_is_what_it_does_between_its_waits() {
    let (recorded, report) = imported(ASKS);
    use Step::*;
    let index = |name: &str| recorded.tasks.iter().position(|task| task.name == name).unwrap() as u32;
    let (client, server) = (index("client-0"), index("server-0"));
    // 100 us until it wakes the server, 50 more until it waits; the wait for the CPU is in no step
    assert_eq!(
        steps(&recorded, "client-0"),
        [Run(100), Wake(server), Run(50), Await(server), Run(40), Sleep(500), Run(10)]
    );
    // being preempted from 200 to 300 is nothing that it did
    assert_eq!(steps(&recorded, "server-0"), [Await(client), Run(130), Wake(client), Run(20)]);
    assert_eq!(steps(&recorded, "other-0"), [Run(100)]);
    assert_eq!(report.waits, Causes { task: 2, interrupt: 1, ..Causes::default() });
    assert_eq!(report.switches, 6);
    let of = |name: &str| report.classes.iter().find(|class| class.name == name).unwrap().clone();
    assert!((of("client").blocked_s - 700e-6).abs() < 1e-9 && (of("client").queued_s - 30e-6).abs() < 1e-9);
    assert_eq!(of("server").explained_pct, 100.0);
}

#[test]
fn the_workload_can_be_run_and_named() {
    let (recorded, _) = imported(ASKS);
    let workload = recorded.workload("asks.cww").unwrap();
    assert_eq!(workload.programs.len(), 4);
    assert!(workload.roles.contains(&Role::One("client-0".into())));
    assert!(
        workload.programs[1..].iter().any(|program| program.iter().any(|op| matches!(op, Op::Down { .. })))
    );
}

#[test]
fn who_wakes_is_told_from_who_is_interrupted() {
    let woken = |lines: &str| {
        imported(&format!("000 0 i:0 sched_switch R a:1\n 010 1 b:2 sched_switch S i:0\n{lines}")).1.waits
    };
    assert_eq!(woken("100 0 a:1 sched_waking b:2").task, 1);
    assert_eq!(woken("100 0 a:1! sched_waking b:2").interrupt, 1);
    assert_eq!(woken("100 1 i:0 sched_waking b:2").interrupt, 1);
    assert_eq!(woken("100 0 a:1! softirq_entry NET_RX\n 101 0 a:1! sched_waking b:2").network, 1);
    assert_eq!(woken("100 0 a:1! softirq_entry BLOCK\n 101 0 a:1! sched_waking b:2").block, 1);
    assert_eq!(woken("100 0 a:1! hrtimer_expire_entry x\n 101 0 a:1! sched_waking b:2").timer, 1);
    let left = "100 0 a:1! softirq_entry NET_RX\n 101 0 a:1! softirq_exit x\n 102 0 a:1 sched_waking b:2";
    assert_eq!(woken(left).task, 1);
    assert_eq!(woken("100 0 migration/0:9 sched_waking b:2").left_out, 1);
    assert_eq!(woken("100 1 i:0 sched_switch R b:2").unknown, 1);
}

#[test]
fn interrupts_are_no_work() {
    let lines = "
        000 0 i:0 sched_switch R a:1
        100 0 a:1! softirq_entry NET_RX
        160 0 a:1! softirq_exit x
        200 0 a:1 sched_switch S i:0";
    assert_eq!(steps(&imported(lines).0, "a-0"), [Step::Run(140)]);
}

#[test]
fn a_child_is_started_by_its_parent() {
    let lines = "
        000 0 i:0 sched_switch R sh:1
        050 0 sh:1 sched_process_fork sh:2
        060 0 sh:1 sched_wakeup_new sh:2
        100 0 sh:1 sched_switch S sh:2
        110 0 cc:2 sched_process_exec x
        200 0 cc:2 sched_waking sh:1
        210 0 cc:2 sched_switch X sh:1
        250 0 sh:1 sched_switch S i:0";
    let (recorded, report) = imported(lines);
    use Step::*;
    assert_eq!(steps(&recorded, "sh-0"), [Run(50), Start(1), Run(50), Await(1), Run(40)]);
    assert_eq!(steps(&recorded, "cc-0"), [Run(100), Wake(0), Run(10)]);
    assert_eq!(report.classes.len(), 2);
    // without the fork, the first wakeup tells who started it
    let lines: Vec<&str> = lines.lines().filter(|line| !line.contains("process_fork")).collect();
    assert_eq!(steps(&imported(&lines.join("\n")).0, "sh-0")[1], Start(1));
}

#[test]
fn a_task_that_is_woken_while_awake_waits_there_all_the_same() {
    let lines = "
        000 0 i:0 sched_switch R a:1
        000 1 i:0 sched_switch R b:2
        100 0 a:1 sched_waking b:2
        150 1 b:2 sched_switch S i:0
        200 0 a:1 sched_switch S i:0";
    let (recorded, report) = imported(lines);
    assert_eq!(steps(&recorded, "b-0"), [Step::Run(100), Step::Await(0), Step::Run(50)]);
    assert_eq!(report.woken_awake, 1);
}

#[test]
fn tasks_that_were_there_before_begin_as_they_were() {
    let lines = "
        000 0 runs:1 print:9 x:1
        100 0 runs:1 sched_switch S queued:2
        200 0 queued:2 sched_waking sleeps:3
        300 0 queued:2! sched_waking timer:4
        400 0 queued:2 sched_switch S i:0";
    let lines = lines.replace("print:9", "sched_migrate_task");
    let (recorded, report) = imported(&lines);
    use Step::*;
    assert_eq!(steps(&recorded, "runs-0"), [Run(100)]);
    assert_eq!(steps(&recorded, "queued-0")[0], Run(100));
    assert!(matches!(steps(&recorded, "sleeps-0")[..], [Await(_)]));
    assert_eq!(steps(&recorded, "timer-0"), [Until(300)]);
    assert!(
        report.lacks.iter().any(|lack| lack.starts_with("4 tasks were there before")),
        "{:?}",
        report.lacks
    );
}

#[test]
fn tracing_is_left_out_and_its_child_is_not() {
    let lines = "
        000 0 i:0 sched_switch R trace-cmd:1
        050 0 trace-cmd:1 sched_process_fork trace-cmd:2
        060 0 trace-cmd:1 sched_wakeup_new trace-cmd:2
        100 0 trace-cmd:1 sched_switch S trace-cmd:2
        200 0 cc:2 sched_process_exec x
        300 0 cc:2 sched_switch S i:0
        400 0 migration/0:9 sched_waking cc:2";
    let (recorded, report) = imported(lines);
    assert_eq!(recorded.tasks.len(), 1);
    assert_eq!(steps(&recorded, "cc-0"), [Step::Until(200), Step::Run(100), Step::Device(100)]);
    let why: Vec<_> = report.left_out.iter().map(|left| (left.name.as_str(), left.why)).collect();
    assert_eq!(why, [("migration/*", MOVES), ("trace-cmd", RECORDS)]);
}

#[test]
fn tasks_are_chosen_by_name() {
    let names = |only: &[&str], without: &[&str]| {
        let [only, without] =
            [only, without].map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let options = Options { machine: Some(free("2c")), only, without, ..Options::default() };
        let recorded = imported_with(&ftrace(ASKS), options).map(|(recorded, _)| recorded.tasks);
        recorded.map(|tasks| tasks.into_iter().map(|task| task.name).collect::<Vec<_>>())
    };
    assert_eq!(names(&["cl*", "other"], &[]).unwrap(), ["client-0", "other-0"]);
    assert_eq!(names(&[], &["client"]).unwrap(), ["server-0", "other-0"]);
    assert_eq!(names(&["nobody"], &[]), Err(ImportError::Nothing("all are left out")));
}

#[test]
fn a_name_that_no_task_has_is_said() {
    let lacks = |without: &str| {
        let without = vec![without.to_owned()];
        let options = Options { machine: Some(free("2c")), without, ..Options::default() };
        imported_with(&ftrace(ASKS), options).unwrap().1.lacks
    };
    let said = "it has no task of the name that --without says: clinet";
    assert!(lacks("clinet").iter().any(|lack| lack == said), "{:?}", lacks("clinet"));
    assert!(lacks("client").iter().chain(&lacks("cli*")).all(|lack| !lack.contains("--without")));
}

#[test]
fn a_task_that_takes_a_chosen_name_is_imported_from_then_on() {
    let lines = "
        000 0 i:0 sched_switch R sh:1
        100 0 sh:1 sched_switch S i:0
        150 0 i:0! sched_waking sh:1
        200 0 i:0 sched_switch R worker:1
        300 0 worker:1 sched_switch S i:0";
    let options = Options { machine: Some(free("2c")), only: vec!["worker".into()], ..Options::default() };
    let (recorded, _) = imported_with(&ftrace(lines), options).unwrap();
    assert_eq!(steps(&recorded, "worker-0"), [Step::Until(200), Step::Run(100)]);
}

#[test]
fn a_part_of_a_recording_is_a_recording() {
    let options = Options { machine: Some(free("2c")), ..Options::default() };
    let text = ftrace(ASKS);
    let part = |from_us: u64, to_us: u64| {
        let mut import =
            Import::new(Options { from_ns: from_us * 1000, to_ns: to_us * 1000, ..options.clone() });
        let mut recording = Recording::of(text.clone().into_bytes()).unwrap();
        while let Some(event) = recording.next_event().unwrap() {
            if !import.event(&event).unwrap() {
                break;
            }
        }
        import.finish(&recording).unwrap()
    };
    let (recorded, report) = part(300, 700);
    assert_eq!(report.duration_s, 100e-6);
    assert!(matches!(steps(&recorded, "server-0")[..], [Step::Run(50), Step::Wake(_), Step::Run(20)]));
}

#[test]
fn what_a_recording_lacks_is_said() {
    let said = |text: &str, what: &str| {
        let (recorded, report) = imported_with(text, Options::default()).unwrap();
        let all = [&report.lacks[..], &report.faults[..]].concat();
        assert_eq!(recorded.assumptions, all);
        assert!(all.iter().any(|lack| lack.contains(what)), "{what}: {all:?}");
    };
    let text = ftrace(ASKS);
    said(&text, "the machine of the recording was not given");
    said(&text, "which process 3 tasks belong to");
    let flagless = text.replace(" d..2.", "");
    said(&flagless, "does not say what happened in interrupts");
    let handlers = format!("{flagless}x-1 [000] 1.000960: softirq_entry: vec=1 [action=TIMER]\n");
    let lacks = imported_with(&handlers, Options::default()).unwrap().1.lacks;
    assert!(!lacks.iter().any(|lack| lack.contains("in interrupts")), "{lacks:?}");
    said(&text.replace("sched_waking", "sched_wakeup"), "but no sched_waking");
    said(&text.replace("sched_waking", "other"), "it has no wakeups");
    said(
        &text.replace("prev_prio=120", "prev_prio=49").replace("next_prio=120", "next_prio=49"),
        "real-time priority",
    );
    said(&format!("{text}CPU:1 [LOST 7 EVENTS]\n"), "lost events in 1 places (7 events");
    said(
        &format!("{text}x-1 [000] d..2. 1.000960: sched_switch: x:1 [120] S ==> y:2 [120]\n"),
        "1 switches are away",
    );
    said(&format!("{text}what?\n"), "1 lines were not understood, the first one is line 14");
    let lines: Vec<&str> = text.lines().collect();
    said(&[&lines[1..2], &lines[..1], &lines[2..]].concat().join("\n"), "1 events stood after later ones");
}

#[test]
fn limits_are_kept() {
    let machine = || Options { machine: Some(free("1c")), ..Options::default() };
    assert_eq!(imported_with(&ftrace(ASKS), machine()).unwrap_err(), ImportError::Cpu { cpu: 1, last: 0 });
    let far = "a-1 [9999] d..2. 1.0: sched_switch: a:1 [120] S ==> b:2 [120]\n";
    assert!(
        matches!(imported_with(far, Options::default()), Err(ImportError::Large(what)) if what == "4096 CPUs")
    );
    assert_eq!(
        imported_with("", Options::default()),
        Err(ImportError::Nothing("the recording has no scheduling events"))
    );
    assert_eq!(
        imported_with(&ftrace(ASKS).replace("sched_switch", "other"), Options::default()),
        Err(ImportError::Nothing("the recording has no sched_switch, so nobody is seen to run"))
    );
    let late = Options { from_ns: 1 << 60, machine: Some(free("2c")), ..Options::default() };
    assert_eq!(
        imported_with(&ftrace(ASKS), late),
        Err(ImportError::Nothing("no event is between --from and --to"))
    );
}

/// Events of one CPU: us, the current task, and what happened.
fn import_events(events: &[(u64, i32, What)]) -> (Recorded, Report) {
    import_events_with(events, Options { machine: Some(free("2c")), ..Options::default() })
}

fn import_events_with(events: &[(u64, i32, What)], options: Options) -> (Recorded, Report) {
    let mut import = Import::new(Options { to_ns: u64::MAX, ..options });
    for (us, pid, what) in events {
        let comm = Comm::new(format!("t{pid}").as_bytes());
        let event = Event {
            at: us * 1000,
            cpu: 0,
            pid: *pid,
            tgid: Some(*pid),
            comm,
            in_interrupt: Some(false),
            what: *what,
        };
        import.event(&event).unwrap();
    }
    import.finish(&Recording::of(Vec::new()).unwrap()).unwrap()
}

fn task(pid: i32) -> Task {
    Task { pid, comm: Comm::new(format!("t{pid}").as_bytes()), prio: 120 }
}

/// The first task blocks on something, and the second one runs.
fn blocks(us: u64, pid: i32, channel: Channel, next: i32) -> [(u64, i32, What); 2] {
    let switch = What::Switch { prev: task(pid), leaving: Leaving::Blocked, next: task(next) };
    [(us, pid, What::WaitsOn { channel }), (us, pid, switch)]
}

fn wakes(us: u64, pid: i32, woken: i32) -> (u64, i32, What) {
    (us, pid, What::Waking { task: task(woken) })
}

#[test]
fn a_queue_is_a_channel_and_a_broadcast_is_not() {
    use Step::*;
    // workers 2 and 3 sleep on futex `work`, and task 1 gives them something `apart` us apart
    let recorded = |apart: u64| {
        let work = Channel::Futex(9);
        let mut events: Vec<_> = blocks(100, 2, work, 3).into();
        events.extend(blocks(200, 3, work, 1));
        events.extend([wakes(300, 1, 3), wakes(300 + apart, 1, 2)]);
        events.extend(blocks(400, 1, Channel::Poll, 2));
        events.push(wakes(450, 2, 1));
        events.extend(blocks(500, 2, Channel::Time, 3));
        import_events(&events)
    };
    let (queue, report) = recorded(50);
    assert_eq!(report.channels, [2, 1], "the futex, and what task 1 polls");
    // tasks 2, 1 and 3 run 50 us, 50 us and 200 us after their wakeups; task 1 does not run again
    assert_eq!(report.wakeup_latency_us, [50.0, 200.0]);
    assert_eq!(steps(&queue, "t1-0"), [Run(100), Post(0), Run(50), Post(0), Run(50), Take(1)]);
    assert_eq!(steps(&queue, "t2-0"), [Take(0), Run(50), Post(1), Run(50)]);
    assert!(steps(&queue, "t3-0").contains(&Take(0)));
    let (barrier, report) = recorded(1);
    assert_eq!(report.channels, [1, 0]);
    let [t1, t3] =
        ["t1", "t3"].map(|name| barrier.tasks.iter().position(|t| t.name.starts_with(name)).unwrap() as u32);
    assert!(steps(&barrier, "t1-0").contains(&Wake(t3)));
    assert!(steps(&barrier, "t3-0").contains(&Await(t1)));
}

#[test]
fn an_answer_is_told_from_another_wakeup() {
    use Step::*;
    let (queue, own) = (Channel::PipeData(1), |pid: i32| Channel::PipeData(pid as u32));
    // clients 10 and 11 ask worker 2 in turn, which answers each; it goes on with `other` for the one that is not asked
    // at the end, task 12 wakes the worker `alone` times, and awaits nothing of it
    let recorded_with = |exchanges: u64, answered: fn(i32) -> i32, alone: u64| {
        let mut events: Vec<_> = blocks(0, 2, queue, 10).into();
        for (at, client, next) in
            (0..exchanges).map(|i| (1000 * (i + 1), 10 + i as i32 % 2, 11 - i as i32 % 2))
        {
            events.push(wakes(at, client, 2));
            events.extend(blocks(at + 100, client, own(client), 2));
            events.push(wakes(at + 300, 2, answered(client)));
            events.extend(blocks(at + 400, 2, queue, next));
        }
        for at in (0..alone).map(|i| 1000 * (exchanges + 1 + i)) {
            let preempted = What::Switch { prev: task(10), leaving: Leaving::Runnable, next: task(12) };
            events.extend([(at, 10, preempted), (at + 10, 12, What::Waking { task: task(2) })]);
            events.extend(blocks(at + 20, 12, Channel::Time, 2));
            events.extend(blocks(at + 30, 2, queue, 10));
        }
        import_events(&events)
    };
    let recorded = |exchanges, answered| recorded_with(exchanges, answered, 0);
    let (served, report) = recorded(20, |client| client);
    let of = |recorded: &Recorded, name: &str| {
        let task = recorded.tasks.iter().find(|task| task.name == name).unwrap().clone();
        (steps(recorded, name), task.answers)
    };
    let (worker, answers) = of(&served, "t2-0");
    assert_eq!((&worker[..4], answers), (&[Request(0), Run(200), Answer, Run(100)][..], None));
    let (client, answers) = of(&served, "t10-0");
    assert_eq!(report.answers, 20);
    assert!(client.contains(&Post(0)) && client.contains(&Take(answers.unwrap())), "{client:?}");
    assert_ne!(of(&served, "t11-0").1, answers);
    assert!(served.workload("served").is_ok());
    // a few requests that ask for no answer get none
    for (alone, answers) in [(1, 20), (2, 0)] {
        let (served, report) = recorded_with(20, |client| client, alone);
        assert_eq!((report.answers, of(&served, "t12-0").1), (answers, None), "{alone}");
        assert!(served.workload("served").is_ok());
    }
    // who wakes the other client answers nobody, and of fewer exchanges one can't tell
    for (exchanges, answered) in [(20, (|client| 21 - client) as fn(i32) -> i32), (19, |client| client)] {
        let (passed, report) = recorded(exchanges, answered);
        assert_eq!((report.answers, of(&passed, "t10-0").1), (0, None), "{exchanges}");
        assert!(of(&passed, "t2-0").0.iter().all(|step| !matches!(step, Request(_) | Answer)), "{exchanges}");
    }
}

#[test]
fn a_wakeup_just_before_the_switch_ends_the_wait() {
    use Step::*;
    let away =
        |us, pid, leaving, next| (us, pid, What::Switch { prev: task(pid), leaving, next: task(next) });
    // task 2 is dequeued when task 1, on another CPU, wakes it; its switch follows
    let waking = |us| (us, 1, What::Waking { task: task(2) });
    let of = |leaving| {
        let events = [
            away(0, 1, Leaving::Blocked, 2),
            waking(100),
            away(102, 2, leaving, 0),
            away(120, 0, Leaving::Runnable, 2),
            away(220, 2, Leaving::Blocked, 0),
        ];
        import_events(&events)
    };
    let (recorded, report) = of(Leaving::Blocked);
    assert_eq!(steps(&recorded, "t2-0"), [Run(100), Await(0), Run(102)]);
    assert_eq!((report.waits.task, report.waits.unknown), (1, 0));
    assert_eq!(report.wakeup_latency_us, [18.0, 18.0]);
    // it was preempted: that wakeup came for nothing
    let (_, report) = of(Leaving::Runnable);
    assert_eq!((report.waits.all(), report.wakeup_latency_us), (0, [0.0, 0.0]));
}

#[test]
fn affinity_is_imported_and_inherited() {
    let allowed = |us, pid, cpus| (us, -1, What::Allowed { pid, cpus: [cpus, 0, 0, 0, 0, 0, 0, 0] });
    let fork = |us, parent, child| (us, parent, What::Fork { parent, child, comm: Comm::new(b"t9") });
    let mut events = vec![allowed(0, 1, 2), allowed(0, 2, 3), allowed(0, 3, 0)];
    events.extend([fork(10, 1, 8), fork(20, 2, 9)]);
    events.extend(blocks(100, 1, Channel::Time, 2));
    events.extend(blocks(200, 2, Channel::Time, 3));
    events.extend(blocks(300, 3, Channel::Time, 0));
    let (recorded, _) = import_events(&events);
    let of = |name: &str| recorded.tasks.iter().find(|task| task.name == name).unwrap().cpus.clone();
    assert_eq!([of("t1-0"), of("t9-0")], [vec![1], vec![1]]);
    assert_eq!([of("t2-0").len(), of("t9-1").len()], [0, 0], "all of the machine's are no restriction");
    assert_eq!(of("t3-0").len(), 0, "none that is online is none, too");
    let (free, _) = import_events_with(&events, Options { any_cpu: true, ..Options::default() });
    assert!(free.tasks.iter().all(|task| task.cpus.is_empty()));
}

#[test]
fn what_a_task_changes_while_it_runs_is_a_step() {
    let allowed = |us, pid, cpus| (us, -1, What::Allowed { pid, cpus: [cpus, 0, 0, 0, 0, 0, 0, 0] });
    let grouped = |us, pid, group| (us, -1, What::Grouped { pid, group });
    let with = |pid, prio| Task { prio, ..task(pid) };
    let switch = |us, prev: Task, leaving, next: Task| (us, prev.pid, What::Switch { prev, leaving, next });
    let events = [
        // it begins with these
        switch(0, task(2), Leaving::Runnable, with(1, 125)),
        allowed(0, 1, 1),
        grouped(0, 1, Some(9)),
        // it has another nice value, without having slept, and goes to other CPUs and another group when it runs again
        switch(100, with(1, 110), Leaving::Runnable, task(2)),
        switch(150, task(2), Leaving::Runnable, with(1, 110)),
        allowed(150, 1, 2),
        grouped(150, 1, Some(4)),
        switch(190, with(1, 110), Leaving::Runnable, task(2)),
        switch(200, task(2), Leaving::Runnable, with(1, 110)),
        allowed(200, 1, 3),
        grouped(200, 1, None),
        switch(250, with(1, 110), Leaving::Runnable, task(2)),
    ];
    let (recorded, report) = import_events(&events);
    use Step::*;
    let wanted =
        [Run(100), Nice(-10), Allow(Some(0)), Group(Some(1)), Run(40), Allow(None), Group(None), Run(50)];
    let steps: Vec<Step> = steps(&recorded, "t1-0");
    assert_eq!(steps, wanted);
    let t = recorded.tasks.iter().find(|task| task.name == "t1-0").unwrap();
    assert_eq!((t.nice, &t.cpus, t.group), (5, &vec![0], Some(0)));
    assert_eq!(recorded.cpu_sets, [vec![1]]);
    assert_eq!(report.groups, ["/group-9", "/group-4"]);
    let (free, _) = import_events_with(&events, Options { any_cpu: true, ..Options::default() });
    assert!(free.tasks.iter().flat_map(|task| &task.steps).all(|step| !matches!(step, Allow(_))));
}

mod any {
    use super::*;
    use crate::event::Handler;
    use coreward_engine::{NoTrace, Settings, Simulation};
    use coreward_machine::{DomainOptions, Topology};
    use coreward_policy::{PolicySettings, Profile};
    use coreward_workload::Scale;
    use proptest::prelude::*;

    fn task() -> impl Strategy<Value = Task> {
        (0..6i32, 0..4usize).prop_map(|(pid, name)| {
            let comm = Comm::new([&b"a"[..], b"perf", b"migration/0", b"trace-cmd"][name]);
            Task { pid, comm, prio: [120, 99, 139][pid as usize % 3] }
        })
    }

    fn what() -> impl Strategy<Value = What> {
        let leaving = prop_oneof![Just(Leaving::Runnable), Just(Leaving::Blocked), Just(Leaving::Dead)];
        prop_oneof![
            4 => (task(), leaving, task()).prop_map(|(prev, leaving, next)| What::Switch { prev, leaving, next }),
            4 => task().prop_map(|task| What::Waking { task }),
            1 => task().prop_map(|task| What::Wakeup { task }),
            1 => task().prop_map(|task| What::WakeupNew { task }),
            1 => (0..6i32, 0..6i32).prop_map(|(parent, child)| What::Fork { parent, child, comm: Comm::default() }),
            1 => (0..6i32).prop_map(|pid| What::Exec { pid }),
            1 => (0..6i32, prop::option::of(0..3u32)).prop_map(|(pid, group)| What::Grouped { pid, group }),
            1 => Just(What::HandlerEntry(Handler::Timer)),
            1 => Just(What::HandlerExit),
            3 => prop_oneof![(0..3u32).prop_map(Channel::Futex), Just(Channel::Poll), Just(Channel::Time)]
                .prop_map(|channel| What::WaitsOn { channel }),
            2 => (0..6i32, 0..4u64).prop_map(|(pid, cpus)| What::Allowed { pid, cpus: [cpus, 0, 0, 0, 0, 0, 0, 0] }),
            1 => Just(What::Lost { events: 1 }),
        ]
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let one =
            (0..3u32, task(), prop::option::of(0..3i32), prop::option::of(any::<bool>()), 0..9000u64, what());
        prop::collection::vec(one, 1..60).prop_map(|all| {
            let mut at = 5_000_000_000;
            let event = |(cpu, current, tgid, in_interrupt, after, what): (_, Task, _, _, u64, _)| {
                at += after;
                Event { at, cpu, pid: current.pid, tgid, comm: current.comm, in_interrupt, what }
            };
            all.into_iter().map(event).collect()
        })
    }

    proptest! {
        /// However little sense a recording makes, what is imported of it can be read back, and runs to its end.
        #[test]
        fn whatever_is_imported_runs_to_its_end(events in events(), open_loop: bool) {
            let mut import = Import::new(Options { open_loop, to_ns: u64::MAX, ..Options::default() });
            for event in &events {
                import.event(event).unwrap();
            }
            let nothing = Recording::of(Vec::new()).unwrap();
            let Ok((recorded, report)) = import.finish(&nothing) else { return Ok(()) };
            prop_assert_eq!(&Recorded::from_json(&recorded.to_json()).unwrap(), &recorded);
            let waits = |step: &&Step| matches!(step, Step::Await(_) | Step::Take(_) | Step::Request(_));
            let awaited = recorded.tasks.iter().flat_map(|task| &task.steps).filter(waits).count() as u64;
            prop_assert!(awaited <= report.waits.task + report.woken_awake);
            let machine = Machine::load("2c").unwrap();
            let topology = Topology::build(&machine, &DomainOptions::default()).unwrap();
            let workload = recorded.workload("any.cww").unwrap();
            let policy = PolicySettings::new(Profile::DEFAULT);
            let settings = Settings { policy, seed: 1, task_group_depth: 0, limit_ns: 1_000_000_000 };
            let synthetic = |words| recorded.synthetic("any.cww", words, Scale(50_000));
            let larger = synthetic("--time 0.001 --tasks a=3 --work a=0.5");
            let synthetic = larger.or_else(|_| synthetic("--time 0.001")).unwrap();
            for workload in [workload, synthetic] {
                let mut trace = NoTrace;
                let run = Simulation::new(&machine, &topology, &workload, &settings, &mut trace).unwrap().run();
                prop_assert!(run.is_ok(), "{:?}", run.err());
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), text in "(a-1 \\[00[0-3]\\] [d.h]{0,5} [0-9]{1,3}\\.[0-9]{1,9}: (sched_(switch|waking|process_fork): )?[a-z0-9_=:>\\[\\] -]{0,90}\n){0,6}") {
            for bytes in [bytes, text.into_bytes()] {
                let Ok(mut recording) = Recording::of(bytes) else { continue };
                let mut import = Import::new(Options { to_ns: u64::MAX, ..Options::default() });
                while let Ok(Some(event)) = recording.next_event() {
                    if import.event(&event).is_err() {
                        break;
                    }
                }
                let _ = import.finish(&recording);
            }
        }
    }
}
