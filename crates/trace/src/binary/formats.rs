//! Events in the kernel's own form, by the descriptions of their fields (`events/SYSTEM/EVENT/format`).

use super::bytes::Order;
use crate::event::{Comm, Handler, Task, What};
use crate::payload;

/// The largest description that is read, in bytes.
pub(crate) const MAX_FORMAT: u64 = 1 << 20;

/// `common_flags`: a handler of an interrupt, of a softirq or of an NMI (`TRACE_FLAG_HARDIRQ`, `_SOFTIRQ`, `_NMI`).
const IN_INTERRUPT: u64 = 0x08 | 0x10 | 0x40;

/// Softirqs by their numbers.
const SOFTIRQS: [Handler; 9] = [
    Handler::Other,
    Handler::Timer,
    Handler::Network,
    Handler::Network,
    Handler::Block,
    Handler::Block,
    Handler::Other,
    Handler::Other,
    Handler::Timer,
];

/// What handles a softirq.
pub(crate) fn softirq(vector: i32) -> Handler {
    usize::try_from(vector).ok().and_then(|vector| SOFTIRQS.get(vector).copied()).unwrap_or(Handler::Other)
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    array: Array,
}

/// How a field has its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Array {
    /// At the field itself.
    Here,
    /// The field says where (`__data_loc`).
    At,
    /// The field says how far behind it (`__rel_loc`).
    Behind,
}

/// The field that a line describes.
pub(crate) fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?.trim();
    let name = declared.rsplit([' ', '*']).next()?;
    let number = |part: Option<&str>, what: &str| part?.strip_prefix(what)?.parse().ok();
    let offset = number(parts.next(), "offset:").filter(|offset| *offset <= 1 << 20)?;
    let size = number(parts.next(), "size:").filter(|size| *size <= 1 << 20)?;
    let array = match declared.split(' ').next()? {
        "__data_loc" => Array::At,
        "__rel_loc" => Array::Behind,
        _ => Array::Here,
    };
    Some(Field { name: name.split('[').next()?.to_owned(), offset, size, array })
}

/// An event whose fields are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Switch,
    Waking,
    Wakeup,
    WakeupNew,
    Fork,
    Exit,
    Exec,
    Migrate,
    Irq,
    Softirq,
    Timer,
    HandlerExit,
}

/// Their subsystems, names and the fields that are read.
const EVENTS: [(&str, &str, Kind, &[&str]); 16] = [
    (
        "sched",
        "sched_switch",
        Kind::Switch,
        &["prev_pid", "prev_comm", "prev_prio", "next_pid", "next_comm", "next_prio", "prev_state"],
    ),
    ("sched", "sched_waking", Kind::Waking, &["pid", "comm", "prio"]),
    ("sched", "sched_wakeup", Kind::Wakeup, &["pid", "comm", "prio"]),
    ("sched", "sched_wakeup_new", Kind::WakeupNew, &["pid", "comm", "prio"]),
    ("sched", "sched_process_fork", Kind::Fork, &["parent_pid", "child_comm", "child_pid"]),
    ("sched", "sched_process_exit", Kind::Exit, &["pid"]),
    ("sched", "sched_process_exec", Kind::Exec, &["pid"]),
    ("sched", "sched_migrate_task", Kind::Migrate, &["pid"]),
    ("irq", "irq_handler_entry", Kind::Irq, &[]),
    ("irq", "irq_handler_exit", Kind::HandlerExit, &[]),
    ("irq", "softirq_entry", Kind::Softirq, &["vec"]),
    ("irq", "softirq_exit", Kind::HandlerExit, &[]),
    ("timer", "hrtimer_expire_entry", Kind::Timer, &[]),
    ("timer", "hrtimer_expire_exit", Kind::HandlerExit, &[]),
    ("timer", "timer_expire_entry", Kind::Timer, &[]),
    ("timer", "timer_expire_exit", Kind::HandlerExit, &[]),
];

/// The names of what is needed: subsystem and event.
pub(crate) fn needed() -> impl Iterator<Item = (&'static str, &'static str)> {
    EVENTS.iter().map(|(system, name, ..)| (*system, *name))
}

#[derive(Clone, Debug)]
struct Layout {
    kind: Kind,
    fields: Vec<Field>,
}

/// What an event says, and who ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub(crate) pid: i32,
    pub(crate) in_interrupt: bool,
    pub(crate) what: What,
}

/// The descriptions of events.
#[derive(Clone, Debug)]
pub(crate) struct Formats {
    order: Order,
    /// By the events' numbers.
    layouts: Vec<Option<Layout>>,
    /// Where every event has its number, its flags and its task.
    common: [(usize, usize); 3],
}

