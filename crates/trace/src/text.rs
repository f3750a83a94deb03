//! Events as lines of text, as `trace-cmd report`, `/sys/kernel/tracing/trace` and `perf script` print them.
//!
//! ```text
//!   comm-PID     (TGID)  [CPU] FLAGS SECONDS: EVENT: FIELDS          trace-cmd, ftrace
//!   comm PID/TID         [CPU] FLAGS SECONDS: sched:EVENT: FIELDS    perf script
//! ```
//!
//! The process and the flags may be missing. `LOST n EVENTS` stands where the recorder lost some.

use std::io::BufRead;

use crate::event::{Comm, Event, What};
use crate::payload;
use crate::{Format, ReadError};

/// The longest line, in bytes. A line of an event has a few hundred.
const MAX_LINE: u64 = 64 << 10;
/// A file of which so many lines at its beginning are nothing that is known is refused.
const MAX_UNKNOWN: u64 = 1000;

/// Reads events line by line.
pub struct TextReader<R> {
    input: R,
    buffer: Vec<u8>,
    /// Lines so far.
    line: u64,
    format: Option<Format>,
    /// The first line that was not understood, and how many there were.
    unknown: Option<(u64, u64)>,
    known: u64,
}

/// A line that is no event.
enum Line {
    Event(Event, Format),
    /// Nothing that a reader needs.
    Remark,
    Unknown,
}

impl<R: BufRead> TextReader<R> {
    /// Reads from the input's beginning.
    pub fn new(input: R) -> TextReader<R> {
        TextReader { input, buffer: Vec::new(), line: 0, format: None, unknown: None, known: 0 }
    }

    /// Who printed the lines; `None` before the first event.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The first line that was not understood, and how many there were.
    pub fn unknown(&self) -> Option<(u64, u64)> {
        self.unknown
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read, a scheduling event lacks what it needs, or the file is nothing that is known.
    pub fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        loop {
            self.buffer.clear();
            let limited = &mut std::io::Read::take(&mut self.input, MAX_LINE);
            if limited.read_until(b'\n', &mut self.buffer).map_err(ReadError::Io)? == 0 {
                return Ok(None);
            }
            self.line += 1;
            let ended = self.buffer.last() == Some(&b'\n');
            if !ended && self.buffer.len() as u64 == MAX_LINE {
                return Err(self.refuse("it is longer than 64 KiB, which no event is"));
            }
            match parse(self.buffer.trim_ascii_end()).map_err(|what| self.refuse(what))? {
                Line::Event(event, format) => {
                    self.known += 1;
                    self.format.get_or_insert(format);
                    return Ok(Some(event));
                }
                Line::Remark => {}
                Line::Unknown => {
                    let (_, count) = self.unknown.get_or_insert((self.line, 0));
                    *count += 1;
                    if self.known == 0 && *count >= MAX_UNKNOWN {
                        return Err(ReadError::Unknown);
                    }
                }
            }
        }
    }

    fn refuse(&self, what: &str) -> ReadError {
        ReadError::Line { line: self.line, what: what.to_owned() }
    }
}

/// Who was running, as a line begins with it.
struct Current {
    pid: i32,
    tgid: Option<i32>,
    comm: Comm,
    format: Format,
}

fn parse(line: &[u8]) -> Result<Line, &'static str> {
    let text = line.trim_ascii_start();
    if text.is_empty() || text[0] == b'#' {
        return Ok(Line::Remark);
    }
    let lost = || lost(text).map(|event| Line::Event(event, Format::Ftrace));
    let Some((current, cpu, rest)) = split_at_cpu(text) else {
        return lost().map_or_else(|| unplaced(text), Ok);
    };
    let Some((in_interrupt, at, rest)) = moment(rest)? else { return Ok(lost().unwrap_or(Line::Unknown)) };
    let Current { pid, tgid, comm, format } = current;
    let Some(colon) = payload::find(rest, b": ").or_else(|| rest.strip_suffix(b":").map(<[u8]>::len)) else {
        return Ok(lost().unwrap_or(Line::Unknown));
    };
    // perf puts the subsystem first
    let (name, fields) = (&rest[..colon], rest[colon + 1..].trim_ascii_start());
    let (name, fields) = match payload::find(name, b":") {
        Some(at) => (&name[at + 1..], fields),
        None => (name, fields),
    };
    let what = match payload::what(name, fields) {
        Some(what) => what,
        None => return Err("a scheduling event has other fields than the kernel prints, or is cut off"),
    };
    Ok(Line::Event(Event { at, cpu, pid, tgid, comm, in_interrupt, what }, format))
}

