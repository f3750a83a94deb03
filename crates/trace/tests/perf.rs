//! Files of perf against what `perf script` prints of them.
//!
//! `perf.data` was written by perf 6.1 on Linux 6.18, `perf-pipe.data` by `perf record -o -`; maps of files and what
//! identifies the machine were taken out. The texts are what `perf script --ns --show-lost-events -F
//! comm,pid,tid,cpu,time,event,trace` prints.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use coreward_trace::{
    Comm, Event, EventWriter, Format, Leaving, PerfWriter, Place, Recording, Task, TextWriter, What, Written,
};
use tracepoint_perf::{PerfDataFileEventOrder, PerfDataFileReader};

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

/// Time, CPU, thread, process and name of each sample, as the library tracepoint_perf reads the file.
fn as_the_library_reads(path: &Path) -> Vec<(u64, u32, i32, i32, String)> {
    let mut reader = PerfDataFileReader::new();
    reader.open_file(path.to_str().unwrap(), PerfDataFileEventOrder::Time).unwrap();
    let mut samples = Vec::new();
    while reader.move_next_event().unwrap() {
        let event = reader.current_event();
        // records other than samples are none of its tracepoints
        if u32::from_le_bytes(event.data[..4].try_into().unwrap()) == 9 {
            let of = reader.get_sample_event_info(&event).unwrap();
            samples.push((of.time, of.cpu, of.tid as i32, of.pid as i32, of.name().to_owned()));
        }
    }
    samples
}

/// The same as it is read here; of other events the name is not kept.
fn as_read_here(path: &Path) -> Vec<(u64, u32, i32, i32, String)> {
    let all = all(Recording::open(path).unwrap()).unwrap();
    let name = |event: &Event| match event.what {
        What::HandlerEntry(_) | What::HandlerExit | What::Other => String::new(),
        what => format!("sched:{}", what.name()),
    };
    all.iter().map(|e| (e.at, e.cpu, e.pid, e.tgid.unwrap(), name(e))).collect()
}

fn assert_the_same(path: &Path, count: usize) {
    let (library, mut here) = (as_the_library_reads(path), as_read_here(path));
    assert_eq!((library.len(), here.len()), (count, count));
    for (here, library) in here.iter_mut().zip(&library) {
        if here.4.is_empty() {
            here.4.clone_from(&library.4);
        }
    }
    assert_eq!(here, library);
}

#[test]
fn a_second_reader_finds_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("perf.data");
    fs::write(&file, plain("perf.data.gz")).unwrap();
    assert_the_same(&file, 233);
}

#[test]
fn what_is_written_reads_back() {
    let task = |pid, name: &str| Task { pid, comm: Comm::new(name.as_bytes()), prio: 130 };
    let (a, b, idle) = (task(7, "sender 3 of group 1"), task(8, "b"), task(0, "swapper/3"));
    let place = |at, current, in_interrupt| Place { at, cpu: 3, current, tgid: 5, in_interrupt };
    let switch = |leaving, next| Written::Switch { leaving, next };
    let events = [
        (place(1_000, idle, false), switch(Leaving::Runnable, a)),
        (place(2_000, a, false), Written::Fork { child: b }),
        (place(3_000, a, false), Written::WakeupNew { task: b, target: 2 }),
        (place(4_000, a, true), Written::Waking { task: b, target: 2 }),
        (place(5_000, a, false), Written::Migrate { task: b, from: 2, to: 3 }),
        (place(6_000, a, false), switch(Leaving::Runnable, b)),
        (place(7_000, b, false), switch(Leaving::Blocked, a)),
        (place(8_000, a, false), Written::Exit),
        (place(9_000, a, false), switch(Leaving::Dead, idle)),
    ];
    let directory = tempfile::tempdir().unwrap();
    let [file, text] = ["perf.data", "trace.txt"].map(|name| directory.path().join(name));
    let mut perf = PerfWriter::new(fs::File::create(&file).unwrap(), 4).unwrap();
    let mut ftrace = TextWriter::new(fs::File::create(&text).unwrap()).unwrap();
    for writer in [&mut perf as &mut dyn EventWriter, &mut ftrace] {
        [a, b].iter().for_each(|task| writer.task(500, task, 5).unwrap());
        events.iter().for_each(|(place, event)| writer.event(place, event).unwrap());
    }
    perf.finish().unwrap();
    ftrace.finish().unwrap();
    let read = |path: &Path| {
        let all = all(Recording::open(path).unwrap()).unwrap().into_iter();
        // perf's file also has the ends of wakeups and the times on the CPU, and the process of the idle task
        let meant = all.filter(|e| !matches!(e.what, What::Other | What::Wakeup { .. }));
        meant.map(|e| (e.at, e.cpu, e.pid, e.in_interrupt, e.what)).collect::<Vec<_>>()
    };
    assert_eq!(read(&file), read(&text));
    assert_eq!(read(&file).len(), events.len());
    // three times on a CPU, and a wakeup
    assert_the_same(&file, events.len() + 3 + 1);
}
