//! Recorded workloads: what tasks of a real machine did, and what caused it.
//!
//! A [`Recorded`] is independent of where and when its tasks ran: it has how much they computed, whom they woke, and
//! what they waited for. [`file`] has its format, `form` the files' forms, `replay` the programs that do the same.

mod births;
mod figures;
mod file;
mod form;
mod replay;
mod steps;
mod synth;

use crate::{Scale, TaskGroup, Workload, WorkloadError};

pub use figures::{Figures, Watch, class, class_of_task};
pub use file::VERSION;
pub use form::{ALLOWED, Form};

/// Most tasks of a recorded workload.
pub const MAX_TASKS: usize = 100_000;
/// Most steps of all its tasks together.
pub const MAX_STEPS: usize = 10_000_000;

/// What a task does next. Tasks are named by their index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Computes: ns of work, which is time at capacity 1024 on a core of its own.
    Run(u64),
    /// Wakes a task. If that one does not wait for it yet, it will not have to.
    Wake(u32),
    /// Waits until a task wakes it.
    Await(u32),
    /// Puts something on a channel, from which any task takes it.
    Post(u32),
    /// Takes something from a channel; waits while there is nothing.
    Take(u32),
    /// Takes something from a channel, as [`Step::Take`]: a request, which is to be answered.
    Request(u32),
    /// Answers the last request that is not answered yet: puts something on the channel on which whoever made it awaits
    /// answers.
    Answer,
    /// Waits for so many ns from now, on a timer.
    Sleep(u64),
    /// Waits for a device, which takes so many ns from now.
    Device(u64),
    /// Waits until so many ns after its own start, or, if that has passed, not at all.
    Until(u64),
    /// Starts a task, as its parent.
    Start(u32),
    /// May run on the CPUs of a set from now on, an index in [`Recorded::cpu_sets`]; `None` for all.
    Allow(Option<u32>),
    /// Has another nice value from now on, -20 to 19.
    Nice(i8),
    /// Is in another task group from now on, an index in [`Recorded::groups`]; `None` for the workload's own.
    Group(Option<u32>),
    /// Gives back its memory and files, as it does otherwise at its end: the wakeups that follow come after that.
    Exit,
}

/// A task of a recorded workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Name.
    pub name: String,
    /// Number of its process; threads of a process have the same.
    pub process: u32,
    /// Nice value that it begins with, -20 to 19.
    pub nice: i8,
    /// CPUs of the recorded machine that it may run on when it begins; empty for all.
    pub cpus: Vec<u32>,
    /// The task group that it begins in, an index in [`Recorded::groups`].
    pub group: Option<u32>,
    /// The channel on which it awaits answers to its requests, if it does.
    pub answers: Option<u32>,
    /// What it does, before it ends.
    pub steps: Vec<Step>,
}

/// A recorded workload. A task that no other starts was there before the recording began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// What was recorded, for people.
    pub origin: String,
    /// What had to be assumed because the recording does not say it, one sentence each.
    pub assumptions: Vec<String>,
    /// What was recorded of each class; empty if the file does not say it.
    pub classes: Vec<Figures>,
    /// How long was recorded, in s; 0 if the file does not say it.
    pub duration_s: f64,
    /// Sets of CPUs of the recorded machine, for [`Step::Allow`].
    pub cpu_sets: Vec<Vec<u32>>,
    /// The task groups.
    pub groups: Vec<TaskGroup>,
    /// The channels whose messages go over sockets, so that their lines move between CPUs; the work of the tasks does not
    /// have that.
    pub sockets: Vec<u32>,
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// The recorded workload that a command line names. `None` if it names another workload.
pub fn named(text: &str) -> Option<Result<Recorded, WorkloadError>> {
    let file = text.split_whitespace().next().filter(|word| Form::of(word).is_some())?;
    let read = Recorded::read(std::path::Path::new(file));
    Some(read.map_err(|what| WorkloadError::Usage(format!("{file}: {what}"))))
}

/// Reads the words of a workload that is a file: its name, and after it what a synthetic one is to be like.
///
/// # Errors
/// It cannot be read, or is not such a file; an option is wrong; or what was recorded is to be shortened.
pub(crate) fn parse<'a>(
    file: &str,
    words: impl Iterator<Item = &'a str>,
    scale: Scale,
) -> Result<Workload, WorkloadError> {
    let refuse = |what: String| WorkloadError::Usage(format!("{file}: {what}"));
    let words: Vec<&str> = words.collect();
    let options = synth::Options::parse(file, words.iter().copied())?;
    if scale != Scale::FULL && !options.synthetic() {
        return Err(refuse(
            "a recorded workload is not shortened (allowed: --scale 1, or --synth after its name)".into(),
        ));
    }
    let recorded = Recorded::read(std::path::Path::new(file)).map_err(refuse)?;
    let name = [&[file], &words[..]].concat().join(" ");
    match options.synthetic() {
        true => recorded.synthesized(&name, &options, scale),
        false => recorded.workload(&name),
    }
    .map_err(refuse)
}
