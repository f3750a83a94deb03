//! The fields of events, as text.
//!
//! An event is printed by the format of its tracepoint (`comm=a pid=1 prio=120 target_cpu=000`), or, by libtraceevent's
//! plugin for the scheduler, shorter (`a:1 [120] CPU:000`). A name may contain any character, so numbers are looked for
//! from the end.

use crate::binary::softirq;
use crate::event::{Comm, Handler, Leaving, Task, What};

/// `NET_TX`, `NET_RX`, `BLOCK`, `IRQ_POLL`, `TIMER` and `HRTIMER` of the kernel's list of softirqs.
const SOFTIRQS: [(&[u8], Handler); 6] = [
    (b"action=NET_", Handler::Network),
    (b"action=BLOCK", Handler::Block),
    (b"action=IRQ_POLL", Handler::Block),
    (b"action=BLOCK_IOPOLL", Handler::Block),
    (b"action=TIMER", Handler::Timer),
    (b"action=HRTIMER", Handler::Timer),
];

/// What an event says. `None` if its fields are not those of the event.
pub(crate) fn what(event: &[u8], fields: &[u8]) -> Option<What> {
    Some(match event {
        b"sched_switch" => switch(fields)?,
        b"sched_waking" => What::Waking { task: woken(fields)? },
        b"sched_wakeup" => What::Wakeup { task: woken(fields)? },
        b"sched_wakeup_new" => What::WakeupNew { task: woken(fields)? },
        b"sched_process_fork" => {
            let (before, child) = around(fields, b" child_comm=")?;
            let (comm, pid) = around_last(child, b" child_pid=")?;
            What::Fork { parent: parent(before)?, child: number(pid)?, comm: Comm::new(comm) }
        }
        b"sched_process_exit" => What::Exit { pid: number(after_last(fields, b" pid=")?)? },
        b"sched_process_exec" => What::Exec { pid: number(after_last(fields, b" pid=")?)? },
        b"sched_migrate_task" => What::Migrate { pid: number(after_last(fields, b" pid=")?)? },
        b"irq_handler_entry" => What::HandlerEntry(Handler::Other),
        b"softirq_entry" => {
            let known = SOFTIRQS.iter().find(|(name, _)| find(fields, name).is_some());
            // `trace-cmd report -R` prints the number alone
            let alone = fields.strip_prefix(b"vec=").filter(|_| find(fields, b"action=").is_none());
            let numbered = || alone.and_then(number).map_or(Handler::Other, softirq);
            What::HandlerEntry(known.map_or_else(numbered, |(_, handler)| *handler))
        }
        b"hrtimer_expire_entry" | b"timer_expire_entry" => What::HandlerEntry(Handler::Timer),
        b"irq_handler_exit" | b"softirq_exit" | b"hrtimer_expire_exit" | b"timer_expire_exit" => {
            What::HandlerExit
        }
        _ => What::Other,
    })
}

/// `comm=a pid=1`, or, by `trace-cmd report -R`, `parent_comm=a parent_pid=1`
fn parent(fields: &[u8]) -> Option<i32> {
    number(after_last(fields, b" pid=").or_else(|| after_last(fields, b" parent_pid="))?)
}

fn switch(fields: &[u8]) -> Option<What> {
    let Some(rest) = fields.strip_prefix(b"prev_comm=") else { return short_switch(fields) };
    let (prev, next) = around(rest, b" next_comm=")?;
    let state = after_last(prev, b" prev_state=")?;
    let task = |text, pid, prio| -> Option<Task> {
        let (comm, rest) = around_last(text, pid)?;
        Some(Task { pid: number(rest)?, comm: Comm::new(comm), prio: number(after_last(rest, prio)?)? })
    };
    Some(What::Switch {
        prev: task(prev, b" prev_pid=", b" prev_prio=")?,
        leaving: leaving(state.split(|byte| *byte == b' ').next()?)?,
        next: task(next, b" next_pid=", b" next_prio=")?,
    })
}

