//! Files of perf against what `perf script` prints of them.
//!
//! `perf.data` was written by perf 6.1 on Linux 6.18, `perf-pipe.data` by `perf record -o -`; maps of files and what
//! identifies the machine were taken out. The texts are what `perf script --ns --show-lost-events -F
//! comm,pid,tid,cpu,time,event,trace` prints.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use coreward_trace::{Event, Format, Recording, What};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn all(mut recording: Recording) -> Result<Vec<Event>, String> {
    let mut events = Vec::new();
    while let Some(event) = recording.next_event().map_err(|error| error.to_string())? {
        events.push(event);
    }
    Ok(events)
}

/// What the file says, without gzip.
fn plain(name: &str) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&fs::read(data(name)).unwrap()[..]).read_to_end(&mut plain).unwrap();
    plain
}

#[test]
fn a_file_has_the_events_that_perf_script_prints() {
    for (file, script, count) in
        [("perf.data.gz", "perf-script.txt.gz", 233), ("perf-pipe.data.gz", "perf-pipe-script.txt.gz", 25)]
    {
        let recording = Recording::open(&data(file)).unwrap();
        assert_eq!(recording.format(), Some(Format::PerfData));
        let events = all(recording).unwrap();
        let printed = all(Recording::open(&data(script)).unwrap()).unwrap();
        // the text has no contexts
        let as_text = events.iter().map(|event| Event { in_interrupt: None, ..*event });
        for (event, printed) in as_text.zip(&printed) {
            assert_eq!(event, *printed, "{file}");
        }
        assert_eq!((events.len(), printed.len()), (count, count));
        assert!(events.iter().any(|event| event.in_interrupt == Some(true)));
        assert!(events.iter().any(|event| event.in_interrupt == Some(false)));
    }
}

#[test]
fn handlers_of_interrupts_run_in_interrupts() {
    let events = all(Recording::open(&data("perf.data.gz")).unwrap()).unwrap();
    let entries: Vec<_> = events.iter().filter(|event| matches!(event.what, What::HandlerEntry(_))).collect();
    assert!(entries.len() > 10);
    assert!(entries.iter().all(|event| event.in_interrupt == Some(true)));
}

/// The file with a record behind its last one.
fn with_record(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut file = plain("perf-pipe.data.gz");
    file.extend(kind.to_le_bytes());
    file.extend([0, 0]);
    file.extend((body.len() as u16 + 8).to_le_bytes());
    file.extend(body);
    file
}

#[test]
fn lost_events_are_counted() {
    let lost = [&5u64.to_le_bytes()[..], &17u64.to_le_bytes()].concat();
    let lost_of = |kind, body: &[u8]| {
        let events = all(Recording::of(with_record(kind, body)).unwrap()).unwrap();
        events.iter().find_map(|event| match event.what {
            What::Lost { events } => Some(events),
            _ => None,
        })
    };
    assert_eq!(lost_of(2, &lost), Some(17));
    assert_eq!(lost_of(13, &lost[8..]), Some(17));
    assert_eq!(lost_of(99, &lost), None);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let error =
        |bytes: Vec<u8>| Recording::of(bytes).map_err(|error| error.to_string()).and_then(all).unwrap_err();
    let compressed = error(with_record(81, &[0; 16]));
    assert!(
        compressed.contains("whose records are compressed") && compressed.contains("without -z"),
        "{compressed}"
    );
    let short = error(with_record(9, &[0; 8]));
    assert!(short.contains("a sample is of an event that is not described"), "{short}");
    let mut whole = plain("perf.data.gz");
    whole.truncate(10_000);
    assert!(error(whole).contains("behind the file's end"));
    let mut attributes = plain("perf.data.gz");
    attributes[16..24].fill(0xff);
    assert!(error(attributes).contains("(allowed: 80 to 4096)"));
    let mut header = plain("perf.data.gz");
    header[8] = 9;
    assert!(error(header).contains("its header has 9 bytes (allowed: 16, 104)"));
}

#[test]
fn a_file_that_is_cut_off_never_reads_as_whole() {
    let file = plain("perf-pipe.data.gz");
    let whole = all(Recording::of(file.clone()).unwrap()).unwrap().len();
    for length in (16..file.len()).step_by(997) {
        let read = Recording::of(file[..length].to_vec()).map_err(|error| error.to_string()).and_then(all);
        assert!(read.is_err() || read.unwrap().len() < whole, "{length} bytes");
    }
}
