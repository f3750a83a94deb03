//! What a Perfetto trace of a run holds: names, priorities, decisions, arrows and counters.
//!
//! The fields are read by their numbers in Perfetto's `protos/perfetto/trace`.

mod common;

use std::collections::BTreeMap;
use std::fs;

use common::{directory, stdout};

/// A field of a message: its number, and its bytes (a number as eight, the lowest first).
type Field = (u32, Vec<u8>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let end = 1 + bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let (value, rest) = bytes.split_at(end);
    *bytes = rest;
    value.iter().rev().fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f))
}

fn fields(mut message: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let value = match tag & 7 {
            0 => varint(&mut message).to_le_bytes().to_vec(),
            wire => {
                let length = if wire == 1 { 8 } else { varint(&mut message) as usize };
                let (value, rest) = message.split_at(length);
                message = rest;
                value.to_vec()
            }
        };
        fields.push(((tag >> 3) as u32, value));
    }
    fields
}

/// A message whose fields are looked up by number.
#[derive(Clone, Debug, Default)]
struct Message(BTreeMap<u32, Vec<Vec<u8>>>);

impl Message {
    fn new(bytes: &[u8]) -> Message {
        let mut message = Message::default();
        for (number, value) in fields(bytes) {
            message.0.entry(number).or_default().push(value);
        }
        message
    }

    fn all(&self, number: u32) -> Vec<Message> {
        self.0.get(&number).into_iter().flatten().map(|bytes| Message::new(bytes)).collect()
    }

    fn has(&self, number: u32) -> bool {
        self.0.contains_key(&number)
    }

    fn text(&self, number: u32) -> String {
        String::from_utf8(self.0[&number][0].clone()).unwrap()
    }

    fn int(&self, number: u32) -> i64 {
        i64::from_le_bytes(self.0[&number][0].clone().try_into().unwrap())
    }
}

/// The packets of the trace of a run.
fn packets(test: &str, workload: &str, machine: &str) -> Vec<Message> {
    let file = directory(test).join("t.pftrace");
    stdout(&["run", workload, "--machine", machine, "--trace", file.to_str().unwrap()]);
    Message::new(&fs::read(file).unwrap()).all(1)
}

/// Of each track its thread's name, or its own.
fn tracks(packets: &[Message]) -> BTreeMap<i64, String> {
    let described = packets.iter().flat_map(|packet| packet.all(60));
    described
        .map(|track| {
            let name = track.all(4).first().map_or_else(|| track.text(2), |thread| thread.text(5));
            (track.int(1), name)
        })
        .collect()
}

/// Track events with their times.
fn events(packets: &[Message]) -> Vec<(i64, Message)> {
    packets
        .iter()
        .filter(|packet| packet.has(11))
        .map(|packet| (packet.int(8), packet.all(11)[0].clone()))
        .collect()
}

/// The arguments of an instant, numbers as text.
fn args(event: &Message) -> BTreeMap<String, String> {
    let value = |arg: &Message| if arg.has(6) { arg.text(6) } else { arg.int(4).to_string() };
    event.all(4).iter().map(|arg| (arg.text(10), value(arg))).collect()
}

#[test]
fn placements_lead_from_the_waker_to_the_task() {
    let packets = packets("trace_flows", "hackbench -g 4 -f 4 -l 500 -T --pipe", "2l2c");
    let tracks = tracks(&packets);
    let events = events(&packets);
    for name in ["hackbench", "receiver 2 of group 2", "sender 4 of group 1", "CPU 3 decisions"] {
        assert!(tracks.values().any(|known| known == name), "{name}");
    }
    let mut begun = BTreeMap::new();
    let (mut ended, mut between_threads) = (0, 0);
    for (time, event) in &events {
        if event.has(47) {
            assert_eq!(event.text(22), "placement");
            begun.insert(event.int(47), (*time, event.int(11), args(event)));
        }
        if event.has(48) {
            let (since, waker, placed) = begun.remove(&event.int(48)).expect("an arrow that has begun");
            assert_eq!(args(event)["waited_ns"], (time - since).to_string());
            let task: i64 = placed["task"].parse().unwrap();
            assert_eq!(event.int(11), 1 << 32 | task, "it ends at the task");
            assert_ne!(waker, event.int(11), "no task wakes itself");
            ended += 1;
            between_threads += i64::from(tracks[&waker].starts_with("sender "));
        }
    }
    assert!(ended > 50 && between_threads > 10, "{ended}, {between_threads}");
    assert!(begun.len() <= 33, "at most one arrow a task is open at the end");
}

