use proptest::prelude::*;

use super::*;

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// An event: its kind, its CPU, the time since the last one, the current task, and the rest.
fn event(kind: u8, cpu: u64, since: i64, pid: u64, rest: &[u64]) -> Vec<u8> {
    let mut bytes = vec![kind];
    put(&mut bytes, cpu);
    put(&mut bytes, (since << 1 ^ since >> 63) as u64);
    put(&mut bytes, pid);
    rest.iter().for_each(|number| put(&mut bytes, *number));
    bytes
}

fn named(kind: u8, rest: &[u64], name: &str) -> Vec<u8> {
    let mut bytes = event(kind, 0, 0, 0, rest);
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
    bytes
}

fn group(number: u64, weight: u64, [quota_us, period_us]: [u64; 2], path: &str) -> Vec<u8> {
    let mut bytes = event(15, 0, 0, 0, &[number, weight, quota_us, period_us, path.len() as u64]);
    bytes.extend(path.as_bytes());
    bytes
}

fn frame(kind: u32, payload: &[u8]) -> Vec<u8> {
    let mut payload = payload.to_vec();
    payload.resize(payload.len().next_multiple_of(8), 0);
    let mut crc = Crc::new();
    crc.update(&payload);
    let head = [kind, payload.len() as u32, crc.sum(), 0];
    head.iter().flat_map(|word| word.to_le_bytes()).chain(payload).collect()
}

/// A file with a frame for each list of events.
fn file(frames: &[Vec<Vec<u8>>]) -> Vec<u8> {
    file_of("cpus\t2\n", frames)
}

fn file_of(host: &str, frames: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = [MAGIC, &[4, 0, 0, 0, 0, 0, 0, 0]].concat();
    bytes.extend(frame(HOST, host.as_bytes()));
    frames.iter().for_each(|events| bytes.extend(frame(EVENTS, &events.concat())));
    let count: usize = frames.iter().map(Vec::len).sum();
    bytes.extend(frame(END, &[(count as u64).to_le_bytes(), [0; 8]].concat()));
    bytes
}

fn read(bytes: &[u8]) -> Result<Vec<Event>, String> {
    let mut reader = CwrReader::new(bytes);
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().map_err(|error| error.to_string())? {
        events.push(event);
    }
    Ok(events)
}

/// A priority, as it stands in the file.
const P120: u64 = 240;

#[test]
fn events_are_read() {
    let first = vec![
        named(13, &[5, 4, P120], "server"),
        named(13, &[6, 6, P120 + 20], "client"),
        event(9, 0, 0, 0, &[6, 1, 2]),
        event(1, 0, 1000, 5, &[1, 6, P120 + 20, 1, 77]),
        event(2, 0, 10, 6, &[0, 5, P120]),
        event(2, 1, -5, 0, &[1, 5, P120]),
        event(4, 0, 10, 6, &[8, 6]),
    ];
    let second = vec![
        named(7, &[8], "worker"),
        event(3, 1, 2000, 6, &[8, P120]),
        event(1, 1, 1, 8, &[2, 0, P120]),
        event(10, 0, 1, 6, &[1]),
        event(11, 0, 1, 6, &[]),
        event(16, 1, 1, 6, &[0, 78]),
        event(17, 1, 1, 8, &[78]),
        event(12, 0, 0, 0, &[9]),
    ];
    let events = read(&file(&[first, second])).unwrap();
    let comm = |name: &str| Comm::new(name.as_bytes());
    let client = Task { pid: 6, comm: comm("client"), prio: 130 };
    let server = Task { pid: 5, comm: comm("server"), prio: 120 };
    let whats: Vec<What> = events.iter().map(|event| event.what).collect();
    let wanted = [
        What::Other,
        What::Other,
        What::Allowed { pid: 6, cpus: [2, 0, 0, 0, 0, 0, 0, 0] },
        What::WaitsOn { channel: Channel::Futex(77) },
        What::Switch { prev: server, leaving: Leaving::Blocked, next: client },
        What::Waking { task: server },
        What::Waking { task: server },
        What::Fork { parent: 6, child: 8, comm: comm("client") },
        What::Other,
        What::WakeupNew { task: Task { pid: 8, comm: comm("worker"), prio: 120 } },
        What::Switch {
            prev: Task { pid: 8, comm: comm("worker"), prio: 120 },
            leaving: Leaving::Dead,
            next: Task { pid: 0, comm: comm(""), prio: 120 },
        },
        What::HandlerEntry(Handler::Network),
        What::HandlerExit,
        What::Arrived { socket: 78 },
        What::Received { socket: 78 },
        What::Lost { events: 9 },
    ];
    assert_eq!(whats, wanted);
    let times: Vec<u64> = events[3..8].iter().map(|event| event.at).collect();
    assert_eq!(times, [1000, 1000, 1010, 1005, 1015]);
    assert_eq!(events[9].at, 2000, "times of a frame begin anew");
    let of = |i: usize| (events[i].cpu, events[i].pid, events[i].tgid, events[i].in_interrupt);
    assert_eq!(of(5), (0, 6, Some(6), Some(false)));
    assert_eq!(of(6), (1, 0, None, Some(true)));
    assert_eq!(of(10).2, Some(6), "a thread is of its parent's process");
}