/// `a:1 [120] S ==> b:2 [120]`
fn short_switch(fields: &[u8]) -> Option<What> {
    let (prev, next) = around(fields, b" ==> ")?;
    let state = prev.rsplit(|byte| *byte == b' ').next()?;
    Some(What::Switch { prev: short_task(prev)?, leaving: leaving(state)?, next: short_task(next)? })
}

fn woken(fields: &[u8]) -> Option<Task> {
    let Some(rest) = fields.strip_prefix(b"comm=") else { return short_task(fields) };
    let (comm, rest) = around_last(rest, b" pid=")?;
    Some(Task { pid: number(rest)?, comm: Comm::new(comm), prio: number(after_last(rest, b" prio=")?)? })
}

/// `a:1 [120]` and what follows
fn short_task(text: &[u8]) -> Option<Task> {
    let (name, prio) = around_last(text, b" [")?;
    let (comm, pid) = around_last(name, b":")?;
    Some(Task { pid: number(pid)?, comm: Comm::new(comm), prio: number(prio)? })
}

/// The letters of `sched_switch`'s `prev_state`, or its number. Of the number's bits the lowest eight say that a task
/// blocks, in all kernels; that of a preempted task is higher.
fn leaving(state: &[u8]) -> Option<Leaving> {
    match state.first()? {
        b'R' => Some(Leaving::Runnable),
        b'X' | b'Z' => Some(Leaving::Dead),
        b'A'..=b'Z' | b'a'..=b'z' => Some(Leaving::Blocked),
        _ => Some(leaving_bits(number(state)?.into())),
    }
}

/// The number of `sched_switch`'s `prev_state`: `EXIT_DEAD` and `EXIT_ZOMBIE` are 16 and 32 in all kernels.
pub(crate) fn leaving_bits(bits: i64) -> Leaving {
    match bits {
        _ if bits & 0x30 != 0 => Leaving::Dead,
        _ if bits & 0xff != 0 => Leaving::Blocked,
        _ => Leaving::Runnable,
    }
}

/// The integer that a text begins with.
pub(crate) fn number(text: &[u8]) -> Option<i32> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut value: i32 = 0;
    let mut any = false;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        value = value.checked_mul(10)?.checked_add(i32::from(digit - b'0'))?;
        any = true;
    }
    any.then_some(if negative { -value } else { value })
}

/// Where a part begins for the first time. Parts begin with a byte that is rare, so looking for that is fast.
pub(crate) fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memchr_iter(part[0], text).find(|at| text[*at..].starts_with(part))
}

/// The same for the last time.
fn rfind(text: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(part[0], text).find(|at| text[*at..].starts_with(part))
}

/// What stands before a part and behind it.
fn around<'a>(text: &'a [u8], part: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    find(text, part).map(|at| (&text[..at], &text[at + part.len()..]))
}

/// The same of its last place.
fn around_last<'a>(text: &'a [u8], part: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    rfind(text, part).map(|at| (&text[..at], &text[at + part.len()..]))
}

