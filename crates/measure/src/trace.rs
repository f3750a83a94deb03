//! The scheduler's tracepoints while a command runs (`perf_event_open(2)`), which needs root or CAP_PERFMON.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use perf_event::data::Record;
use perf_event::events::Tracepoint;
use perf_event::{Builder, SampleFlag, Sampler};

use crate::command::{Counted, MeasureError, run};
use crate::scheduling::{Distance, Scheduling};
use crate::symbols::Symbols;

/// Where tracefs is, and where it used to be.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Memory for all ring buffers together, in bytes.
const RINGS: usize = 256 << 20;
/// The least that a ring buffer gets, in bytes.
const RING: usize = 64 << 10;
/// How often ring buffers are emptied.
const DRAIN: Duration = Duration::from_millis(3);
/// One of so many switches is asked what for; a prime, so that it does not fall into step with a loop.
const ASKED: u64 = 31;

/// A tracepoint, with what is recorded of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Switch,
    /// The same with the kernel's stack, now and then.
    Wait,
    Waking,
    Migrate,
    Fork,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Switch, Kind::Wait, Kind::Waking, Kind::Migrate, Kind::Fork];

    fn name(self) -> &'static str {
        match self {
            Kind::Switch | Kind::Wait => "sched_switch",
            Kind::Waking => "sched_waking",
            Kind::Migrate => "sched_migrate_task",
            Kind::Fork => "sched_process_fork",
        }
    }

    fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Switch | Kind::Wait => &["prev_pid", "prev_state", "next_pid"],
            Kind::Waking => &["pid"],
            Kind::Migrate => &["pid", "orig_cpu", "dest_cpu"],
            Kind::Fork => &["parent_pid", "child_pid"],
        }
    }
}

/// Where a field is in a tracepoint's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// Reads the description of a field in a tracepoint's `format`.
    fn of(format: &str, name: &str) -> Option<Field> {
        let line = format.lines().find(|line| {
            let declared = line.trim_start().strip_prefix("field:").and_then(|rest| rest.split(';').next());
            declared.and_then(|declared| declared.split_whitespace().last()) == Some(name)
        })?;
        let number = |key: &str| line.split(';').find_map(|part| part.trim().strip_prefix(key)?.parse().ok());
        Some(Field { offset: number("offset:")?, size: number("size:")? })
    }

    fn read(self, raw: &[u8]) -> Option<i64> {
        let bytes = raw.get(self.offset..self.offset + self.size)?;
        Some(match self.size {
            8 => i64::from_ne_bytes(bytes.try_into().ok()?),
            _ => i64::from(i32::from_ne_bytes(bytes.try_into().ok()?)),
        })
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Switch { prev: i32, blocks: bool, next: i32 },
    Wait { prev: i32, cause: &'static str },
    Waking { pid: i32 },
    Migrate { pid: i32, from: usize, to: usize },
    Fork { parent: i32, child: i32 },
}

/// An event with its time in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    at: u64,
    what: What,
}

/// A ring buffer of one CPU and one tracepoint.
struct Ring {
    kind: Kind,
    fields: Vec<Field>,
    sampler: Sampler,
}

/// What a command did, as the tracepoints show it.
#[derive(Clone, Debug)]
pub struct Traced {
    /// What was counted meanwhile. Tracing takes time, so that times are longer than without.
    pub counted: Counted,
    /// What the scheduler did with the command and its children.
    pub scheduling: Scheduling,
    /// Events that found no room in the ring buffers.
    pub lost: u64,
}

/// Watches the tracepoints of all CPUs.
pub struct Tracer {
    rings: Vec<Ring>,
    symbols: Symbols,
}