#[test]
fn task_groups_are_described_once() {
    let events = vec![
        group(7, 300, [20_000, 100_000], "/a/b"),
        event(14, 0, 0, 0, &[5, 7]),
        event(14, 0, 10, 0, &[5, 0]),
    ];
    let bytes = file(&[events]);
    let mut reader = CwrReader::new(&bytes[..]);
    let mut next = || reader.next_event().unwrap().unwrap().what;
    assert_eq!(next(), What::Other);
    assert_eq!(next(), What::Grouped { pid: 5, group: Some(7) });
    assert_eq!(next(), What::Grouped { pid: 5, group: None });
    let max = Some((20_000_000, 100_000_000));
    assert_eq!(reader.group(7), Some(&TaskGroup { name: "/a/b".into(), weight: 300, max }));
    assert_eq!(reader.group(8), None);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let good = file(&[vec![event(11, 0, 1, 6, &[])]]);
    assert_eq!(read(&good).unwrap().len(), 1);
    let refused = |bytes: &[u8], what: &str| {
        let error = read(bytes).unwrap_err();
        assert!(error.starts_with("byte ") && error.contains(what), "{error}");
    };
    for cut in [10, 20, good.len() - 20, good.len() - 1] {
        refused(&good[..cut], "it is not complete");
    }
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    assert_eq!(read(&changed(8, 1)).unwrap().len(), 1);
    assert_eq!(read(&changed(8, 2)).unwrap().len(), 1);
    refused(&changed(8, 5), "version 5 (allowed: 1 to 4)");
    refused(&changed(16, 9), "a frame of type 9 (allowed: 1 to 3, 17 to 24)");
    refused(&changed(20, 7), "a frame of 7 bytes");
    refused(&changed(33, b'x'), "checksum is wrong");
    let of = |bytes: Vec<u8>| file(&[vec![bytes]]);
    refused(&of(event(18, 0, 1, 6, &[])), "an event of kind 18 (allowed: 1 to 17)");
    refused(&of(event(14, 0, 1, 6, &[6, 1 << 32])), "there is no task group 4294967296");
    let new_group = |weight: u64, max: [u64; 2], path: &str| of(group(7, weight, max, path));
    refused(&new_group(0, [0, 0], "/a"), "group /a: weight is 0 (allowed: 1 to 10000)");
    refused(&new_group(100, [0, 0], "a"), "group a: it is no name");
    refused(&new_group(100, [50_000, 0], "/a"), "group /a: max_us is [50000, 0]");
    refused(
        &new_group(100, [0, 0], &format!("/{}", "a".repeat(256))),
        "the path of a task group is too long",
    );
    let cut = group(7, 100, [0, 0], &"/a".repeat(20));
    refused(&of(cut[..cut.len() - 20].to_vec()), "ends after its frame");
    refused(&of(event(1, 0, 1, 6, &[3, 0, P120])), "a switch of kind 3 (allowed: 0 to 2, 4 to 6)");
    refused(&of(event(1, 0, 1, 6, &[1, 0, P120, 10, 0])), "a wait of kind 10 (allowed: 0 to 9)");
    refused(&of(event(2, 0, 1, 6, &[0, 7, 300])), "150 is no priority");
    refused(&of(event(5, 0, 1, 6, &[1 << 40])), "is no thread id");
    refused(&of(event(9, 0, 1, 6, &[6, 9])), "a set of 9 words (allowed: 8)");
    refused(&of(vec![5; 8]), "after its frame");
    refused(&of([vec![5], vec![0xff; 20]].concat()), "more than 64 bits");
    let mut short = file(&[vec![event(11, 0, 1, 6, &[])]]);
    let end = short.len() - 32;
    short.truncate(end);
    short.extend(frame(END, &[0; 16]));
    refused(&short, "there were 1 events, but the end frame says 0");
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = [MAGIC, &[4, 0, 0, 0, 0, 0, 0, 0]].concat();
        let _ = read(&[&bytes[..], &payload].concat());
        bytes.extend(frame(EVENTS, &payload));
        let _ = read(&bytes);
    }
}