/// `CPU:2 [LOST 123 EVENTS]`, as trace-cmd and ftrace print it, and perf's own record of it.
fn lost(text: &[u8]) -> Option<Event> {
    let lost = |cpu, events| Event {
        at: 0,
        cpu,
        pid: 0,
        tgid: None,
        comm: Comm::default(),
        in_interrupt: None,
        what: What::Lost { events },
    };
    if let Some(rest) = text.strip_prefix(b"CPU:") {
        let cpu = payload::number(rest)?;
        let at = payload::find(rest, b"[LOST ")? + b"[LOST ".len();
        // `[LOST EVENTS]`, if their number is not known
        let events = payload::number(&rest[at..]).unwrap_or(0);
        return Some(lost(u32::try_from(cpu).ok()?, u64::try_from(events).ok()?));
    }
    let at = payload::find(text, b"PERF_RECORD_LOST")?;
    let rest = &text[at..];
    let count = payload::find(rest, b"lost ").and_then(|at| payload::number(&rest[at + b"lost ".len()..]));
    Some(lost(0, u64::try_from(count.unwrap_or(0)).ok()?))
}

/// The task that stands before `[CPU]`, the CPU, and what stands behind it. A name may have brackets, too, but after its own no
/// time follows.
fn split_at_cpu(text: &[u8]) -> Option<(Current, u32, &[u8])> {
    let mut from = 0;
    while let Some(open) = memchr::memchr(b'[', &text[from..]).map(|at| from + at) {
        let digits = text[open + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let close = open + 1 + digits;
        if (1..=6).contains(&digits) && text.get(close) == Some(&b']') {
            let (head, rest) = (text[..open].trim_ascii_end(), text[close + 1..].trim_ascii_start());
            if let Some(current) = current(head) {
                return Some((current, payload::number(&text[open + 1..close])? as u32, rest));
            }
        }
        from = open + 1;
    }
    None
}

/// A line without a CPU: of a call chain, a heading, or of an event that was printed without it.
fn unplaced(text: &[u8]) -> Result<Line, &'static str> {
    let sched = payload::find(text, b"sched:sched_").or_else(|| payload::find(text, b": sched_"));
    let heading = text.starts_with(b"version = ") || text.starts_with(b"cpus=");
    let called = text[0].is_ascii_hexdigit() && payload::find(text, b" (").is_some();
    match sched {
        Some(_) => Err(
            "an event has no CPU in brackets (perf script prints it with -F comm,pid,tid,cpu,time,event,trace)",
        ),
        None if heading || called => Ok(Line::Remark),
        None => Ok(Line::Unknown),
    }
}

/// Whether it is an interrupt, and the time in ns, with what follows.
#[expect(clippy::type_complexity, reason = "three results of one line")]
fn moment(rest: &[u8]) -> Result<Option<(Option<bool>, u64, &[u8])>, &'static str> {
    let mut words = rest.splitn(2, |byte| *byte == b' ');
    let (Some(first), Some(after)) = (words.next(), words.next()) else { return Ok(None) };
    let (flags, first, after) = match first.last() {
        Some(b':') => (None, first, after),
        _ => {
            let after = after.trim_ascii_start();
            let Some(blank) = after.iter().position(|byte| *byte == b' ') else { return Ok(None) };
            (Some(first), &after[..blank], &after[blank..])
        }
    };
    let Some(time) = first.strip_suffix(b":") else { return Ok(None) };
    let Some(at) = nanoseconds(time)? else { return Ok(None) };
    Ok(Some((flags.and_then(in_interrupt), at, after.trim_ascii_start())))
}