impl Tracer {
    /// Opens the tracepoints of CPUs 0 to `cpus` - 1.
    ///
    /// # Errors
    /// This user may not, tracefs is not mounted, or the kernel has no tracepoints.
    pub fn new(cpus: usize) -> io::Result<Tracer> {
        let directory = TRACEFS.iter().map(|root| Path::new(root).join("events/sched"));
        let directory = directory.into_iter().find(|directory| directory.is_dir());
        let directory = directory.ok_or_else(|| match fs::read_dir(TRACEFS[0]) {
            Ok(_) => io::Error::new(io::ErrorKind::NotFound, "tracefs is not mounted"),
            Err(error) => error,
        })?;
        let bytes = (RINGS / (cpus * Kind::ALL.len()).max(1)).max(RING);
        // a ring has a power of two of pages
        let bytes = 1 << bytes.ilog2();
        let mut rings = Vec::new();
        for kind in Kind::ALL {
            let read = |file: &str| fs::read_to_string(directory.join(kind.name()).join(file));
            let id = read("id")?.trim().parse().map_err(io::Error::other)?;
            let format = read("format")?;
            let fields: Option<Vec<_>> = kind.fields().iter().map(|name| Field::of(&format, name)).collect();
            let fields =
                fields.ok_or_else(|| io::Error::other(format!("{} has other fields", kind.name())))?;
            for cpu in 0..cpus {
                let mut builder = Builder::new(Tracepoint::with_id(id));
                builder.any_pid().one_cpu(cpu).include_kernel().sample_period(1);
                builder.sample(SampleFlag::TIME).sample(SampleFlag::RAW);
                if kind == Kind::Wait {
                    builder.sample(SampleFlag::CALLCHAIN).exclude_callchain_user(true).sample_period(ASKED);
                }
                let sampler = match builder.build() {
                    // a CPU that is offline has no events
                    Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                    counter => counter?.sampled(bytes)?,
                };
                rings.push(Ring { kind, fields: fields.clone(), sampler });
            }
        }
        Ok(Tracer { rings, symbols: Symbols::of_kernel() })
    }

    /// Runs a command and follows it and its children. `distance` tells how far two CPUs are from each other.
    ///
    /// # Errors
    /// As of [`run`].
    pub fn run(
        self,
        words: &[&str],
        distance: impl Fn(usize, usize) -> Distance,
    ) -> Result<Traced, MeasureError> {
        let (counted, mut events, lost) = self.record(|| run(words));
        let counted = counted?;
        events.sort_by_key(|event| event.at);
        let scheduling = follow(&events, counted.pid, distance);
        Ok(Traced { counted, scheduling, lost })
    }

    /// Does something while the tracepoints are recorded, as [`Tracer::run`] does.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        self.record(work).0
    }

    /// Records while `work` is done; what that returns, the events, and how many were lost.
    fn record<T>(mut self, work: impl FnOnce() -> T) -> (T, Vec<Event>, u64) {
        let done = AtomicBool::new(false);
        for ring in &mut self.rings {
            // it was opened for this
            _ = ring.sampler.as_counter_mut().enable();
        }
        thread::scope(|scope| {
            let draining = scope.spawn(|| {
                let (mut events, mut lost) = (Vec::new(), 0);
                while !done.load(Ordering::Acquire) {
                    self.drain(&mut events, &mut lost);
                    thread::sleep(DRAIN);
                }
                self.drain(&mut events, &mut lost);
                (events, lost)
            });
            let did = work();
            done.store(true, Ordering::Release);
            let (events, lost) = draining.join().expect("reading buffers does not panic");
            (did, events, lost)
        })
    }

    fn drain(&mut self, events: &mut Vec<Event>, lost: &mut u64) {
        let symbols = &self.symbols;
        for ring in &mut self.rings {
            while let Some(record) = ring.sampler.next_record() {
                match record.parse_record() {
                    Ok(Record::Sample(sample)) => {
                        let raw = sample.raw().unwrap_or_default();
                        let field = |i: usize| ring.fields[i].read(raw);
                        let cause = || symbols.cause(sample.callchain().unwrap_or_default());
                        let what = what(ring.kind, field, cause);
                        events.extend(sample.time().zip(what).map(|(at, what)| Event { at, what }));
                    }
                    Ok(Record::Lost(record)) => *lost += record.lost,
                    _ => {}
                }
            }
        }
    }
}

/// An event from the fields of its tracepoint.
fn what(
    kind: Kind,
    field: impl Fn(usize) -> Option<i64>,
    cause: impl FnOnce() -> &'static str,
) -> Option<What> {
    let pid = |i| field(i).map(|pid| pid as i32);
    let cpu = |i| field(i).map(|cpu| cpu as usize);
    // TASK_INTERRUPTIBLE to TASK_DEAD; a task that is preempted has none of these
    let blocks = |i| field(i).map(|state| state & 0xff != 0);
    Some(match kind {
        Kind::Switch => What::Switch { prev: pid(0)?, blocks: blocks(1)?, next: pid(2)? },
        Kind::Wait if blocks(1)? => What::Wait { prev: pid(0)?, cause: cause() },
        Kind::Wait => return None,
        Kind::Waking => What::Waking { pid: pid(0)? },
        Kind::Migrate => What::Migrate { pid: pid(0)?, from: cpu(1)?, to: cpu(2)? },
        Kind::Fork => What::Fork { parent: pid(0)?, child: pid(1)? },
    })
}