#[test]
fn cycles_become_a_speed_before_the_switch() {
    let events = vec![
        event(1, 0, 1000, 0, &[0, 5, P120]),
        // 3000 cycles in 1000 ns
        event(1, 0, 1000, 5, &[5, 6, P120, 3000, 1, 77]),
        event(1, 1, 0, 7, &[4, 0, P120, 3000]),
        event(1, 0, 2000, 6, &[4, 0, P120, 3000]),
        event(1, 0, 10, 0, &[0, 5, P120]),
    ];
    let of = |host: &str| {
        let file = file_of(host, std::slice::from_ref(&events));
        let events = read(&file).unwrap().into_iter();
        events.map(|event| event.what).filter(|what| !matches!(what, What::Switch { .. })).collect::<Vec<_>>()
    };
    let waits = What::WaitsOn { channel: Channel::Futex(77) };
    let speed = |khz| What::Speed { khz, fastest_khz: 3_500_000 };
    // CPU 1 has not switched before, so it is not known how long the cycles took
    let wanted = [speed(3_000_000), waits, speed(1_500_000)];
    assert_eq!(of("cpus\t2\nfastest_khz\t 3500000        0\n"), wanted);
    assert_eq!(of("cpus\t2\n"), [waits], "there is nothing to compare with");
    assert_eq!(of("fastest_khz\t0 3500000\n"), [waits]);
    let wrong = file_of("fastest_khz\t3500000 fast\n", &[]);
    assert!(read(&wrong).unwrap_err().contains("fastest_khz"));
}

#[test]
fn decisions_are_passed_over() {
    let mut bytes = [MAGIC, &[4, 0, 0, 0, 0, 0, 0, 0]].concat();
    bytes.extend(frame(HOST, b"cpus\t2\n"));
    bytes.extend(frame(17, b"host"));
    bytes.extend(frame(EVENTS, &event(8, 0, 5, 1, &[7])));
    bytes.extend(frame(24, &[1; 64]));
    let mut other = bytes.clone();
    for (bytes, kind) in [(&mut bytes, 23), (&mut other, 25)] {
        bytes.extend(frame(kind, &[0; 40]));
        bytes.extend(frame(END, &[1u64.to_le_bytes(), [0; 8]].concat()));
    }
    assert_eq!(read(&bytes).unwrap().len(), 1);
    assert!(read(&other).unwrap_err().contains("a frame of type 25 (allowed: 1 to 3, 17 to 24)"));
}