#[test]
fn decisions_have_reasons_and_arguments() {
    let packets = packets("trace_decisions", "hackbench -g 4 -f 4 -l 500 -T --pipe", "2l2c");
    let tracks = tracks(&packets);
    let of = |category: &str| -> Vec<Message> {
        let events = events(&packets).into_iter().map(|(_, event)| event);
        events.filter(|event| event.has(22) && event.text(22) == category).collect()
    };
    let placements = of("placement");
    let idle = placements.iter().find(|event| event.text(23) == "idle CPU by scan").expect("a reason");
    let args_of_idle = args(idle);
    for name in ["kind", "task", "prev_cpu", "target", "cpu", "cpus_scanned", "groups_scanned"] {
        assert!(args_of_idle.contains_key(name), "{name}: {args_of_idle:?}");
    }
    assert!(args_of_idle["cpus_scanned"].parse::<u32>().unwrap() > 0);
    let balances = of("balance");
    let newidle = balances.iter().find(|event| args(event)["kind"] == "newidle balance").expect("a balance");
    assert!(tracks[&newidle.int(11)].starts_with("CPU "), "a balance is a CPU's");
}

#[test]
fn the_counters_of_a_cache_are_its_tasks() {
    let packets = packets("trace_counters", "hackbench -g 4 -f 4 -l 500 -T --pipe", "2l2c");
    let tracks = tracks(&packets);
    let mut last = BTreeMap::new();
    let mut most = BTreeMap::new();
    for (_, event) in events(&packets).iter().filter(|(_, event)| event.int(9) == 4) {
        let name = &tracks[&event.int(11)];
        let value = event.int(30);
        assert!(value >= 0, "{name}");
        last.insert(name, value);
        let highest = most.entry(name).or_insert(0);
        *highest = value.max(*highest);
    }
    for llc in 0..2 {
        let running = &format!("LLC {llc} running");
        let queued = &format!("LLC {llc} queued");
        assert_eq!(most[running], 2, "{llc}: its CPUs were all busy, and there are two");
        assert!(most[queued] > 0, "{llc}");
        assert_eq!((last[running] <= 1, last[queued]), (true, 0), "{llc}: at most the first task is left");
    }
}

#[test]
fn tasks_of_rt_app_have_their_names_and_priorities() {
    let file = directory("trace_rt_app_file").join("f.json");
    let task = |priority: i32| {
        format!(
            r#"{{"instance": 2, "loop": 3, "priority": {priority}, "phases": {{"p": {{"run": 1000, "sleep": 1000}}}}}}"#
        )
    };
    let text = format!(r#"{{"tasks": {{"quick": {}, "lazy": {}}}}}"#, task(-5), task(10));
    fs::write(&file, text).unwrap();
    let packets = packets("trace_rt_app", &format!("rt-app {}", file.display()), "2c");
    // ftrace_events, event, sched_switch: next_comm and next_prio
    let switches = packets.iter().flat_map(|packet| packet.all(1)).flat_map(|bundle| bundle.all(2));
    let switched: BTreeMap<String, i64> =
        switches.flat_map(|event| event.all(4)).map(|switch| (switch.text(5), switch.int(7))).collect();
    let prio = |name: &str| switched.get(name).copied();
    assert_eq!((prio("quick-0"), prio("quick-1")), (Some(115), Some(115)), "{switched:?}");
    assert_eq!((prio("lazy-1"), prio("rt-app"), prio("swapper")), (Some(130), Some(120), Some(120)));
}