/// Collects the events of a task and of all that it starts.
fn follow(events: &[Event], root: i32, distance: impl Fn(usize, usize) -> Distance) -> Scheduling {
    let mut own = HashSet::from([root]);
    let mut scheduling = Scheduling::default();
    for Event { at, what } in events {
        match *what {
            What::Fork { parent, child } => {
                if own.contains(&parent) {
                    own.insert(child);
                }
            }
            What::Switch { prev, blocks, next } => {
                if own.contains(&prev) {
                    scheduling.stops(*at, prev, blocks);
                }
                if own.contains(&next) {
                    scheduling.starts(*at, next);
                }
            }
            What::Wait { prev, cause } if own.contains(&prev) => scheduling.waits_for(cause),
            What::Waking { pid } if own.contains(&pid) => scheduling.waking(*at, pid),
            What::Migrate { pid, from, to } if own.contains(&pid) => scheduling.migrated(distance(from, to)),
            What::Wait { .. } | What::Waking { .. } | What::Migrate { .. } => {}
        }
    }
    scheduling
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `events/sched/sched_switch/format` of Linux 6.18, without what stands before and behind the fields.
    const SWITCH: &str = "\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
";

    #[test]
    fn fields_are_found_where_the_format_says() {
        assert_eq!(Field::of(SWITCH, "next_pid"), Some(Field { offset: 56, size: 4 }));
        assert_eq!(Field::of(SWITCH, "prev_state"), Some(Field { offset: 32, size: 8 }));
        assert_eq!(Field::of(SWITCH, "pid"), None);
    }

    #[test]
    fn a_record_is_read_by_its_fields() {
        let mut raw = [0u8; 64];
        raw[24..28].copy_from_slice(&7i32.to_ne_bytes());
        raw[32..40].copy_from_slice(&0x100i64.to_ne_bytes());
        raw[56..60].copy_from_slice(&9i32.to_ne_bytes());
        let fields = Kind::Switch.fields().iter().map(|name| Field::of(SWITCH, name).unwrap());
        let fields: Vec<_> = fields.collect();
        let event = |raw: &[u8]| what(Kind::Switch, |i| fields[i].read(raw), || "");
        // 0x100 is the `R+` of a preempted task
        assert_eq!(event(&raw), Some(What::Switch { prev: 7, blocks: false, next: 9 }));
        raw[32..40].copy_from_slice(&1i64.to_ne_bytes());
        assert_eq!(event(&raw), Some(What::Switch { prev: 7, blocks: true, next: 9 }));
        assert_eq!(event(&raw[..40]), None);
    }

    #[test]
    fn only_the_command_and_its_children_count() {
        let event = |at, what| Event { at, what };
        let to = |next| What::Switch { prev: 0, blocks: true, next };
        let events = [
            event(0, What::Fork { parent: 1, child: 2 }),
            event(0, What::Fork { parent: 2, child: 3 }),
            event(1_000, What::Waking { pid: 3 }),
            event(1_000, What::Waking { pid: 50 }),
            event(2_500, to(3)),
            event(99_000, to(50)),
            event(99_000, What::Migrate { pid: 3, from: 0, to: 1 }),
            event(99_000, What::Migrate { pid: 50, from: 0, to: 1 }),
            event(99_000, What::Wait { prev: 3, cause: "pipe read" }),
            event(99_000, What::Wait { prev: 50, cause: "futex" }),
        ];
        let scheduling = follow(&events, 1, |_, _| Distance::Llc);
        assert_eq!(scheduling.wakeup_latency_us(100.0), Some(1.5), "that of task 50 is longer");
        assert_eq!(scheduling.migrations(), [0, 1, 0, 0]);
        assert_eq!(scheduling.waits().keys().copied().collect::<Vec<_>>(), ["pipe read"]);
    }
}
