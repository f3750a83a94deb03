use super::*;
use crate::TaskGroup;
use proptest::prelude::*;

fn read(text: &str) -> Workload {
    from_text("f.json", text, Scale::FULL).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn refused(text: &str) -> String {
    from_text("f.json", text, Scale::FULL).map(|w| w.name).unwrap_err().to_string()
}

/// The ops of the first task, without loops and bookkeeping.
fn ops(text: &str) -> Vec<Op> {
    let noise = |op: &Op| {
        matches!(
            op,
            Op::RepeatUntilStopped { .. }
                | Op::End
                | Op::Origin
                | Op::EventStart
                | Op::EventEnd
                | Op::Run { ns: 200 }
        )
    };
    read(text).programs[1].iter().copied().filter(|op| !noise(op)).collect()
}

fn one(steps: &str) -> String {
    format!("{{ \"tasks\": {{ \"a\": {{ \"loop\": 1, {steps} }} }} }}")
}

#[test]
fn run_is_work_and_runtime_is_time() {
    let both = ops(&one("\"run\": 5, \"runtime\": 7, \"run1\": 9"));
    assert_eq!(both, [Op::Run { ns: 5000 }, Op::Spin { ns: 7000 }, Op::Run { ns: 9000 }]);
    let calibrated = "{\"global\": {\"calibration\": 300}, \"tasks\": {\"a\": {\"loop\": 1, \"run\": 1}}}";
    assert_eq!(ops(calibrated), [Op::Run { ns: 900 }], "three whole loops of 300 ns");
}

#[test]
fn resources_are_made_as_they_are_named() {
    let steps = "\"lock\": \"m\", \"wait\": {\"ref\": \"c\", \"mutex\": \"m\"}, \"unlock\": \"m\", \"lock1\": \"n\",
                 \"signal\": \"d\", \"broad\": \"c\", \"sync\": {\"ref\": \"d\", \"mutex\": \"n\"}, \"yield\": \"\"";
    let expected = [
        Op::Lock { mutex: 0 },
        Op::CondWait { cond: 0, mutex: 0 },
        Op::Unlock { mutex: 0 },
        Op::Lock { mutex: 1 },
        Op::Signal { cond: 1 },
        Op::Broadcast { cond: 0 },
        Op::Signal { cond: 1 },
        Op::CondWait { cond: 1, mutex: 1 },
        Op::Yield,
    ];
    assert_eq!(ops(&one(steps)), expected);
    let w = read(&one(steps));
    assert_eq!((w.shared.mutexes, w.shared.conds), (2, 2));
}

#[test]
fn an_empty_suspend_is_of_the_task_itself() {
    let inside = |op| vec![Op::Lock { mutex: 0 }, op, Op::Unlock { mutex: 0 }];
    let suspended = [inside(Op::CondWait { cond: 0, mutex: 0 }), inside(Op::Broadcast { cond: 0 })].concat();
    assert_eq!(ops(&one("\"suspend\": \"\", \"resume\": \"a\"")), suspended);
}

#[test]
fn loops_are_the_threads_and_the_phases() {
    let times = |text: &str| -> Vec<u64> {
        let w = read(text);
        let loops = w.programs[1].iter();
        loops
            .filter_map(|op| if let Op::RepeatUntilStopped { times } = op { Some(*times) } else { None })
            .collect()
    };
    assert_eq!(times(&one("\"run\": 1").replace(": 1,", ": 7,")), [u64::MAX, 7], "as rt-app 1.0");
    let endless = "{\"global\": {\"duration\": 2}, \"tasks\": {\"a\": {\"run\": 1}}}";
    assert_eq!(times(endless), [u64::MAX, 1]);
    let phases = "{\"tasks\": {\"a\": {\"loop\": 3, \"phases\": {\"p\": {\"loop\": 4, \"run\": 1}, \"q\": {\"sleep\": 1}}}}}";
    assert_eq!(times(phases), [3, 4, 1]);
    assert_eq!(times(&phases.replace("\"loop\": 4", "\"loop\": 0")), [3, u64::MAX, 1], "as with -1");
    assert_eq!(times(&endless.replace("\"run\"", "\"loop\": 0, \"run\"")), [u64::MAX, u64::MAX]);
    assert_eq!(times(&phases.replace("\"loop\": 3", "\"loop\": 0")), [0, 4, 1]);
    let half = from_text("f", phases, Scale(334_000)).unwrap();
    assert!(half.programs[1].contains(&Op::RepeatUntilStopped { times: 1 }), "of 3");
}

#[test]
fn a_unique_timer_is_each_instances_own() {
    let with = |name: &str| {
        let text = format!(
            "{{\"tasks\": {{\"a\": {{\"instance\": 3, \"loop\": 1, \"run\": 1,
             \"timer\": {{\"ref\": \"{name}\", \"period\": 9, \"mode\": \"absolute\"}} }} }} }}"
        );
        let w = read(&text);
        let timers = w.programs[1..].iter().flat_map(|p| p.iter());
        let timers: Vec<u32> = timers
            .filter_map(
                |op| if let Op::Timer { timer, relative: false, .. } = op { Some(*timer) } else { None },
            )
            .collect();
        let spawned = w.programs[0].iter().filter(|op| matches!(op, Op::Spawn { .. })).count();
        (timers, w.shared.timers, spawned)
    };
    assert_eq!(with("unique"), (vec![0, 1, 2], 3, 3));
    assert_eq!(with("tick"), (vec![0], 1, 3));
}

#[test]
fn a_barrier_waits_for_all_who_name_it() {
    let text = "{\"tasks\": {\"a\": {\"instance\": 3, \"loop\": 1, \"barrier\": \"b\"}, \"c\": {\"loop\": 1, \"barrier\": \"b\"}}}";
    assert_eq!(read(text).shared.barriers, [4]);
}

#[test]
fn priority_delay_instances_and_forks() {
    let text = "{\"tasks\": {\"a\": {\"loop\": 1, \"priority\": -5, \"delay\": 7, \"phases\": {\"p\": {\"fork\": \"b\"}}},
                             \"b\": {\"instance\": 0, \"loop\": 1, \"run\": 1}}}";
    let w = read(text);
    assert_eq!((w.attributes(1).nice, w.attributes(2).nice), (-5, 0));
    assert_eq!(w.programs[1][0], Op::Sleep { ns: 7000 });
    assert!(w.programs[1].contains(&Op::Spawn { program: 2, base: 0, process: false }));
    assert_eq!(
        w.programs[0].iter().filter(|op| matches!(op, Op::Spawn { .. })).count(),
        1,
        "b is only forked"
    );
}

#[test]
fn a_duration_stops_the_workload() {
    let w =
        from_text("f", "{\"global\": {\"duration\": 10}, \"tasks\": {\"a\": {\"run\": 1}}}", Scale(500_000))
            .unwrap();
    assert_eq!(w.programs[0][2..4], [Op::Sleep { ns: 5_000_000_000 }, Op::Stop]);
}

#[test]
fn what_is_refused_is_named_with_its_line() {
    for (bad, message) in [
        ("{", "f.json:1: '\"' was expected, not the end"),
        ("{}", "f.json:1: there is no 'tasks'"),
        ("{\n\"task\": {}}", "f.json:2: 'task' is not known (allowed: global, tasks, resources)"),
        ("{\"tasks\": {}}", "tasks has no thread"),
        (&one("\"util_min\": 5, \"run\": 1"), "tasks.a.util_min: utilization clamps are not simulated"),
        (&one("\"walk\": 5"), "tasks.a.walk is not known (steps are lock, unlock"),
        (&one("\"run\": -1"), "tasks.a.run is -1 (allowed: 0 to 2147483647)"),
        (&one("\"run\": \"5\""), "tasks.a.run is a string (allowed"),
        (&one("\"priority\": 20, \"run\": 1"), "tasks.a.priority is 20 (allowed: -20 to 19)"),
        (&one("\"policy\": \"SCHED_FIFO\", \"run\": -1"), "tasks.a.run is -1"),
        (
            &one("\"policy\": \"SCHED_DEADLINE\", \"run\": 1"),
            "tasks.a.policy: SCHED_DEADLINE reserves CPU time before all other classes",
        ),
        (&one("\"dl-runtime\": 5"), "tasks.a.dl-runtime: slices and reservations of a thread's own"),
        (&one("\"memrun0\": {}"), "tasks.a.memrun0: reads and chains of pointers are not simulated"),
        (&one("\"sem_wait\": \"s\""), "tasks.a.sem_wait: semaphores are not simulated"),
        (&one("\n\"cpus\": [], \"run\": 1"), "f.json:2: tasks.a.cpus has no CPU"),
        (&one("\"cpus\": [1024], \"run\": 1"), "tasks.a.cpus is 1024 (allowed: 0 to 1023)"),
        (&one("\"cpus\": 1, \"run\": 1"), "tasks.a.cpus is an integer, not an array of CPUs"),
        (&one("\"run\""), "tasks.a.run is null (allowed: 0 to 2147483647)"),
        (&one("\"taskgroup\": \"x\", \"run\": 1"), "tasks.a.taskgroup is \"x\" (allowed: a path"),
        (
            &one("\"instance\": 2, \"phases\": {\"p\": {\"taskgroup\": \"/x\", \"run\": 1}}"),
            "tasks.a.phases.p.taskgroup: a thread that changes its group is not simulated (allowed: of a file's only",
        ),
        (
            &one("\"taskgroup\": \"/x/y\", \"run\": 1"),
            "tasks.a.taskgroup: groups in groups are not simulated (allowed: /NAME)",
        ),
        (
            &one("\"instance\": 2, \"policy\": \"SCHED_FIFO\", \"run\": 1"),
            "tasks.a: SCHED_FIFO: real-time threads run before all others, and only the fair class is simulated (allowed",
        ),
        (
            "{\"global\": {\"io_device\": \"/dev/sda\"}, \"tasks\": {\"a\": {\"loop\": 1, \"iorun\": 5}}}",
            "tasks.a.iorun: writes to /dev/sda are not simulated (allowed: global.io_device",
        ),
        (&one("\"wait\": {\"ref\": \"c\"}"), "tasks.a.wait needs both ref and mutex"),
        (&one("\"wait\": \"c\""), "tasks.a.wait is a string, not an object"),
        (
            &one("\"timer\": {\"ref\": \"t\", \"perid\": 5}"),
            "tasks.a.timer.perid is not known (allowed: ref, period, mode)",
        ),
        (&one("\"instance\": 3"), "tasks.a has neither phases nor steps"),
        (&one("\"fork\": \"b\""), "fork: there is no task 'b'"),
        (&one("\"fork\": \"a\""), "tasks.a: it forks itself"),
        (
            &one("\"phases\": {\"p\": {\"priority\": 3}}"),
            "tasks.a.phases.p.priority: a thread keeps its priority",
        ),
        (&one("\"phases\": {\"p\": {\"run\": 3}}, \"run\": 1"), "tasks.a.run is not known (with phases,"),
        ("{\"global\": {\"pi_enabled\": true}}", "global.pi_enabled: priority inheritance is not simulated"),
        ("{\"global\": {\"default_policy\": \"SCHED_X\"}}", "global.default_policy: there is no such policy"),
        ("{\"global\": {\"calibration\": 0}}", "global.calibration is 0 (allowed: 1 to 1000000)"),
        ("{\"global\": {\"calibration\": \"GPU\"}}", "global.calibration is neither"),
        ("{\"global\": {\"colour\": 0}}", "global.colour is not known"),
        (
            "{\"tasks\": {\"a\": {\"instance\": 100000, \"loop\": 1, \"run\": 1}, \"b\": {\"loop\": 1, \"run\": 1}}}",
            "more than 100000 threads",
        ),
        ("{\"tasks\": {\"a\": {\"run\": 1}, \"a\": {\"run\": 1}}}", "tasks.a is there twice"),
    ] {
        let e = refused(bad);
        assert!(e.contains(message), "{bad}\n{e}\n{message}");
    }
}

#[test]
fn cpus_last_for_a_phase_and_come_back_to_those_of_the_task() {
    let text = "{\"tasks\": {\"a\": {\"loop\": 1, \"cpus\": [3, 2, 2], \"phases\": {
        \"p\": {\"cpus\": [0], \"run\": 1}, \"q\": {\"run\": 2}}}}}";
    let set = |set| Op::SetAffinity { set: Some(set) };
    assert_eq!(ops(text), [set(0), set(1), Op::Run { ns: 1000 }, set(0), Op::Run { ns: 2000 }]);
    assert_eq!(read(text).cpu_sets, [vec![2, 3], vec![0]].map(CpuChoice::These));
    assert_eq!(ops(&one("\"cpus\": [1], \"run\": 1")), [set(0), Op::Run { ns: 1000 }]);
}

#[test]
fn policies_of_the_fair_class_are_the_tasks() {
    for (name, policy) in
        [("SCHED_OTHER", Policy::Other), ("SCHED_BATCH", Policy::Batch), ("SCHED_IDLE", Policy::Idle)]
    {
        let own = one(&format!("\"policy\": \"{name}\", \"run\": 1"));
        let default = format!(
            "{{\"global\": {{\"default_policy\": \"{name}\"}}, \"tasks\": {{\"a\": {{\"loop\": 1, \"run\": 1}}}}}}"
        );
        for text in [own, default] {
            assert_eq!(read(&text).attributes(1).policy, policy, "{text}");
        }
    }
}

#[test]
fn class_and_group_of_a_phase_of_the_only_thread_have_no_effect() {
    let phase = "\"phases\": {\"p\": {\"taskgroup\": \"/x\", \"run\": 1}}";
    let w = read(&one(&format!("\"policy\": \"SCHED_FIFO\", \"priority\": 50, {phase}")));
    assert_eq!(
        w.notes,
        [
            "tasks.a.phases.p.taskgroup /x has no effect on the only thread",
            "tasks.a: SCHED_FIFO has no effect on the only thread"
        ]
    );
    assert_eq!(w.attributes(1), Attributes::default());
}

#[test]
fn a_task_group_is_that_of_all_threads_that_name_it() {
    let task = |name, group: &str| format!("\"{name}\": {{\"loop\": 1, {group} \"run\": 1}}");
    let group = |name: &str| format!("\"taskgroup\": \"{name}\",");
    let tasks = [task("a", &group("/x")), task("b", &group("/y")), task("c", &group("/x")), task("d", "")];
    let w = read(&format!("{{\"tasks\": {{{}}}}}", tasks.join(", ")));
    assert_eq!(w.groups, [TaskGroup::new("/x"), TaskGroup::new("/y")]);
    let groups = (1..=4).map(|program| w.attributes(program).group).collect::<Vec<_>>();
    assert_eq!(groups, [Some(0), Some(1), Some(0), None]);
}

#[test]
fn memory_and_the_null_device() {
    let text = "{\"global\": {\"mem_buffer_size\": 100}, \"tasks\": {\"a\": {\"loop\": 1, \"mem\": 250, \"iorun\": 250}}}";
    assert_eq!(ops(text), [Op::Memset { bytes: 250 }, Op::Syscall, Op::Syscall, Op::Syscall]);
    assert_eq!(read(text).private_bytes(1), PRIVATE_BYTES + 100, "the buffer");
    assert_eq!(read(&text.replace("250", "50")).private_bytes(1), PRIVATE_BYTES + 50);
}

#[test]
fn a_workload_without_an_end_runs_for_a_while() {
    let w = read("{\"tasks\": {\"a\": {\"run\": 1}}}");
    assert!(w.programs[0].contains(&Op::Sleep { ns: 10_000_000_000 }));
    assert_eq!(w.assumptions, ["tasks.a never ends, and there is no global.duration: 10 s are simulated"]);
    assert_eq!(read(&one("\"run\": 1")).assumptions, w.assumptions, "the loop is that of the phase");
    assert_eq!(read(&one("\"phases\": {\"p\": {\"run\": 1}}")).assumptions, [""; 0]);
}

#[test]
fn a_duration_of_0_is_none() {
    let with = |duration: &str| {
        read(&format!("{{\"global\": {{\"duration\": {duration}}}, \"tasks\": {{\"a\": {{\"run\": 1}}}}}}"))
    };
    let programs = |duration| with(duration).programs;
    assert_eq!(programs("0"), programs("-1"));
    assert_ne!(programs("0"), programs("1"));
}

#[test]
fn a_step_may_be_of_length_0_and_a_phase_without_steps() {
    assert_eq!(
        ops(&one("\"run\": 0, \"mem\": 0, \"iorun\": 0")),
        [Op::Run { ns: 1 }, Op::Memset { bytes: 0 }]
    );
    assert_eq!(ops(&one("\"phases\": {\"p\": {\"loop\": 3}}")), []);
}

#[test]
fn what_a_later_global_does_not_name_stays() {
    let first = "{\"global\": {\"duration\": 2, \"calibration\": 300}}";
    let second = "{\"global\": {\"calibration\": 400}, \"tasks\": {\"a\": {\"run\": 1}}}";
    let w = from_texts(&[("g.json", first), ("t.json", second)], Scale::FULL).unwrap();
    assert!(w.programs[0].contains(&Op::Sleep { ns: 2_000_000_000 }));
    assert!(w.programs[1].contains(&Op::Run { ns: 800 }), "two loops of 400 ns");
}

#[test]
fn what_workgen_completes_is_completed() {
    let inside = |op| vec![Op::Lock { mutex: 0 }, op, Op::Unlock { mutex: 0 }];
    let suspended = [inside(Op::CondWait { cond: 0, mutex: 0 }), vec![Op::Run { ns: 1000 }]].concat();
    assert_eq!(ops(&one("\"suspend\", \"run\": 1,")), suspended);
}

const OLD: [(&str, &str); 2] = [
    (
        "r.json",
        "{\"resources\": {\"m\": {\"type\": \"mutex\"}, \"w\": {\"type\": \"wait\"},
          \"b\": {\"type\": \"broadcast\", \"target\": \"w\"}},
          \"global\": {\"duration\": 1, \"frag\": 1}}",
    ),
    (
        "t.json",
        "{\"tasks\": {\"a\": {\"exec\": 50, \"period\": 100, \"deadline\": 100,
          \"lock_order\": [\"m\", \"w\", \"b\"],
          \"resources\": {\"m\": {\"duration\": 20}, \"w\": {\"access\": [\"n\"]}} }} }",
    ),
];

#[test]
fn files_of_the_old_grammar_are_one_workload() {
    let w = from_texts(&OLD, Scale::FULL).unwrap();
    assert_eq!(w.name, "rt-app r.json t.json");
    let expected = [
        Op::Lock { mutex: 0 },
        Op::Run { ns: 20_000 },
        Op::Unlock { mutex: 0 },
        Op::Lock { mutex: 1 },
        Op::CondWait { cond: 0, mutex: 1 },
        Op::Unlock { mutex: 1 },
        Op::Broadcast { cond: 0 },
        Op::Run { ns: 30_000 },
        Op::Timer { timer: 0, period_ns: 100_000, relative: false },
    ];
    let steps = w.programs[1].iter().copied().filter(|op| expected.contains(op));
    assert_eq!(steps.collect::<Vec<_>>(), expected);
}

#[test]
fn a_refusal_names_the_file_of_several() {
    let message =
        |files: &[(&str, &str)]| from_texts(files, Scale::FULL).map(|w| w.name).unwrap_err().to_string();
    assert_eq!(
        message(&OLD[1..]),
        "rt-app: t.json:2: tasks.a.lock_order: there is no resource 'm' (allowed: rt-app FILE..., with the file whose resources declare it)"
    );
    let typo = OLD[1].1.replace("duration", "durations");
    assert_eq!(
        message(&[OLD[0], ("t.json", &typo)]),
        "rt-app: t.json:3: tasks.a.resources.m.durations is not known (allowed: duration, access)"
    );
    assert!(
        message(&OLD[..1]).starts_with("rt-app: r.json:1: there is no 'tasks': this is a part of a workload")
    );
    assert!(message(&[OLD[0], ("t.json", "{\n?")]).starts_with("rt-app: t.json:2: "));
}

#[test]
fn forks_that_multiply_are_refused() {
    let task = |i: usize| {
        format!("\"t{i}\": {{\"loop\": 1000, \"phases\": {{\"p\": {{\"fork\": \"t{}\"}}}}}}", i + 1)
    };
    let tasks: Vec<String> = (0..8).map(task).collect();
    let text = format!("{{\"tasks\": {{ {}, \"t8\": {{\"loop\": 1, \"run\": 1}} }} }}", tasks.join(", "));
    assert!(refused(&text).contains("more than 100000 threads"));
    let endless = "{\"global\": {\"duration\": 1}, \"tasks\": {\"a\": {\"fork\": \"b\"}, \"b\": {\"loop\": 1, \"run\": 1}}}";
    assert!(refused(endless).contains("fork: it is in a loop without end"));
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let e = crate::parse("rt-app no/such.json", Scale::FULL).unwrap_err().to_string();
    assert!(e.starts_with("rt-app: no/such.json: "), "{e}");
    assert!(crate::parse("rt-app", Scale::FULL).unwrap_err().to_string().contains("allowed: rt-app FILE..."));
}

proptest! {
    #[test]
    fn no_file_is_too_much(
        keys in prop::collection::vec(("(run|sleep|lock|wait|timer|fork|barrier|loop|phases|instance|x)[0-9]?", 0i64..3), 0..6),
        inside in "[a-z{}\":, 0-9]{0,20}",
    ) {
        let steps: Vec<String> = keys.iter().map(|(key, n)| format!("\"{key}\": {n}")).collect();
        let _ = from_text("f", &one(&steps.join(", ")), Scale::FULL);
        let _ = from_text("f", &one(&inside), Scale::FULL);
    }
}