/// Seconds with a fraction, in ns.
fn nanoseconds(time: &[u8]) -> Result<Option<u64>, &'static str> {
    const CLOCK: &str = "its time is not in seconds (record with a clock that is, like `-C mono`)";
    let Some(point) = time.iter().position(|byte| *byte == b'.') else {
        let counts = !time.is_empty() && time.iter().all(u8::is_ascii_digit);
        return if counts { Err(CLOCK) } else { Ok(None) };
    };
    let (seconds, fraction) = (&time[..point], &time[point + 1..]);
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return Ok(None);
    }
    let value = |text: &[u8]| {
        text.iter().try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
    };
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let at = value(seconds).and_then(|s| s.checked_mul(1_000_000_000)?.checked_add(value(fraction)? * scale));
    at.map(Some).ok_or("its time is beyond what 64 bits hold in ns")
}

/// The third of ftrace's flags tells the context: `h`, `H`, `s`, `z` and `Z` are interrupts of all kinds. `None` if the
/// word is not those flags.
fn in_interrupt(flags: &[u8]) -> Option<bool> {
    (flags.len() >= 4).then(|| matches!(flags[2], b'h' | b'H' | b's' | b'z' | b'Z'))
}

/// The task that a line begins with.
fn current(head: &[u8]) -> Option<Current> {
    let blank = head.iter().rposition(|byte| *byte == b' ');
    let last = blank.map_or(head, |at| &head[at + 1..]);
    let is = |byte: &u8, others: &[u8]| byte.is_ascii_digit() || others.contains(byte);
    let perf = last == b"-1" || (last.first()?.is_ascii_digit() && last.iter().all(|byte| is(byte, b"/")));
    if perf {
        let comm = Comm::new(head[..blank?].trim_ascii());
        let mut ids = last.splitn(2, |byte| *byte == b'/').map(payload::number);
        let first = ids.next()??;
        return Some(match ids.next() {
            Some(tid) => Current { pid: tid?, tgid: Some(first), comm, format: Format::PerfScript },
            None => Current { pid: first, tgid: None, comm, format: Format::PerfScript },
        });
    }
    // `comm-12 (  10)`, `comm-12 (-----)`, `comm-12`
    let (task, tgid) = match head.strip_suffix(b")") {
        Some(open) => {
            let at = open.iter().rposition(|byte| *byte == b'(')?;
            (head[..at].trim_ascii_end(), payload::number(open[at + 1..].trim_ascii_start()))
        }
        None => (head, None),
    };
    let dash = task.iter().rposition(|byte| *byte == b'-')?;
    let digits = &task[dash + 1..];
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let comm = Comm::new(task[..dash].trim_ascii_start());
    Some(Current { pid: payload::number(digits)?, tgid, comm, format: Format::Ftrace })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Leaving, Task};

    fn read(text: &str) -> Result<Vec<Event>, String> {
        let mut reader = TextReader::new(text.as_bytes());
        let mut events = Vec::new();
        while let Some(event) = reader.next_event().map_err(|error| error.to_string())? {
            events.push(event);
        }
        Ok(events)
    }

    fn one(text: &str) -> Event {
        let events = read(text).unwrap();
        assert_eq!(events.len(), 1, "{text}");
        events[0]
    }

    fn task(pid: i32, comm: &str) -> Task {
        Task { pid, comm: Comm::new(comm.as_bytes()), prio: 120 }
    }

    #[test]
    fn every_dialect_says_the_same() {
        let switch =
            "prev_comm=a prev_pid=12 prev_prio=120 prev_state=S ==> next_comm=b c next_pid=13 next_prio=120";
        let wanted = What::Switch { prev: task(12, "a"), leaving: Leaving::Blocked, next: task(13, "b c") };
        for (line, tgid, in_interrupt, format) in [
            (
                format!("               a-12    [003]    76.211513: sched_switch:          {switch}"),
                None,
                None,
                Format::Ftrace,
            ),
            (
                format!("a-12    [003] d..2.    76.211513: sched_switch: {switch}"),
                None,
                Some(false),
                Format::Ftrace,
            ),
            (
                format!("a-12    (   10) [003] d..2.    76.211513: sched_switch: {switch}"),
                Some(10),
                Some(false),
                Format::Ftrace,
            ),
            (
                format!("a-12    (-----) [003] d.h2.    76.211513000: sched_switch: {switch}"),
                None,
                Some(true),
                Format::Ftrace,
            ),
            (
                format!("a    12 [003]    76.211513:       sched:sched_switch: {switch}"),
                None,
                None,
                Format::PerfScript,
            ),
            (
                format!("a 10/12 [003] d.s3.   76.211513000: sched:sched_switch: {switch}"),
                Some(10),
                Some(true),
                Format::PerfScript,
            ),
            (
                "a-12    [003]    76.211513: sched_switch: a:12 [120] S ==> b c:13 [120]".into(),
                None,
                None,
                Format::Ftrace,
            ),
        ] {
            let comm = Comm::new(b"a");
            let event = Event { at: 76_211_513_000, cpu: 3, pid: 12, tgid, comm, in_interrupt, what: wanted };
            assert_eq!(one(&line), event, "{line}");
            let mut reader = TextReader::new(line.as_bytes());
            reader.next_event().unwrap();
            assert_eq!(reader.format(), Some(format), "{line}");
        }
    }

    #[test]
    fn names_may_have_any_characters() {
        for comm in ["opt cgu.4", "kworker/u12:1", "a-b", "[x]", "x [001] 1.0: y", "Web Content"] {
            for line in [
                format!("{comm}-12 [003] 1.5: sched_waking: comm={comm} pid=9 prio=120 target_cpu=000"),
                format!("{comm} 12 [003] 1.5: sched:sched_waking: comm={comm} pid=9 prio=120 target_cpu=000"),
            ] {
                let event = one(&line);
                assert_eq!((event.comm, event.pid, event.cpu), (Comm::new(comm.as_bytes()), 12, 3), "{line}");
                assert_eq!(event.what, What::Waking { task: task(9, comm) }, "{line}");
            }
        }
    }

    #[test]
    fn losses_are_events() {
        for (line, cpu, events) in [
            ("CPU:2 [LOST 123 EVENTS]", 2, 123),
            ("CPU:1 [LOST EVENTS]", 1, 0),
            ("  perf 5/5 [001] 9.5: PERF_RECORD_LOST lost 17", 0, 17),
        ] {
            let event = one(line);
            assert_eq!((event.cpu, event.what), (cpu, What::Lost { events }), "{line}");
        }
    }

    #[test]
    fn remarks_are_passed_over() {
        let text =
            "version = 6\ncpus=6\n# tracer: nop\n#\n\n   ffffffff8 schedule+0x1 ([kernel.kallsyms])\nwhat?\n";
        let mut reader = TextReader::new(text.as_bytes());
        assert!(reader.next_event().unwrap().is_none());
        assert_eq!((reader.line(), reader.unknown()), (7, Some((7, 1))));
    }

    #[test]
    fn what_is_wrong_names_its_line() {
        let good = "a-1 [000] 1.0: print: x\n";
        for (line, what) in [
            ("a-1 [000] 1.0: sched_switch: prev_comm=a prev_p", "has other fields"),
            ("a 1 1.0: sched:sched_switch: x", "has no CPU in brackets"),
            ("a-1 [000] 123456: sched_switch: x", "not in seconds"),
            ("a-1 [000] 99999999999999.0: sched_switch: x", "beyond what 64 bits"),
        ] {
            let error = read(&format!("{good}{line}")).unwrap_err();
            assert!(error.contains(what) && error.starts_with("line 2: "), "{error}");
        }
        let long = format!("{good}{}", "x".repeat(MAX_LINE as usize + 1));
        assert!(read(&long).unwrap_err().contains("longer than 64 KiB"));
        assert!(read(&"nothing\n".repeat(5000)).unwrap_err().contains("not a recording"));
    }
}
