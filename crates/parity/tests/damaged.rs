//! Damaged files: one message that says where and what, never a wrong reading.

mod common;

use common::{Shape, WF_FORK, WF_TTWU, balance, file, placement};
use coreward_machine::CpuSet;
use coreward_parity::format::{
    ENTITY_ON_RQ, EntityState, FairRqState, FrameType, Queue, StepHead, StepKind, Waiting,
};
use coreward_parity::{CaptureError, Reader, Record, RecordedMachine, Step};
use proptest::prelude::*;

/// Everything that a file says: the machine, the decisions, and how many were lost.
type Contents = (RecordedMachine, Vec<Record>, u64);

fn read(bytes: &[u8]) -> Result<Contents, CaptureError> {
    let mut reader = Reader::new(bytes, "f.cwc")?;
    let records = (&mut reader).collect::<Result<Vec<_>, _>>()?;
    Ok((reader.machine().clone(), records, reader.lost().expect("the end was reached")))
}

fn sample() -> (RecordedMachine, Vec<Record>) {
    let machine = Shape::smt().machine("6.12.107");
    let mut pull = balance(&machine, 1, 4, 2);
    pull.group = [0, 2].into_iter().collect();
    let queue = Queue { sequence: pull.head.sequence, src_cpu: 2, pad: 0 };
    let records = vec![
        Record::Placement(Box::new(placement(&machine, WF_TTWU))),
        Record::Placement(Box::new(placement(&machine, WF_FORK))),
        Record::Balance(Box::new(pull)),
        Record::Queue(queue),
        Record::Step(Box::new(pick())),
    ];
    (machine, records)
}

/// Two that wait on CPU 3.
fn pick() -> Step {
    let head =
        StepHead { kind: StepKind::Pick as u32, cpu: 3, result: 8, nr_waiting: 2, ..StepHead::default() };
    let waiting = [7, 8].map(|id| Waiting { id, weight: 1 << 20, ..Waiting::default() });
    Step { head, waiting: waiting.into() }
}

/// A step of each kind: task 6 runs, 7 and 8 wait, and 7 is what the step is about.
fn steps() -> Vec<Record> {
    let entity = |id| EntityState {
        id,
        flags: ENTITY_ON_RQ,
        weight: 1 << 20,
        load: 1 << 20,
        slice: 3_000_000,
        ..EntityState::default()
    };
    let rq = FairRqState {
        nr_queued: 3,
        h_nr_queued: 3,
        sum_weight: 2 << 10,
        load: 3 << 20,
        curr: 6,
        ..FairRqState::default()
    };
    let step = |kind| {
        let mut step = pick();
        step.head.kind = kind;
        (step.head.now, step.head.weight) = (1_000_000, 2 << 20);
        (step.head.before, step.head.after) = (rq, rq);
        (step.head.curr_before, step.head.curr_after) = (entity(6), entity(6));
        (step.head.se_before, step.head.se_after) = (entity(7), entity(7));
        Record::Step(Box::new(step))
    };
    (1..=StepKind::Reweight as u32).map(step).collect()
}

fn bytes() -> Vec<u8> {
    let (machine, records) = sample();
    file(&machine, &records, 3)
}

/// Where the frames begin, with their types and lengths.
fn frames(bytes: &[u8]) -> Vec<(usize, u32, usize)> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut frames) = (16, Vec::new());
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        frames.push((at, word(at), length));
        at += 16 + length;
    }
    frames
}

/// The start of the n-th frame of a type.
fn start(bytes: &[u8], kind: FrameType, n: usize) -> (usize, usize) {
    let mut of_kind = frames(bytes).into_iter().filter(|(_, number, _)| *number == kind as u32);
    let (at, _, length) = of_kind.nth(n).expect("it is there");
    (at, length)
}

/// Changes a payload and repairs the checksum, so that only its content is wrong.
fn edit(bytes: &mut [u8], kind: FrameType, n: usize, at: usize, value: u32) -> usize {
    let (start, length) = start(bytes, kind, n);
    let payload = start + 16..start + 16 + length;
    bytes[payload.start + at..payload.start + at + 4].copy_from_slice(&value.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[payload]);
    bytes[start + 8..start + 12].copy_from_slice(&checksum.to_le_bytes());
    start
}

fn refused(bytes: &[u8], message: &str) {
    assert_eq!(read(bytes).expect_err(message).to_string(), format!("f.cwc: {message}"));
}

