//! The JSON of wprof, one object a line (its `JSON_SCHEMA.md`): a header, stacks, and events.
//!
//! An interrupt is one line, written at its end. Times are seconds since the session's start.

use std::borrow::Cow;
use std::io::BufRead;

use serde::Deserialize;

use crate::event::{Comm, Event, Handler, Leaving, Task, What};
use crate::held::Held;
use crate::recording::Source;
use crate::{Format, ReadError};

/// The longest line, in bytes: a stack may have some ten thousand.
const MAX_LINE: u64 = 1 << 20;
/// Default priority of a task (`DEFAULT_PRIO`); wakeups do not say it.
const DEFAULT_PRIO: i32 = 120;
/// The last second whose ns a number of 64 bits holds.
const MAX_TIME: f64 = 1e9;

#[derive(Deserialize)]
struct Header {
    version: String,
    #[serde(rename = "timer_freq_hz")]
    _timer: u64,
}

#[derive(Deserialize)]
struct Thread<'a> {
    /// An idle task has none.
    tid: Option<i32>,
    pid: i32,
    #[serde(borrow)]
    comm: Cow<'a, str>,
}

/// The fields of all events that are read.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    t: Option<Cow<'a, str>>,
    #[serde(default)]
    ts: f64,
    start_ts: Option<f64>,
    cpu: Option<u32>,
    #[serde(borrow)]
    task: Option<Thread<'a>>,
    #[serde(borrow)]
    prev: Option<Thread<'a>>,
    #[serde(borrow)]
    next: Option<Thread<'a>>,
    #[serde(borrow)]
    prev_state: Option<Cow<'a, str>>,
    prev_prio: Option<i32>,
    next_prio: Option<i32>,
    #[serde(borrow)]
    waker: Option<Thread<'a>>,
    #[serde(borrow)]
    wakee: Option<Thread<'a>>,
    #[serde(borrow)]
    child: Option<Thread<'a>>,
    #[serde(borrow)]
    action: Option<Cow<'a, str>>,
}

impl Thread<'_> {
    fn task(&self, prio: Option<i32>) -> Task {
        let comm = Comm::new(self.comm.as_bytes());
        Task { pid: self.tid.unwrap_or(0), comm, prio: prio.unwrap_or(DEFAULT_PRIO) }
    }
}

/// Reads a session.
pub(crate) struct WprofReader<R> {
    input: R,
    buffer: Vec<u8>,
    line: u64,
    held: Held<Event>,
    ended: bool,
}

impl<R: BufRead> WprofReader<R> {
    /// Reads the header.
    pub(crate) fn new(input: R) -> Result<WprofReader<R>, ReadError> {
        let mut reader = WprofReader { input, buffer: Vec::new(), line: 0, held: Held::new(0), ended: false };
        reader.read_line()?;
        let header: Result<Header, _> = serde_json::from_slice(&reader.buffer);
        let Ok(header) = header else {
            let instead = "record with trace-cmd, perf or wprof";
            return Err(ReadError::Unsupported { what: "JSON, but not of wprof", instead });
        };
        if !header.version.starts_with("3.") {
            let what = format!("it has version {:?} of wprof's JSON (allowed: 3.x)", header.version);
            return Err(reader.refuse(what));
        }
        Ok(reader)
    }

    /// Reads a line. False at the end.
    fn read_line(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
        let limited = &mut std::io::Read::take(&mut self.input, MAX_LINE);
        limited.read_until(b'\n', &mut self.buffer)?;
        self.line += u64::from(!self.buffer.is_empty());
        if self.buffer.len() as u64 == MAX_LINE {
            return Err(self.refuse("it is longer than 1 MiB, which no event is".into()));
        }
        Ok(!self.buffer.is_empty())
    }

