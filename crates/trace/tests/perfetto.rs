//! Perfetto traces with the events of a recording that other tests read as text.
//!
//! They were written by Perfetto's own Python classes (0.59.1) from `sched-ftrace.txt`: once as events, once with switches
//! and wakeups as columns. Timers are not among the events of Perfetto that are read.

use std::path::{Path, PathBuf};

use coreward_trace::{Comm, Event, Format, Handler, Recording, What};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(name: &str) -> Vec<Event> {
    let mut recording = Recording::open(&data(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut events = Vec::new();
    while let Some(event) = recording.next_event().unwrap() {
        // who is called how is asked elsewhere
        events.push(Event { comm: Comm::default(), tgid: None, ..event });
    }
    let format = recording.format().unwrap();
    assert_eq!(format == Format::Perfetto, name.contains("pftrace"), "{name}");
    events
}

/// Each CPU's events in order, without timers and what stands for them.
fn by_cpu(events: &[Event], keep: impl Fn(&Event) -> bool) -> Vec<Event> {
    let timer = |event: &Event| {
        matches!(event.what, What::HandlerEntry(Handler::Timer) | What::HandlerExit | What::Other)
    };
    let mut kept: Vec<_> = events.iter().filter(|event| !timer(event) && keep(event)).copied().collect();
    kept.sort_by_key(|event| (event.cpu, event.at));
    kept
}

#[test]
fn events_are_those_of_the_text() {
    let (text, perfetto) = (read("sched-ftrace.txt.gz"), read("sched.pftrace.gz"));
    assert_eq!(perfetto.len(), text.len());
    let (text, perfetto) = (by_cpu(&text, |_| true), by_cpu(&perfetto, |_| true));
    for (text, perfetto) in text.iter().zip(&perfetto) {
        assert_eq!(text, perfetto);
    }
    assert!(text.len() > 250 && text.len() == perfetto.len());
}

#[test]
fn columns_say_the_same_but_for_the_first_switch() {
    let (plain, columns) = (read("sched.pftrace.gz"), read("sched-compact.pftrace.gz"));
    let cpus = 2;
    let count =
        |events: &[Event], is: fn(&What) -> bool| events.iter().filter(|event| is(&event.what)).count();
    let switch: fn(&What) -> bool = |what| matches!(what, What::Switch { .. });
    let waking: fn(&What) -> bool = |what| matches!(what, What::Waking { .. });
    assert_eq!(count(&columns, switch), count(&plain, switch) - cpus);
    assert_eq!(count(&columns, waking), count(&plain, waking));
    // who wakes is who the CPU switched to last; before the first switch it is not known
    let first = |cpu| plain.iter().find(|event| event.cpu == cpu && switch(&event.what)).unwrap().at;
    let known = |event: &Event| event.at > first(event.cpu) && (switch(&event.what) || waking(&event.what));
    let (plain, columns) = (by_cpu(&plain, known), by_cpu(&columns, known));
    // a name that a task took since its last switch is not in the columns
    let nameless = |event: &Event| match event.what {
        What::Switch { mut prev, leaving, next } => {
            prev.comm = Comm::default();
            Event { what: What::Switch { prev, leaving, next }, ..*event }
        }
        _ => *event,
    };
    for (plain, columns) in plain.iter().zip(&columns) {
        assert_eq!(nameless(plain), nameless(columns));
    }
    assert!(plain.len() > 100 && plain.len() == columns.len());
}

#[test]
fn a_trace_that_is_damaged_is_refused_with_the_place() {
    let mut file = Vec::new();
    let packed = std::fs::read(data("sched-compact.pftrace.gz")).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut file).unwrap();
    let error = |bytes: &[u8]| {
        let mut recording = Recording::of(bytes.to_vec()).unwrap();
        loop {
            match recording.next_event() {
                Err(error) => break error.to_string(),
                Ok(Some(_)) => {}
                Ok(None) => break String::new(),
            }
        }
    };
    assert_eq!(error(&file), "");
    assert!(error(&file[..file.len() - 1]).contains("it ends within a packet"));
    let mut wrong = file.clone();
    wrong.extend([0x12, 0]);
    assert!(error(&wrong).contains("where a packet should begin"), "{}", error(&wrong));
    // columns of different lengths: ftrace_events { compact_sched { switch_timestamp: 5 } }
    wrong = [file, vec![0x0a, 7, 0x0a, 5, 0x22, 3, 0x0a, 1, 5]].concat();
    assert!(error(&wrong).contains("columns of compact_sched have different lengths"), "{}", error(&wrong));
}