#[test]
fn a_sound_file_reads_back() {
    let (machine, records) = sample();
    assert!(read(&bytes()).unwrap() == (machine, records, 3));
}

#[test]
fn what_the_recorder_wrote_is_written_alike() {
    for name in ["hackbench-6.12", "hackbench-7.3"] {
        let path = format!("{}/tests/data/{name}.cwc", env!("CARGO_MANIFEST_DIR"));
        let original = std::fs::read(path).unwrap();
        let (machine, records, lost) = read(&original).unwrap();
        assert!(file(&machine, &records, lost) == original, "{name}");
    }
}

#[test]
fn headers() {
    refused(b"coreward", "byte 0: the file is shorter than a capture file's header");
    refused(
        &[b'x'; 100],
        "byte 0: this is not a capture file: it does not begin with `coreward` or `cwrecord`",
    );
    let mut wrong = bytes();
    wrong[8] = 2;
    refused(&wrong, "byte 0: the file is of version 2, allowed is 1");
    refused(&bytes()[..16], "byte 16: frame 1: the file ends here without an end frame: it is truncated");
}

/// A recording of a workload with the decisions of a file: frames of the workload stand before, between and behind them.
fn with_workload(decisions: &[u8]) -> Vec<u8> {
    let frame = |kind: u32, payload: &[u8]| {
        let words = [kind, payload.len() as u32, crc32fast::hash(payload), 0];
        [words.map(u32::to_le_bytes).concat(), payload.to_vec()].concat()
    };
    let mut bytes = [&b"cwrecord"[..], &4u64.to_le_bytes(), &frame(1, b"cpus\t4\n\0")].concat();
    for (at, kind, length) in frames(decisions) {
        bytes.extend(frame(kind + 16, &decisions[at + 16..at + 16 + length]));
        bytes.extend(frame(2, &[1; 64]));
    }
    bytes.extend(frame(3, &[0; 16]));
    bytes
}

#[test]
fn decisions_beside_a_workload_are_those_of_a_file_without_one() {
    let both = with_workload(&bytes());
    assert!(read(&both).unwrap() == read(&bytes()).unwrap());
    let end = both.len() - 32;
    let starts: Vec<_> = frames(&both).into_iter().map(|(at, ..)| at).collect();
    for cut in starts {
        let error = read(&both[..cut]).unwrap_err().to_string();
        assert!(error.contains("it is truncated"), "{error}");
    }
    let changed = |at: usize, byte: u8| {
        let mut bytes = both.clone();
        bytes[at] = byte;
        read(&bytes).unwrap_err().to_string()
    };
    assert_eq!(changed(8, 3), "f.cwc: byte 0: the file is of version 3, allowed is 4");
    assert!(changed(16, 9).ends_with("frame 1: type 9 is unknown, allowed are 17 to 24"));
    assert!(changed(32, b'x').contains("frame 1: the checksum is"), "of a frame of the workload");
    assert!(changed(end, 2).contains("without an end frame"));
    let alone = [&both[..16], &both[end..]].concat();
    let error = read(&alone).unwrap_err().to_string();
    assert!(error.contains("the recording has a workload, but no decisions"), "{error}");
    let more = [&both[..], b"x"].concat();
    assert!(read(&more).unwrap_err().to_string().ends_with("the file goes on after it"));
}

#[test]
fn frame_headers() {
    let mut wrong = bytes();
    wrong[16] = 9;
    refused(&wrong, "byte 16: frame 1: type 9 is unknown, allowed are 1 to 8");
    let mut wrong = bytes();
    wrong[20..24].copy_from_slice(&7u32.to_le_bytes());
    refused(&wrong, "byte 16: frame 1 (host): the length is 7, allowed are multiples of 8 up to 524288");
    let mut wrong = bytes();
    wrong[20..24].copy_from_slice(&0xffff_fff8u32.to_le_bytes());
    refused(
        &wrong,
        "byte 16: frame 1 (host): the length is 4294967288, allowed are multiples of 8 up to 524288",
    );
    let mut wrong = bytes();
    wrong[40] ^= 1;
    let error = read(&wrong).unwrap_err().to_string();
    assert!(error.starts_with("f.cwc: byte 16: frame 1 (host): the checksum is "), "{error}");
}

#[test]
fn truncated_anywhere() {
    let whole = bytes();
    for length in 0..whole.len() {
        let error = read(&whole[..length]).expect_err("it is not whole").to_string();
        assert!(error.contains("truncated") || length < 16, "{length}: {error}");
    }
}