    fn events(&mut self) -> Result<(), ReadError> {
        if self.buffer.trim_ascii().is_empty() {
            return Ok(());
        }
        let line: Line = serde_json::from_slice(&self.buffer).map_err(|error| ReadError::Line {
            line: self.line,
            what: format!("it is no event of wprof: {error}"),
        })?;
        // a stack
        let Some(kind) = line.t.as_deref() else { return Ok(()) };
        let missing = |what: &str| ReadError::Line { line: self.line, what: format!("{kind} has no {what}") };
        let thread = |thread: &Option<Thread>, what: &str| {
            thread.as_ref().map(|thread| thread.task(None)).ok_or_else(|| missing(what))
        };
        let ns = |seconds: f64| match seconds {
            0.0..MAX_TIME => Ok((seconds * 1e9).round() as u64),
            _ => Err(ReadError::Line { line: self.line, what: "its time is not within 30 years".into() }),
        };
        let at = ns(line.ts)?;
        let cpu = line.cpu.unwrap_or(0);
        let event = |at: u64, by: &Option<Thread>, what: What| {
            let current = by.as_ref().map(|thread| thread.task(None));
            let idle = current.is_some_and(|task| task.pid == 0);
            Event {
                at,
                cpu,
                pid: current.map_or(-1, |task| task.pid),
                tgid: by.as_ref().filter(|_| !idle).map(|thread| thread.pid),
                comm: current.map_or_else(Comm::default, |task| task.comm),
                // wakeups from interrupts are by the idle task
                in_interrupt: Some(idle && matches!(what, What::Waking { .. } | What::WakeupNew { .. })),
                what,
            }
        };
        let first = match kind {
            "switch" => {
                let task = |thread: &Option<Thread>, prio, what| {
                    thread.as_ref().map(|thread| thread.task(prio)).ok_or_else(|| missing(what))
                };
                let leaving = match line.prev_state.as_deref().ok_or_else(|| missing("prev_state"))? {
                    "runnable" | "preempted" | "waking" | "new" => Leaving::Runnable,
                    "exit_dead" | "exit_zombie" | "exit_trace" | "task_dead" => Leaving::Dead,
                    _ => Leaving::Blocked,
                };
                let prev = task(&line.prev, line.prev_prio, "prev")?;
                let next = task(&line.next, line.next_prio, "next")?;
                event(at, &line.prev, What::Switch { prev, leaving, next })
            }
            "waking" => event(at, &line.waker, What::Waking { task: thread(&line.wakee, "wakee")? }),
            "wakeup_new" => event(at, &line.waker, What::WakeupNew { task: thread(&line.wakee, "wakee")? }),
            "fork" => {
                let (parent, child) = (thread(&line.task, "task")?, thread(&line.child, "child")?);
                let what = What::Fork { parent: parent.pid, child: child.pid, comm: child.comm };
                event(at, &line.task, what)
            }
            "exec" => event(at, &line.task, What::Exec { pid: thread(&line.task, "task")?.pid }),
            "task_exit" => event(at, &line.task, What::Exit { pid: thread(&line.task, "task")?.pid }),
            "hardirq" | "softirq" | "ipi" => {
                let handler = match line.action.as_deref() {
                    Some("timer" | "hrtimer") if kind == "softirq" => Handler::Timer,
                    Some("net_rx" | "net_tx") => Handler::Network,
                    Some("block" | "irq_poll") => Handler::Block,
                    _ => Handler::Other,
                };
                if let Some(start) = line.start_ts {
                    let start = ns(start)?.min(at);
                    self.held.push(start, event(start, &line.task, What::HandlerEntry(handler)));
                    event(at, &line.task, What::HandlerExit)
                } else {
                    event(at, &line.task, What::Other)
                }
            }
            _ => event(at, &line.task, What::Other),
        };
        self.held.push(at, first);
        Ok(())
    }
}

