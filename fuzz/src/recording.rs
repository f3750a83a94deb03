//! The properties of every reader of recordings, and of every form of recorded workloads.

use coreward_trace::Recording;
use coreward_trace::import::{Import, Options};
use coreward_workload::recorded::{Form, Recorded};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What a reader and the import may have allocated at a time beyond the file, in bytes.
const MOST_MEMORY: usize = 64 << 20;

/// The input with the beginning that its format has, because otherwise it would be taken for another.
pub fn begun_with(magic: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let length = magic.len().min(bytes.len());
    bytes[..length].copy_from_slice(&magic[..length]);
    bytes
}

/// A file of `coreward record --workload` with these events. Its checksums and counts are right, because otherwise nothing
/// else would be tested.
///
/// # Panics
/// The reader does not say how many events there were.
pub fn recorded(events: &[u8]) -> Vec<u8> {
    const HOST: u32 = 1;
    const EVENTS: u32 = 2;
    const END: u32 = 3;
    let frame = |kind: u32, payload: &[u8]| {
        let mut payload = payload.to_vec();
        payload.resize(payload.len().next_multiple_of(8), 0);
        let head = [kind, payload.len() as u32, crc32fast::hash(&payload), 0];
        head.iter().flat_map(|word| word.to_le_bytes()).chain(payload).collect::<Vec<u8>>()
    };
    let file = |count: u64| {
        let head = [&b"cwrecord"[..], &4u64.to_le_bytes()].concat();
        let host = frame(HOST, b"fastest_khz\t3000000 3000000\n");
        let end = [count.to_le_bytes(), [0; 8]].concat();
        [head, host, frame(EVENTS, events), frame(END, &end)].concat()
    };
    // the message has the number that the end has to say
    const NONE: u64 = u64::MAX;
    let Ok(mut recording) = Recording::of(file(NONE)) else { return file(0) };
    let refused = loop {
        match recording.next_event() {
            Ok(Some(_)) => {}
            Ok(None) => unreachable!("so many events there are not"),
            Err(error) => break error.to_string(),
        }
    };
    let said = refused.split_once("there were ").and_then(|(_, rest)| rest.split_once(' '));
    // if something else is wrong, it is so before the end
    said.map_or_else(|| file(0), |(count, _)| file(count.parse().expect("it is a number")))
}

/// Reads a recording to its end, and imports it, in little memory. Its events are in order, and what they make is a
/// workload that reads back.
///
/// # Panics
/// That is how a fuzz target reports what it found.
pub fn imports(bytes: Vec<u8>) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let recorded = imported(bytes);
    let most = MEMORY.peak_usage().saturating_sub(before);
    assert!(most <= MOST_MEMORY, "{most} bytes at a time");
    if let Some(recorded) = recorded {
        let json = recorded.to_json();
        assert!(Recorded::from_json(&json).is_ok(), "{json}");
    }
}

/// The workload of a recording; `None` if it was refused, with a message.
fn imported(bytes: Vec<u8>) -> Option<Recorded> {
    let refused = |error: coreward_trace::ReadError| assert!(!error.to_string().trim().is_empty());
    let mut recording = Recording::of(bytes).map_err(refused).ok()?;
    let mut import = Import::new(Options { to_ns: u64::MAX, ..Options::default() });
    let mut last = 0;
    while let Some(event) = recording.next_event().map_err(refused).ok()? {
        assert!(event.at >= last, "{} after {last}", event.at);
        last = event.at;
        import.event(&event).ok()?;
    }
    import.finish(&recording).ok().map(|(recorded, _)| recorded)
}

/// Reads a recorded workload. One that is accepted reads back the same from each form, and a message says what is
/// refused.
///
/// # Panics
/// That is how a fuzz target reports what it found.
pub fn reads_back(bytes: &[u8], form: Form) {
    let recorded = match Recorded::from_bytes(bytes, form) {
        Ok(recorded) => recorded,
        Err(error) => return assert!(!error.trim().is_empty()),
    };
    for form in [Form::Compressed, Form::Json, Form::Toml] {
        let mut again = Vec::new();
        recorded.write(&mut again, form).expect("memory is written");
        assert!(Recorded::from_bytes(&again[..], form).expect("what was written is read") == recorded);
    }
}