fn after_last<'a>(text: &'a [u8], part: &[u8]) -> Option<&'a [u8]> {
    rfind(text, part).map(|at| &text[at + part.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(pid: i32, comm: &str, prio: i32) -> Task {
        Task { pid, comm: Comm::new(comm.as_bytes()), prio }
    }

    #[test]
    fn a_switch_is_read_in_every_dialect() {
        let wanted = |leaving| {
            Some(What::Switch { prev: task(1, "a b=c", 120), leaving, next: task(2, "d-e:3", 130) })
        };
        let long = |state: &str, arrow: &str| {
            format!(
                "prev_comm=a b=c prev_pid=1 prev_prio=120 prev_state={state}{arrow} next_comm=d-e:3 next_pid=2 next_prio=130"
            )
        };
        for (state, leaving) in [
            ("R", Leaving::Runnable),
            ("R+", Leaving::Runnable),
            ("S", Leaving::Blocked),
            ("D|K", Leaving::Blocked),
            ("I", Leaving::Blocked),
            ("t", Leaving::Blocked),
            ("X", Leaving::Dead),
            ("Z", Leaving::Dead),
            ("0", Leaving::Runnable),
            ("256", Leaving::Runnable),
            ("4096", Leaving::Runnable),
            ("1", Leaving::Blocked),
            ("130", Leaving::Blocked),
            ("32", Leaving::Dead),
        ] {
            assert_eq!(what(b"sched_switch", long(state, " ==>").as_bytes()), wanted(leaving), "{state}");
            assert_eq!(what(b"sched_switch", long(state, "").as_bytes()), wanted(leaving), "{state}");
            let short = format!("a b=c:1 [120] {state} ==> d-e:3:2 [130]");
            assert_eq!(what(b"sched_switch", short.as_bytes()), wanted(leaving), "{short}");
        }
    }

    #[test]
    fn a_wakeup_is_read_in_every_dialect() {
        let wanted = task(7, "kworker/0:1", 120);
        for fields in [
            "comm=kworker/0:1 pid=7 prio=120 target_cpu=000",
            "comm=kworker/0:1 pid=7 prio=120 success=1 target_cpu=2",
            "kworker/0:1:7 [120] success=1 CPU:002",
            "kworker/0:1:7 [120] CPU:002",
        ] {
            assert_eq!(what(b"sched_waking", fields.as_bytes()), Some(What::Waking { task: wanted }));
            assert_eq!(what(b"sched_wakeup", fields.as_bytes()), Some(What::Wakeup { task: wanted }));
            assert_eq!(what(b"sched_wakeup_new", fields.as_bytes()), Some(What::WakeupNew { task: wanted }));
        }
    }

    #[test]
    fn other_events_are_read() {
        let fork = b"comm=a b pid=5 child_comm=c d child_pid=6";
        let child = What::Fork { parent: 5, child: 6, comm: Comm::new(b"c d") };
        assert_eq!(what(b"sched_process_fork", fork), Some(child));
        let fork = b"parent_comm=a b parent_pid=5 child_comm=c d child_pid=6";
        assert_eq!(what(b"sched_process_fork", fork), Some(child));
        let exit = b"comm=a pid=5 prio=120 group_dead=false";
        assert_eq!(what(b"sched_process_exit", exit), Some(What::Exit { pid: 5 }));
        let exec = b"filename=/bin/a pid=6 old_pid=5";
        assert_eq!(what(b"sched_process_exec", exec), Some(What::Exec { pid: 6 }));
        let migrate = b"comm=a pid=5 prio=120 orig_cpu=0 dest_cpu=1";
        assert_eq!(what(b"sched_migrate_task", migrate), Some(What::Migrate { pid: 5 }));
        let entry = |vector: &str| what(b"softirq_entry", format!("vec=3 [action={vector}]").as_bytes());
        assert_eq!(entry("NET_RX"), Some(What::HandlerEntry(Handler::Network)));
        assert_eq!(entry("BLOCK"), Some(What::HandlerEntry(Handler::Block)));
        assert_eq!(entry("TIMER"), Some(What::HandlerEntry(Handler::Timer)));
        assert_eq!(entry("RCU"), Some(What::HandlerEntry(Handler::Other)));
        assert_eq!(what(b"softirq_entry", b"vec=1"), Some(What::HandlerEntry(Handler::Timer)));
        assert_eq!(what(b"print", b"anything"), Some(What::Other));
    }

    #[test]
    fn fields_that_are_missing_are_no_event() {
        for fields in [
            "",
            "prev_comm=a",
            "prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b",
            "a ==> b",
        ] {
            assert_eq!(what(b"sched_switch", fields.as_bytes()), None, "{fields}");
        }
        assert_eq!(what(b"sched_waking", b"comm=a pid=99999999999 prio=120"), None);
        assert_eq!(what(b"sched_process_fork", b"comm=a pid=1"), None);
    }
}
