//! One small recording in every form that tracefs and trace-cmd give it, against what they print.
//!
//! The files are of one recording on Linux 6.18: raw pages of each CPU, of which `trace-cmd restore` and `convert` (3.1.6)
//! made files of versions 6 and 7; `sched-report.txt` is what `trace-cmd report -R -t` prints of any of them, and
//! `sched-ftrace.txt` what `/sys/kernel/tracing/trace` showed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use coreward_trace::{Event, Format, Recording, What};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn all(mut recording: Recording) -> (Vec<Event>, Format) {
    let mut events = Vec::new();
    while let Some(event) = recording.next_event().unwrap() {
        events.push(event);
    }
    (events, recording.format().unwrap())
}

fn read(name: &str) -> (Vec<Event>, Format) {
    all(Recording::open(&data(name)).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// What a text cannot say of an event is left out.
fn as_text(events: &[Event]) -> Vec<Event> {
    events.iter().map(|event| Event { in_interrupt: None, ..*event }).collect()
}

#[test]
fn every_form_has_the_events_that_trace_cmd_prints() {
    let (report, format) = read("sched-report.txt.gz");
    assert_eq!((report.len(), format), (485, Format::Ftrace));
    for name in ["sched-v6.dat.gz", "sched-v7.dat", "sched-v7-none.dat.gz"] {
        let (events, format) = read(name);
        assert_eq!(format, Format::TraceDat);
        for (event, printed) in as_text(&events).iter().zip(&report) {
            assert_eq!(event, printed, "{name}");
        }
        assert_eq!(events.len(), report.len(), "{name}");
    }
}

#[test]
fn pages_have_the_events_of_the_file() {
    let (pages, format) = read("pages");
    assert_eq!(format, Format::Pages);
    // pages have no names of tasks other than those in events
    let unnamed = |events: Vec<Event>| -> Vec<Event> {
        events.into_iter().map(|event| Event { comm: Default::default(), ..event }).collect()
    };
    assert_eq!(unnamed(pages), unnamed(read("sched-v7.dat").0));
}

#[test]
fn contexts_are_those_that_ftrace_shows() {
    let keyed = |name: &str| {
        let mut of: BTreeMap<(u64, u32, String), Vec<Option<bool>>> = BTreeMap::new();
        for event in read(name).0 {
            // as the kernel rounds
            let key = ((event.at + 500) / 1000, event.cpu, format!("{:?}", event.what));
            of.entry(key).or_default().push(event.in_interrupt);
        }
        of
    };
    let (shown, pages) = (keyed("sched-ftrace.txt.gz"), keyed("pages"));
    for (key, contexts) in &shown {
        assert_eq!(pages.get(key), Some(contexts), "{key:?}");
    }
    assert_eq!(shown.len(), pages.len());
    let contexts: Vec<_> = pages.values().flatten().collect();
    assert!(contexts.contains(&&Some(true)) && contexts.contains(&&Some(false)));
}

#[test]
fn a_file_that_is_damaged_is_refused_with_the_place() {
    let file = fs::read(data("sched-v7.dat")).unwrap();
    let error = |bytes: &[u8]| match Recording::of(bytes.to_vec()) {
        Err(error) => error.to_string(),
        Ok(mut recording) => loop {
            match recording.next_event() {
                Err(error) => break error.to_string(),
                Ok(Some(_)) => {}
                Ok(None) => break String::new(),
            }
        },
    };
    assert_eq!(error(&file), "");
    // behind the last options stand only names of sections
    for length in (11..9760).step_by(19) {
        let said = error(&file[..length]);
        assert!(said.starts_with("byte "), "{length} bytes: {said:?}");
    }
    let changed = |at: usize, byte: u8| {
        let mut file = file.clone();
        file[at] = byte;
        error(&file)
    };
    assert!(
        changed(10, b'5').contains("version \"5\" of the format (allowed: 6, 7)"),
        "{}",
        changed(10, b'5')
    );
    assert!(changed(12, 2).contains("order of bytes is 2"), "{}", changed(12, 2));
    assert!(changed(18, b'x').contains("compressed by \"xstd\""), "{}", changed(18, b'x'));
}

#[test]
fn the_clock_has_to_count_ns() {
    let mut file = fs::read(data("sched-v7-none.dat.gz")).unwrap();
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&file[..]), &mut plain).unwrap();
    file = plain;
    let at = file.windows(6).rposition(|window| window == b"local\0").unwrap();
    file[at..at + 5].copy_from_slice(b"count");
    let error = Recording::of(file).err().unwrap().to_string();
    assert!(error.contains("its clock \"count\" does not count ns"), "{error}");
}

#[test]
fn a_directory_without_pages_is_refused() {
    let error = Recording::open(&data("pages/formats")).err().unwrap().to_string();
    assert!(error.contains("a directory without pages"), "{error}");
}

#[test]
fn a_switch_is_as_in_the_text() {
    let switches = |name: &str| {
        read(name).0.into_iter().filter(|event| matches!(event.what, What::Switch { .. })).count()
    };
    assert!(switches("pages") > 50);
    assert_eq!(switches("pages"), switches("sched-ftrace.txt.gz"));
}