impl<R: BufRead> Source for WprofReader<R> {
    fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        loop {
            if let Some(event) = self.held.pop(self.ended.then_some(u64::MAX)) {
                return Ok(Some(event));
            }
            if self.ended {
                return Ok(None);
            }
            match self.read_line()? {
                true => self.events()?,
                false => self.ended = true,
            }
        }
    }

    fn format(&self) -> Option<Format> {
        Some(Format::Wprof)
    }

    fn refuse(&self, what: String) -> ReadError {
        ReadError::Line { line: self.line, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        r#"{"version":"3.1","dur":1.0,"timer_freq_hz":997,"stacks":[],"stack_cnt":1,"pmus":[]}"#;

    fn read(lines: &str) -> Result<Vec<Event>, String> {
        let text = format!("{HEADER}\n{{\"id\":1,\"frames\":[\"[K] schedule\"]}}\n{lines}");
        let mut reader = WprofReader::new(text.as_bytes()).map_err(|error| error.to_string())?;
        let mut events = Vec::new();
        while let Some(event) = reader.next_event().map_err(|error| error.to_string())? {
            events.push(event);
        }
        Ok(events)
    }

    fn task(pid: i32, comm: &str) -> Task {
        Task { pid, comm: Comm::new(comm.as_bytes()), prio: 120 }
    }

    #[test]
    fn the_examples_of_the_schema_are_read() {
        let events = read(
            r#"{"ts":0.000297060,"t":"softirq","task":{"pid":0,"comm":"swapper/253"},"dur":0.000000411,"start_ts":0.000296649,"cpu":253,"action":"net_rx"}
{"ts":0.004985681,"t":"fork","task":{"tid":1318694,"pid":1318624,"comm":"Collection-7"},"child":{"tid":2688142,"pid":2688142,"comm":"Collection-7"},"cpu":211}
{"ts":0.032770664,"t":"exec","task":{"tid":2688142,"pid":2688142,"comm":"env"},"cpu":133,"filename":"/usr/bin/env"}
{"ts":0.036811976,"t":"task_exit","task":{"tid":2688143,"pid":2688143,"comm":"check_service_e"},"cpu":75}
{"ts":0.5001,"t":"waking","waker":{"tid":9999,"pid":5000,"comm":"scheduler"},"wakee":{"tid":5678,"pid":5000,"comm":"my\u0061pp"},"cpu":7,"waker_stack_id":99}
{"ts":0.5001002,"t":"waking","waker":{"pid":0,"comm":"swapper/7"},"wakee":{"tid":5678,"pid":5000,"comm":"myapp"},"cpu":7}
{"ts":0.500123456,"t":"switch","prev":{"tid":1234,"pid":1000,"comm":"worker"},"next":{"tid":5678,"pid":5000,"comm":"myapp"},"cpu":3,"prev_state":"interruptible_sleep","prev_prio":120,"next_prio":120,"waking_ts":0.5001}
{"ts":0.6,"t":"timer","task":{"tid":1234,"pid":1000,"comm":"myapp"},"cpu":5,"stack_id":17}
"#,
        )
        .unwrap();
        let what: Vec<_> = events.iter().map(|event| (event.at, event.cpu, event.pid, event.what)).collect();
        let woken = What::Waking { task: task(5678, "myapp") };
        let comm = Comm::new(b"Collection-7");
        let (prev, next) = (task(1234, "worker"), task(5678, "myapp"));
        assert_eq!(
            what,
            [
                (296_649, 253, 0, What::HandlerEntry(Handler::Network)),
                (297_060, 253, 0, What::HandlerExit),
                (4_985_681, 211, 1318694, What::Fork { parent: 1318694, child: 2688142, comm }),
                (32_770_664, 133, 2688142, What::Exec { pid: 2688142 }),
                (36_811_976, 75, 2688143, What::Exit { pid: 2688143 }),
                (500_100_000, 7, 9999, woken),
                (500_100_200, 7, 0, woken),
                (500_123_456, 3, 1234, What::Switch { prev, leaving: Leaving::Blocked, next }),
                (600_000_000, 5, 1234, What::Other),
            ]
        );
        assert_eq!(events[2].tgid, Some(1318624));
        assert_eq!([5, 6].map(|waking| events[waking].in_interrupt), [Some(false), Some(true)]);
    }

    #[test]
    fn what_is_wrong_names_its_line() {
        for (line, what) in [
            ("{\"t\":\"switch\",\"ts\":1.0,\"cpu\":1}", "line 3: switch has no prev_state"),
            ("{\"t\":\"waking\",\"ts\":1.0,\"cpu\":1}", "line 3: waking has no wakee"),
            ("{\"t\":\"timer\",\"ts\":-1}", "line 3: its time is not within"),
            ("{\"t\":", "line 3: it is no event of wprof"),
        ] {
            assert!(read(line).unwrap_err().starts_with(what), "{}", read(line).unwrap_err());
        }
        let old = HEADER.replace("3.1", "2.0");
        let error = WprofReader::new(old.as_bytes()).err().unwrap().to_string();
        assert!(error.contains("version \"2.0\""), "{error}");
    }
}
