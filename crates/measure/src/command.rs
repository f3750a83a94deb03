//! One command, and what was counted while it ran.

use std::fs;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use perf_event::events::Software;
use perf_event::{Builder, Counter};

/// Why a command could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The program is not installed.
    #[error("{program} is not installed")]
    Missing {
        /// Its name.
        program: String,
    },
    /// It could not be started or waited for.
    #[error("cannot run {program}: {source}")]
    Refused {
        /// Its name.
        program: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// It ended with another status than 0.
    #[error("`{command}` failed: {said}")]
    Failed {
        /// The command.
        command: String,
        /// The last line that it printed, or its status.
        said: String,
    },
}

/// What a command took. CPU time and switches are of the command and of all its children.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Its process.
    pub pid: i32,
    /// From its start to its end, in s.
    pub wall_s: f64,
    /// CPU time in user space and in the kernel, in s.
    pub cpu_s: f64,
    /// Context switches because a task blocked.
    pub switches_voluntary: u64,
    /// Context switches because a task was preempted.
    pub switches_involuntary: u64,
    /// Times that a task of the machine came to another CPU; None if this user may not count them.
    pub migrations: Option<u64>,
    /// CPU time of everything else on the machine meanwhile, in s, exact to about 0.01 s a CPU.
    pub others_cpu_s: f64,
    /// What it printed, on both outputs.
    pub output: String,
}

impl Counted {
    /// Context switches of either kind.
    pub fn switches(&self) -> u64 {
        self.switches_voluntary + self.switches_involuntary
    }
}

/// Runs a command, whose first word is a program of the search path.
///
/// # Errors
/// The program is not there, or it fails.
pub fn run(words: &[&str]) -> Result<Counted, MeasureError> {
    let program = words.first().copied().unwrap_or_default();
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => MeasureError::Missing { program: program.to_owned() },
        _ => MeasureError::Refused { program: program.to_owned(), source },
    };
    let (mut reader, writer) = pipe().map_err(refused)?;
    let mut command = Command::new(program);
    command.args(&words[1..]).stdin(Stdio::null());
    command.stdout(writer.try_clone().map_err(refused)?).stderr(writer);
    let migrations = Migrations::since_now();
    let (busy, start) = (busy_s(), Instant::now());
    let child = command.spawn().map_err(refused)?;
    // it holds the writing ends, without which the output never ends
    drop(command);
    let mut output = Vec::new();
    reader.read_to_end(&mut output).map_err(refused)?;
    let (status, usage) = wait(child.id()).map_err(refused)?;
    let wall = start.elapsed();
    let output = String::from_utf8_lossy(&output).into_owned();
    if status != 0 {
        let last = output.lines().rfind(|line| !line.trim().is_empty());
        let said = last.map_or_else(|| format!("status {status}"), str::to_owned);
        return Err(MeasureError::Failed { command: words.join(" "), said });
    }
    let cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    Ok(Counted {
        pid: child.id() as i32,
        wall_s: wall.as_secs_f64(),
        cpu_s,
        switches_voluntary: usage.ru_nvcsw as u64,
        switches_involuntary: usage.ru_nivcsw as u64,
        migrations: migrations.and_then(Migrations::count),
        others_cpu_s: (busy_s() - busy - cpu_s).max(0.0),
        output,
    })
}

/// A pipe of which no end is passed on by accident.
fn pipe() -> io::Result<(fs::File, fs::File)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both ends
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both were opened just now and belong to nobody else
    let own = |end| unsafe { std::os::fd::FromRawFd::from_raw_fd(end) };
    Ok((own(ends[0]), own(ends[1])))
}

/// Counts migrations on each CPU. Counting those of the command alone makes each of its context switches take longer:
/// `sysbench threads --threads=8` took a quarter more time.
struct Migrations(Vec<Counter>);

impl Migrations {
    fn since_now() -> Option<Migrations> {
        let counter = |cpu| {
            let mut builder = Builder::new(Software::CPU_MIGRATIONS);
            let mut counter = builder.any_pid().one_cpu(cpu).include_kernel().build()?;
            counter.enable().map(|()| counter)
        };
        online()?.into_iter().map(counter).collect::<io::Result<_>>().ok().map(Migrations)
    }

    fn count(mut self) -> Option<u64> {
        self.0.iter_mut().map(|counter| counter.read().ok()).sum()
    }
}

/// The numbers of the CPUs that are online.
fn online() -> Option<Vec<usize>> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let number = |line: &str| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok();
    Some(stat.lines().filter_map(number).collect())
}

/// Waits for a child: its exit status (128 and the signal that ended it), and what it and its children used.
fn wait(child: u32) -> io::Result<(i32, libc::rusage)> {
    // SAFETY: all zeros is a valid rusage, which the call overwrites
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    // SAFETY: both outlive the call
    while unsafe { libc::wait4(child as i32, &raw mut status, 0, &raw mut usage) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let status =
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
    Ok((status, usage))
}

fn seconds(time: libc::timeval) -> f64 {
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000).as_secs_f64()
}

/// Time that all CPUs together were not idle since the machine started, in s.
fn busy_s() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user
    let busy: f64 =
        ticks.iter().enumerate().filter(|(i, _)| ![3, 4].contains(i) && *i < 8).map(|(_, t)| t).sum();
    // SAFETY: a plain query
    busy / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_counted_with_its_children() {
        let counted =
            run(&["sh", "-c", "(for i in 1 2 3; do sleep 0.02; done); echo done; echo to stderr >&2"])
                .unwrap();
        assert_eq!(counted.output, "done\nto stderr\n");
        assert!(counted.wall_s >= 0.06, "{counted:?}");
        assert!(counted.switches_voluntary >= 3, "each sleep blocks: {counted:?}");
        assert!(counted.cpu_s < counted.wall_s);
    }

    #[test]
    fn cpu_time_is_that_of_the_command() {
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let (short, long) = (run(&["sh", "-c", ":"]).unwrap(), run(&["sh", "-c", spin]).unwrap());
        assert!(long.cpu_s > 0.03 && long.cpu_s > 5.0 * short.cpu_s, "{} and {}", long.cpu_s, short.cpu_s);
    }

    #[test]
    fn what_is_missing_or_fails_is_told() {
        let missing = run(&["no-such-benchmark"]).unwrap_err();
        assert_eq!(missing.to_string(), "no-such-benchmark is not installed");
        let failed = run(&["sh", "-c", "echo first; echo last; exit 3"]).unwrap_err();
        assert_eq!(failed.to_string(), "`sh -c echo first; echo last; exit 3` failed: last");
        assert!(run(&["sh", "-c", "kill -9 $$"]).unwrap_err().to_string().ends_with("status 137"));
    }
}
