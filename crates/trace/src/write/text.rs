//! Events as ftrace's text, which trace-cmd's readers, Perfetto and [`crate::TextReader`] read.

use std::io::{self, Write};

use super::{EventWriter, Place, Written};
use crate::event::{Comm, Leaving, Task};

const HEADER: &str = "\
# tracer: nop
#
#                                          _-----=> irqs-off/BH-disabled
#                                         / _----=> need-resched
#                                        | / _---=> hardirq/softirq
#                                        || / _--=> preempt-depth
#                                        ||| / _-=> migrate-disable
#                                        |||| /     delay
#           TASK-PID        TGID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |            |        |   |||||     |         |
";

/// Writes events as `/sys/kernel/tracing/trace` shows them with the option record-tgid, but with times in ns.
pub struct TextWriter<W> {
    out: W,
}

impl<W: Write> TextWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn new(mut out: W) -> io::Result<TextWriter<W>> {
        out.write_all(HEADER.as_bytes())?;
        Ok(TextWriter { out })
    }

    /// Writes what is buffered, and gives the output back.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn line(&mut self, place: &Place, event: &str) -> io::Result<()> {
        let Place { at, cpu, current, tgid, in_interrupt } = *place;
        let (comm, tgid) = match current.pid {
            0 => ("<idle>".to_owned(), "-------".to_owned()),
            _ => (shown(current.comm), format!("{tgid:>7}")),
        };
        let context = if in_interrupt { 'h' } else { '.' };
        let (seconds, ns) = (at / 1_000_000_000, at % 1_000_000_000);
        let pid = current.pid;
        writeln!(
            self.out,
            "{comm:>16}-{pid:<7} ({tgid}) [{cpu:03}] d.{context}2. {seconds:>5}.{ns:09}: {event}"
        )
    }
}

impl<W: Write> EventWriter for TextWriter<W> {
    fn task(&mut self, _: u64, _: &Task, _: i32) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, place: &Place, event: &Written) -> io::Result<()> {
        let current = &place.current;
        let text = match *event {
            Written::Switch { leaving, next } => {
                let state = match leaving {
                    Leaving::Runnable if current.pid == 0 => "R",
                    Leaving::Runnable => "R+",
                    Leaving::Blocked => "S",
                    Leaving::Dead => "X",
                };
                let (prev, next) = (named(current, "prev_", place.cpu), named(&next, "next_", place.cpu));
                format!("sched_switch: {prev} prev_state={state} ==> {next}")
            }
            Written::Waking { task, target } => {
                format!("sched_waking: {} target_cpu={target:03}", named(&task, "", 0))
            }
            Written::WakeupNew { task, target } => {
                format!("sched_wakeup_new: {} target_cpu={target:03}", named(&task, "", 0))
            }
            Written::Fork { child } => format!(
                "sched_process_fork: comm={} pid={} child_comm={} child_pid={}",
                shown(current.comm),
                current.pid,
                shown(child.comm),
                child.pid
            ),
            Written::Exit => {
                let whole = current.pid == place.tgid;
                format!("sched_process_exit: {} group_dead={whole}", named(current, "", 0))
            }
            Written::Migrate { task, from, to } => {
                format!("sched_migrate_task: {} orig_cpu={from} dest_cpu={to}", named(&task, "", 0))
            }
        };
        self.line(place, &text)
    }
}

/// A name on one line.
fn shown(comm: Comm) -> String {
    comm.to_string().replace(char::is_control, "?")
}

/// The fields of a task, whose names begin with `prefix`. The idle task is called by its CPU.
fn named(task: &Task, prefix: &str, cpu: usize) -> String {
    let comm = if task.pid == 0 { format!("swapper/{cpu}") } else { shown(task.comm) };
    format!("{prefix}comm={comm} {prefix}pid={} {prefix}prio={}", task.pid, task.prio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, What};
    use crate::{Format, TextReader};

    fn task(pid: i32, comm: &str) -> Task {
        Task { pid, comm: Comm::new(comm.as_bytes()), prio: 130 }
    }

    #[test]
    fn what_is_written_reads_back() {
        let (a, b, idle) = (task(7, "sender 3 of group 1"), task(8, "b\nc"), task(0, ""));
        let place = Place { at: 8_001_048_576, cpu: 3, current: a, tgid: 5, in_interrupt: false };
        let mut writer = TextWriter::new(Vec::new()).unwrap();
        writer.event(&place, &Written::Fork { child: b }).unwrap();
        writer.event(&place, &Written::WakeupNew { task: b, target: 2 }).unwrap();
        let interrupt = Place { in_interrupt: true, ..place };
        writer.event(&interrupt, &Written::Waking { task: b, target: 2 }).unwrap();
        writer.event(&place, &Written::Migrate { task: b, from: 2, to: 3 }).unwrap();
        writer.event(&place, &Written::Exit).unwrap();
        for leaving in [Leaving::Runnable, Leaving::Blocked, Leaving::Dead] {
            writer.event(&place, &Written::Switch { leaving, next: b }).unwrap();
        }
        let idle = Place { current: idle, ..place };
        writer.event(&idle, &Written::Switch { leaving: Leaving::Runnable, next: a }).unwrap();
        let text = writer.finish().unwrap();
        let mut reader = TextReader::new(&text[..]);
        let mut events = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            events.push(event);
        }
        let b = task(8, "b?c");
        let swapper = task(0, "swapper/3");
        let wanted = [
            What::Fork { parent: 7, child: 8, comm: b.comm },
            What::WakeupNew { task: b },
            What::Waking { task: b },
            What::Migrate { pid: 8 },
            What::Exit { pid: 7 },
            What::Switch { prev: a, leaving: Leaving::Runnable, next: b },
            What::Switch { prev: a, leaving: Leaving::Blocked, next: b },
            What::Switch { prev: a, leaving: Leaving::Dead, next: b },
            What::Switch { prev: swapper, leaving: Leaving::Runnable, next: a },
        ];
        assert_eq!(events.iter().map(|event| event.what).collect::<Vec<_>>(), wanted);
        let first = Event { what: wanted[0], comm: a.comm, ..events[0] };
        assert_eq!(events[0], first);
        assert_eq!((first.at, first.cpu, first.pid, first.tgid), (8_001_048_576, 3, 7, Some(5)));
        assert_eq!(events.iter().map(|event| event.in_interrupt == Some(true)).filter(|is| *is).count(), 1);
        assert_eq!((reader.format(), reader.unknown()), (Some(Format::Ftrace), None));
        assert_eq!((events[8].pid, events[8].tgid), (0, None));
    }
}