#[test]
fn the_end() {
    let mut longer = bytes();
    let (at, _) = start(&longer, FrameType::End, 0);
    longer.push(0);
    refused(&longer, &format!("byte {at}: frame 19 (end): the file goes on after it"));
    let mut wrong = bytes();
    edit(&mut wrong, FrameType::End, 0, 8, 2);
    refused(&wrong, &format!("byte {at}: frame 19 (end): it counts 2 balances, the file has 1"));
}

/// The file without one frame, or with the frame's copy elsewhere.
fn without(bytes: &[u8], kind: FrameType, n: usize) -> Vec<u8> {
    let (at, length) = start(bytes, kind, n);
    [&bytes[..at], &bytes[at + 16 + length..]].concat()
}

#[test]
fn a_file_without_steps_does_not_count_them() {
    let (machine, mut records) = sample();
    let length = |bytes: &[u8]| start(bytes, FrameType::End, 0).1;
    assert_eq!(length(&bytes()), 40);
    records.pop();
    let without = file(&machine, &records, 3);
    assert_eq!(length(&without), 32);
    assert_eq!(read(&without).unwrap(), (machine, records, 3));
}

#[test]
fn steps_of_every_kind_are_read_and_taken_again() {
    let machine = Shape::smt().machine("6.12.107");
    let (read_machine, records, _) = read(&file(&machine, &steps(), 0)).unwrap();
    assert!(read_machine == machine && records == steps());
    let mut replay = common::replay(&machine);
    let outcomes: Vec<_> = records.iter().flat_map(|record| replay.compare(record)).collect();
    // nobody begins to run while another one does
    assert_eq!(outcomes.len(), records.len() - 1);
}

#[test]
fn steps_truncated_anywhere() {
    let whole = file(&Shape::smt().machine("7.3.4"), &steps(), 0);
    let (first, _) = start(&whole, FrameType::Step, 0);
    for length in (first..whole.len()).step_by(7) {
        let error = read(&whole[..length]).expect_err("it is not whole").to_string();
        assert!(error.contains("truncated"), "{length}: {error}");
    }
}

#[test]
fn missing_frames() {
    let whole = bytes();
    refused(
        &without(&whole, FrameType::Host, 0),
        "byte 16: frame 1 (cpu): the file does not begin with a host frame",
    );
    let error = |kind, n| read(&without(&whole, kind, n)).unwrap_err().to_string();
    assert!(error(FrameType::Cpu, 1).contains("(cpu): it is of CPU 2, the next is CPU 1"));
    assert!(error(FrameType::Cpu, 3).contains("(domain): the frame of CPU 3 is missing before it"));
    assert!(error(FrameType::Domain, 0).contains("(domain): it is domain 1 of CPU 0, the next is 0"));
    // the upper domain of CPU 3: only its group states tell
    assert!(
        error(FrameType::Domain, 7)
            .contains("(placement): it has 8 group states, the domain frames announce 7")
    );
    let mut none = without(&whole, FrameType::Domain, 7);
    none = without(&none, FrameType::Domain, 6);
    let error = read(&none).unwrap_err().to_string();
    assert!(error.contains("CPU 3 is in domains of others, but its domain frames are missing"), "{error}");
}