impl Formats {
    pub(crate) fn new(order: Order) -> Formats {
        Formats { order, layouts: Vec::new(), common: [(0, 2), (2, 1), (4, 4)] }
    }

    /// No event is described.
    pub(crate) fn is_empty(&self) -> bool {
        self.layouts.is_empty()
    }

    /// Takes a description; one that is not needed says no more than where the common fields are.
    ///
    /// # Errors
    /// It lacks what is needed.
    pub(crate) fn add(&mut self, system: &str, text: &str) -> Result<(), String> {
        let after = |word: &str| text.lines().find_map(|line| line.trim().strip_prefix(word)).map(str::trim);
        let name = after("name:").ok_or("a description of an event has no name")?;
        let Some((_, _, kind, wanted)) =
            EVENTS.iter().find(|(of, event, ..)| *of == system && *event == name)
        else {
            return Ok(());
        };
        let id: u16 = after("ID:")
            .and_then(|id| id.parse().ok())
            .ok_or_else(|| format!("the description of {name} has no number"))?;
        let fields: Vec<_> = text.lines().filter_map(field).collect();
        let find = |wanted: &str| {
            let found = fields.iter().find(|field| field.name == wanted);
            found.ok_or_else(|| format!("the description of {name} has no field {wanted}"))
        };
        let is_text = |field: &Field| field.name.ends_with("comm");
        let is_number = |field: &Field| matches!(field.size, 1 | 2 | 4 | 8);
        let wanted: Vec<_> = wanted.iter().map(|name| find(name).cloned()).collect::<Result<_, _>>()?;
        let common = ["common_type", "common_flags", "common_pid"].map(find);
        for (place, field) in self.common.iter_mut().zip(common) {
            let field = field?;
            *place = (field.offset, field.size);
        }
        let wrong = fields.iter().filter(|field| field.name.starts_with("common_")).chain(&wanted);
        let mut wrong =
            wrong.filter(|field| !(is_number(field) || is_text(field) && field.array == Array::Here));
        if let Some(field) = wrong.next() {
            return Err(format!(
                "the description of {name} has a field {} of {} bytes",
                field.name, field.size
            ));
        }
        let id = usize::from(id);
        if self.layouts.len() <= id {
            self.layouts.resize(id + 1, None);
        }
        self.layouts[id] = Some(Layout { kind: *kind, fields: wanted });
        Ok(())
    }

    /// Reads an event.
    ///
    /// # Errors
    /// It is shorter than its description says.
    pub(crate) fn decode(&self, record: &[u8]) -> Result<Decoded, &'static str> {
        const SHORT: &str = "an event is shorter than its description says";
        let number = |(offset, size): (usize, usize)| {
            let bytes = record.get(offset..offset + size)?;
            Some(match size {
                4 => self.order.u32(bytes)? as i32 as i64,
                _ => self.order.number(bytes) as i64,
            })
        };
        let [id, flags, pid] = self.common.map(number);
        let (id, flags, pid) = (id.ok_or(SHORT)?, flags.ok_or(SHORT)?, pid.ok_or(SHORT)? as i32);
        let layout = usize::try_from(id).ok().and_then(|id| self.layouts.get(id)?.as_ref());
        let what = match layout {
            Some(layout) => {
                let int = |field: &Field| number((field.offset, field.size));
                let text = |field: &Field| self.text(record, field);
                layout.read(int, text).ok_or(SHORT)?
            }
            None => What::Other,
        };
        Ok(Decoded { pid, in_interrupt: flags as u64 & IN_INTERRUPT != 0, what })
    }

    fn text(&self, record: &[u8], field: &Field) -> Option<Comm> {
        let here = record.get(field.offset..field.offset + field.size)?;
        let bytes = match field.array {
            Array::Here => here,
            dynamic => {
                let word = self.order.u32(here)? as usize;
                let from = if dynamic == Array::Behind { field.offset + field.size } else { 0 };
                let start = from + (word & 0xffff);
                record.get(start..start + (word >> 16))?
            }
        };
        Some(Comm::new(bytes.split(|byte| *byte == 0).next()?))
    }
}

