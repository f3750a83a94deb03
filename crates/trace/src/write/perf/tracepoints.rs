//! The tracepoints and their descriptions, those of Linux 6.12.

use super::bytes::Bytes;

/// Number of the first tracepoint; the kernel's own differ from build to build.
pub(super) const FIRST_ID: u16 = 300;

/// A field of a tracepoint.
enum Field {
    /// A name of 16 bytes.
    Comm(&'static str),
    /// 32 bits.
    Int(&'static str),
    /// 64 bits.
    Long(&'static str),
}

use Field::{Comm as Name, Int, Long};

/// A tracepoint of `sched`: its name, fields, and how they are printed.
pub(super) struct Tracepoint(&'static str, &'static [Field], &'static str);

const WOKEN: &[Field] = &[Name("comm"), Int("pid"), Int("prio"), Int("target_cpu")];
const WOKEN_TEXT: &str =
    r#""comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu"#;

/// All that are written; the index of each is its place in the file.
pub(super) const TRACEPOINTS: [Tracepoint; 8] = [
    Tracepoint(
        "sched_switch",
        &[
            Name("prev_comm"),
            Int("prev_pid"),
            Int("prev_prio"),
            Long("prev_state"),
            Name("next_comm"),
            Int("next_pid"),
            Int("next_prio"),
        ],
        r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, "|", { 0x1, "S" }, { 0x2, "D" }, { 0x10, "X" }) : "R", REC->prev_state & 0x100 ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio"#,
    ),
    Tracepoint("sched_waking", WOKEN, WOKEN_TEXT),
    Tracepoint("sched_wakeup_new", WOKEN, WOKEN_TEXT),
    Tracepoint("sched_wakeup", WOKEN, WOKEN_TEXT),
    Tracepoint(
        "sched_process_fork",
        &[Name("parent_comm"), Int("parent_pid"), Name("child_comm"), Int("child_pid")],
        r#""comm=%s pid=%d child_comm=%s child_pid=%d", REC->parent_comm, REC->parent_pid, REC->child_comm, REC->child_pid"#,
    ),
    Tracepoint(
        "sched_process_exit",
        &[Name("comm"), Int("pid"), Int("prio")],
        r#""comm=%s pid=%d prio=%d", REC->comm, REC->pid, REC->prio"#,
    ),
    Tracepoint(
        "sched_migrate_task",
        &[Name("comm"), Int("pid"), Int("prio"), Int("orig_cpu"), Int("dest_cpu")],
        r#""comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d", REC->comm, REC->pid, REC->prio, REC->orig_cpu, REC->dest_cpu"#,
    ),
    Tracepoint(
        "sched_stat_runtime",
        &[Name("comm"), Int("pid"), Long("runtime")],
        r#""comm=%s pid=%d runtime=%Lu [ns]", REC->comm, REC->pid, (unsigned long long)REC->runtime"#,
    ),
];
pub(super) const SWITCH: usize = 0;
pub(super) const WAKING: usize = 1;
pub(super) const WAKEUP_NEW: usize = 2;
pub(super) const WAKEUP: usize = 3;
pub(super) const FORK: usize = 4;
pub(super) const EXIT: usize = 5;
pub(super) const MIGRATE: usize = 6;
pub(super) const STAT_RUNTIME: usize = 7;

/// Fields that all tracepoints begin with.
const COMMON: &str = "\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
";
/// What describes the kernel's own ring buffer, which readers want to see.
const HEADER_PAGE: &str = "\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
";
const HEADER_EVENT: &str = "\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
";

/// The descriptions of all tracepoints.
pub(super) fn tracing_data() -> Bytes {
    let mut data = Bytes(b"\x17\x08\x44tracing0.6\0".to_vec());
    // little-endian, with longs of 8 bytes
    data.0.extend([0, 8]);
    data.u32(4096);
    for (name, text) in [("header_page", HEADER_PAGE), ("header_event", HEADER_EVENT)] {
        data.zero_ended(name);
        data.counted(text);
    }
    // none of ftrace's own
    data.u32(0);
    data.u32(1);
    data.zero_ended("sched");
    data.u32(TRACEPOINTS.len() as u32);
    for (event, tracepoint) in TRACEPOINTS.iter().enumerate() {
        data.counted(&tracepoint.describe(FIRST_ID + event as u16));
    }
    // no addresses, no formats of printk, no names of tasks
    data.u32(0);
    data.u32(0);
    data.u64(0);
    data
}

impl Tracepoint {
    pub(super) fn name(&self) -> &'static str {
        self.0
    }

    /// As `events/sched/NAME/format` says it.
    fn describe(&self, id: u16) -> String {
        let Tracepoint(name, fields, print) = self;
        let mut text = format!("name: {name}\nID: {id}\nformat:\n{COMMON}\n");
        let mut offset = 8usize;
        for field in *fields {
            let (declared, size, alignment, signed) = match field {
                Name(name) => (format!("char {name}[16]"), 16, 1, 0),
                Int(name) => (format!("int {name}"), 4, 4, 1),
                Long(name) => (format!("long {name}"), 8, 8, 1),
            };
            offset = offset.next_multiple_of(alignment);
            text += &format!("\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
            offset += size;
        }
        format!("{text}\nprint fmt: {print}\n")
    }
}