#[test]
fn wrong_numbers() {
    let whole = bytes();
    let error = |kind, n, at, value| {
        let mut wrong = whole.clone();
        let start = edit(&mut wrong, kind, n, at, value);
        let error = read(&wrong).expect_err("it is wrong").to_string();
        error.strip_prefix(&format!("f.cwc: byte {start}: frame ")).expect(&error).to_owned()
    };
    assert_eq!(error(FrameType::Cpu, 0, 4, 0), "2 (cpu): the capacity is 0, allowed are 1 to 1024");
    assert_eq!(error(FrameType::Cpu, 0, 16, 2), "2 (cpu): CPU 0 is not in its own core");
    assert_eq!(error(FrameType::Cpu, 0, 16, 0x81), "2 (cpu): the core has CPU 7, allowed are 0 to 3");
    assert_eq!(error(FrameType::Domain, 0, 40, 0), "6 (domain): it has 0 groups, allowed are 1 to 1024");
    assert_eq!(error(FrameType::Domain, 0, 40, 3), "6 (domain): it is too short for what it announces");
    assert_eq!(
        error(FrameType::Domain, 0, 48, 0b111),
        "6 (domain): the groups cover CPUs 0,2, the domain's span is 0-2"
    );
    assert_eq!(error(FrameType::Domain, 0, 56, 2), "6 (domain): the group of CPUs 0 has weight 2");
    assert_eq!(
        error(FrameType::Domain, 1, 48, 0b1),
        "7 (domain): the groups cover CPUs 0-3, the domain's span is 0"
    );
    assert_eq!(
        error(FrameType::Placement, 0, 24, 4),
        "14 (placement): the choice is CPU 4, allowed are 0 to 3"
    );
    assert_eq!(
        error(FrameType::Placement, 0, 36, 1),
        "14 (placement): it has 1 group states, the domain frames announce 8"
    );
    assert_eq!(
        error(FrameType::Placement, 0, 40, 1),
        "14 (placement): it is too short for what it announces"
    );
    assert_eq!(
        error(FrameType::Placement, 0, 40, u32::MAX),
        "14 (placement): it is too short for what it announces"
    );
    assert_eq!(error(FrameType::Balance, 0, 36, 3), "16 (balance): CPU 1 has no domain of 3 CPUs");
    assert_eq!(error(FrameType::Balance, 0, 40, 3), "16 (balance): the idle type is 3, allowed are 0 to 2");
    let (_, records) = sample();
    let Record::Balance(pull) = &records[2] else { unreachable!() };
    assert_eq!(pull.group, CpuSet::from_iter([0, 2]));
    assert_eq!(
        error(FrameType::Balance, 0, 72, 1),
        "16 (balance): CPU 1 has no group of CPUs 0 in its domain 1"
    );
    assert_eq!(error(FrameType::Step, 0, 8, 11), "18 (step): the kind is 11, allowed are 1 to 10");
    assert_eq!(error(FrameType::Step, 0, 12, 4), "18 (step): the queue is CPU 4, allowed are 0 to 3");
    assert_eq!(error(FrameType::Step, 0, 28, 65), "18 (step): 65 entities wait, allowed are 0 to 64");
    assert_eq!(error(FrameType::Step, 0, 28, 3), "18 (step): it is too short for what it announces");
    assert_eq!(error(FrameType::Step, 0, 28, 1), "18 (step): it has 40 bytes more than it announces");
    assert_eq!(error(FrameType::Queue, 0, 8, 9), "17 (queue): the source is CPU 9, allowed are 0 to 3");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A flipped bit is noticed, unless it is in a header's padding.
    #[test]
    fn a_flipped_bit_is_noticed(at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let mut damaged = bytes();
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << bit;
        let in_padding = (12..16).contains(&at)
            || frames(&bytes()).iter().any(|(start, _, _)| (start + 12..start + 16).contains(&at));
        match read(&damaged) {
            Ok(contents) => {
                let (machine, records) = sample();
                prop_assert!(in_padding && contents == (machine, records, 3), "byte {at}");
            }
            Err(_) => prop_assert!(!in_padding, "byte {at}"),
        }
    }

    /// Whatever the payload of a frame says, it is read or refused.
    #[test]
    fn no_payload_breaks_the_reader(n in 0..18usize, at in any::<prop::sample::Index>(), value in any::<u32>()) {
        let mut wrong = bytes();
        let (start, kind, length) = frames(&wrong)[n];
        let kind = FrameType::from_number(kind).unwrap();
        let nth = frames(&wrong).iter().take_while(|f| f.0 < start).filter(|f| f.1 == kind as u32).count();
        let at = at.index(length / 4) * 4;
        edit(&mut wrong, kind, nth, at, value);
        if let Ok((machine, records, _)) = read(&wrong) {
            let mut replay = common::replay(&machine);
            records.iter().for_each(|record| drop(replay.compare(record)));
        }
    }

    /// Whatever a step says, on whichever kernel, it is replayed or refused.
    #[test]
    fn no_step_breaks_the_replay(
        release in prop::sample::select(vec!["5.10.0", "6.1.0", "6.12.107", "6.18.5", "7.3.4"]),
        n in 0..10usize,
        at in any::<prop::sample::Index>(),
        value in any::<u32>(),
    ) {
        let machine = Shape::smt().machine(release);
        let mut wrong = file(&machine, &steps(), 0);
        let (_, length) = start(&wrong, FrameType::Step, n);
        edit(&mut wrong, FrameType::Step, n, at.index(length / 4) * 4, value);
        if let Ok((machine, records, _)) = read(&wrong) {
            let mut replay = common::replay(&machine);
            records.iter().for_each(|record| drop(replay.compare(record)));
        }
    }
}
