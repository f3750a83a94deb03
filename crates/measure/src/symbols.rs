//! Why a task blocks, by the functions on the kernel's stack.

use std::fs;

/// Functions of the kernel in which tasks wait, and what for. Of a stack, the innermost one of these counts.
const CAUSES: [(&str, &str); 22] = [
    ("pipe_read", "pipe read"),
    ("anon_pipe_read", "pipe read"),
    ("pipe_write", "pipe write"),
    ("anon_pipe_write", "pipe write"),
    ("unix_stream_read_generic", "socket read"),
    ("unix_stream_sendmsg", "socket write"),
    ("tcp_recvmsg", "socket read"),
    ("tcp_sendmsg", "socket write"),
    ("udp_recvmsg", "socket read"),
    ("futex_wait", "futex"),
    ("do_futex", "futex"),
    ("hrtimer_nanosleep", "timer"),
    ("do_nanosleep", "timer"),
    ("do_poll", "poll"),
    ("do_select", "poll"),
    ("do_sys_poll", "poll"),
    ("ep_poll", "poll"),
    ("do_wait", "child"),
    ("do_exit", "exit"),
    ("do_semtimedop", "semaphore"),
    ("wait_for_completion", "kernel"),
    ("mutex_lock", "kernel"),
];

/// The functions of the running kernel.
#[derive(Default)]
pub(crate) struct Symbols {
    /// Where each begins, and what is waited for in it, by address.
    starts: Vec<(u64, Option<&'static str>)>,
}

impl Symbols {
    /// Those of the running kernel, none if it does not show them to this user.
    pub(crate) fn of_kernel() -> Symbols {
        Symbols::of(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    fn of(text: &str) -> Symbols {
        let function = |line: &str| {
            let mut words = line.split_whitespace();
            let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
            let address = u64::from_str_radix(address, 16).ok().filter(|address| *address > 0)?;
            // the compiler's copies are called name.isra.0 and the like
            let name = name.split('.').next().unwrap_or(name).trim_start_matches('_');
            let cause = CAUSES.iter().find(|(function, _)| *function == name).map(|(_, cause)| *cause);
            matches!(kind, "t" | "T").then_some((address, cause))
        };
        let mut starts: Vec<_> = text.lines().filter_map(function).collect();
        starts.sort_unstable_by_key(|(address, _)| *address);
        Symbols { starts }
    }

    /// What the task waits for whose stack has these return addresses, innermost first.
    pub(crate) fn cause(&self, stack: &[u64]) -> &'static str {
        let cause = |address: &u64| {
            let after = self.starts.partition_point(|(start, _)| start <= address);
            self.starts.get(after.checked_sub(1)?)?.1
        };
        stack.iter().find_map(cause).unwrap_or("other")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_known_function_counts() {
        let symbols = Symbols::of(
            "ffffffff81000000 T schedule\nffffffff81001000 t pipe_read\nffffffff81002000 t vfs_read\n\
             ffffffff81003000 t __futex_wait.isra.0\nffffffff81004000 D some_data\n",
        );
        // 0xfff...80 is the mark of the kernel's part of a stack
        let cause = |stack: &[u64]| symbols.cause(stack);
        assert_eq!(
            cause(&[0xffff_ffff_8100_0010, 0xffff_ffff_8100_1fff, 0xffff_ffff_8100_2000]),
            "pipe read"
        );
        assert_eq!(cause(&[0xffff_ffff_8100_3000]), "futex");
        assert_eq!(cause(&[0xffff_ffff_8100_2001, 7]), "other");
        assert_eq!(cause(&[]), "other");
        assert_eq!(Symbols::of("0000000000000000 T pipe_read\n").cause(&[5]), "other", "hidden addresses");
    }
}