impl Layout {
    /// The fields in the order of `EVENTS`.
    fn read(
        &self,
        int: impl Fn(&Field) -> Option<i64>,
        text: impl Fn(&Field) -> Option<Comm>,
    ) -> Option<What> {
        let int = |index: usize| int(&self.fields[index]);
        let text = |index: usize| text(&self.fields[index]);
        let pid = |index| Some(int(index)? as i32);
        let task = |first| Some(Task { pid: pid(first)?, comm: text(first + 1)?, prio: pid(first + 2)? });
        Some(match self.kind {
            Kind::Switch => {
                What::Switch { prev: task(0)?, next: task(3)?, leaving: payload::leaving_bits(int(6)?) }
            }
            Kind::Waking => What::Waking { task: task(0)? },
            Kind::Wakeup => What::Wakeup { task: task(0)? },
            Kind::WakeupNew => What::WakeupNew { task: task(0)? },
            Kind::Fork => What::Fork { parent: pid(0)?, comm: text(1)?, child: pid(2)? },
            Kind::Exit => What::Exit { pid: pid(0)? },
            Kind::Exec => What::Exec { pid: pid(0)? },
            Kind::Migrate => What::Migrate { pid: pid(0)? },
            Kind::Irq => What::HandlerEntry(Handler::Other),
            Kind::Softirq => What::HandlerEntry(softirq(pid(0)?)),
            Kind::Timer => What::HandlerEntry(Handler::Timer),
            Kind::HandlerExit => What::HandlerExit,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMON: &str = "ID: 9\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    fn formats(system: &str, name: &str, fields: &str) -> Result<Formats, String> {
        let mut formats = Formats::new(Order::Little);
        formats.add(system, &format!("name: {name}\n{COMMON}{fields}"))?;
        Ok(formats)
    }

    fn record(flags: u8, pid: i32, fields: &[&[u8]]) -> Vec<u8> {
        [&[9, 0, flags, 0], &pid.to_le_bytes()[..], &fields.concat()].concat()
    }

    #[test]
    fn a_name_of_any_length_is_read() {
        // as before Linux 6.16, and since
        let fixed = "\tfield:pid_t parent_pid;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:char child_comm[16];\toffset:12;\tsize:16;\tsigned:1;\n\
            \tfield:pid_t child_pid;\toffset:28;\tsize:4;\tsigned:1;\n";
        let placed = |word: &str| {
            format!(
                "\tfield:pid_t parent_pid;\toffset:8;\tsize:4;\tsigned:1;\n\
                 \tfield:{word} char[] child_comm;\toffset:12;\tsize:4;\tsigned:0;\n\
                 \tfield:pid_t child_pid;\toffset:16;\tsize:4;\tsigned:1;\n"
            )
        };
        let (parent, child) = (5i32.to_le_bytes(), 6i32.to_le_bytes());
        let wanted = What::Fork { parent: 5, child: 6, comm: Comm::new(b"sh") };
        for (fields, bytes) in [
            (fixed.to_owned(), record(0, 5, &[&parent, b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0", &child])),
            (placed("__data_loc"), record(0, 5, &[&parent, &[20, 0, 3, 0], &child, b"sh\0"])),
            (placed("__rel_loc"), record(0, 5, &[&parent, &[4, 0, 3, 0], &child, b"sh\0"])),
        ] {
            let formats = formats("sched", "sched_process_fork", &fields).unwrap();
            let decoded = formats.decode(&bytes).unwrap();
            assert_eq!(decoded, Decoded { pid: 5, in_interrupt: false, what: wanted });
            assert!(formats.decode(&bytes[..15]).unwrap_err().contains("shorter"));
        }
    }

    #[test]
    fn flags_say_whether_it_was_an_interrupt() {
        let formats =
            formats("irq", "softirq_entry", "\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n");
        let formats = formats.unwrap();
        for (flags, vector, handler) in [
            (0x01, 3, Handler::Network),
            (0x08, 4, Handler::Block),
            (0x11, 8, Handler::Timer),
            (0x40, 99, Handler::Other),
        ] {
            let decoded = formats.decode(&record(flags, -1, &[&[vector, 0, 0, 0]])).unwrap();
            let wanted = Decoded { pid: -1, in_interrupt: flags != 1, what: What::HandlerEntry(handler) };
            assert_eq!(decoded, wanted);
        }
    }

    #[test]
    fn what_is_not_described_is_another_event() {
        let formats = formats("other", "sched_switch", "").unwrap();
        assert!(formats.is_empty());
        assert_eq!(formats.decode(&record(0, 3, &[])).unwrap().what, What::Other);
    }

    #[test]
    fn a_description_without_what_is_needed_is_refused() {
        let wrong = |fields: &str| formats("sched", "sched_process_exit", fields).unwrap_err();
        assert!(wrong("").contains("sched_process_exit has no field pid"));
        assert!(
            wrong("\tfield:pid_t pid;\toffset:8;\tsize:3;\tsigned:1;\n").contains("a field pid of 3 bytes")
        );
        assert!(Formats::new(Order::Little).add("sched", "ID: 3").unwrap_err().contains("no name"));
    }
}
