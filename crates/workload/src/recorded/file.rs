//! What the file of a recorded workload contains, in JSON; [`super::form`] has its other forms.
//!
//! ```json
//! {"coreward_workload": 1, "origin": "…", "assumptions": [], "tasks": [
//!   {"name": "client", "process": 0, "nice": 0, "steps": "r12000 w1 a1 s5000"}
//! ]}
//! ```
//!
//! A step is a letter and a number: `r` runs ns, `w` wakes a task, `a` awaits a task, `p` posts to a channel, `t` takes
//! from a channel, `q` takes a request from a channel, `s` sleeps ns, `u` sleeps until ns after the task's start, `f`
//! starts a task. `c` lets the task run on the CPUs of one of the file's `cpu_sets` from then on, `n` gives it a nice value,
//! and `g` moves it to one of the file's `groups`. Without a number, `y` answers the last request, `c` lets the task run
//! everywhere, and `g` moves it out of all groups. `cpus` of a task are those that it may run on when it begins, if they are
//! not all, `group` is the one that it begins in, and `answers` is the channel on which it awaits answers.

use std::fmt::{self, Write as _};
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::steps::{MAX_CHANNELS, NICES, There, no_channel, none_such, read_steps, write_steps};
use super::{Figures, MAX_STEPS, MAX_TASKS, Recorded, Task};
use crate::{DEFAULT_WEIGHT, TaskGroup};

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;
/// The largest text, in bytes: the most steps, each of the longest kind, and more than enough for names. What is written
/// can so be read.
pub(super) const MAX_BYTES: u64 = 256 << 20;
const _: () = assert!(MAX_BYTES > MAX_STEPS as u64 * 21);
/// CPUs have lower numbers, as in any machine.
const MAX_CPUS: usize = 4096;
/// Most sets of CPUs, and most task groups.
const MAX_SETS: usize = 10_000;
const MAX_GROUPS: usize = 10_000;
/// Most channels that are sockets.
const MAX_SOCKETS: usize = 1_000_000;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    coreward_workload: u32,
    origin: String,
    assumptions: Vec<String>,
    #[serde(default)]
    duration_s: f64,
    #[serde(default, deserialize_with = "at_most::<_, _, MAX_TASKS>")]
    classes: Vec<Figures>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "at_most::<_, _, MAX_SETS>")]
    cpu_sets: Vec<CpuSet>,
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<_, _, MAX_GROUPS>"
    )]
    groups: Vec<FileGroup>,
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_most::<_, _, MAX_SOCKETS>"
    )]
    sockets: Vec<u32>,
    #[serde(deserialize_with = "at_most::<_, _, MAX_TASKS>")]
    tasks: Vec<FileTask>,
}

/// The numbers of CPUs.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
struct CpuSet(#[serde(deserialize_with = "at_most::<_, _, MAX_CPUS>")] Vec<u32>);

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileGroup {
    name: String,
    #[serde(default = "default_weight")]
    weight: u32,
    /// CPU time in each period, and the period, in us, as in `cpu.max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_us: Option<(u64, u64)>,
}

fn default_weight() -> u32 {
    DEFAULT_WEIGHT
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileTask {
    name: String,
    process: u32,
    nice: i8,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "at_most::<_, _, MAX_CPUS>")]
    cpus: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answers: Option<u32>,
    steps: String,
}

/// What a file of any version has.
#[derive(Deserialize)]
pub(super) struct Versioned {
    coreward_workload: u32,
}

impl File {
    /// `turn` separates a task's turns.
    pub(super) fn of(recorded: &Recorded, turn: &str) -> File {
        let Recorded { origin, assumptions, classes, duration_s, cpu_sets, groups, sockets, tasks } =
            recorded.clone();
        let tasks = tasks.into_iter().map(|task| FileTask::of(task, turn)).collect();
        let cpu_sets = cpu_sets.into_iter().map(CpuSet).collect();
        let groups = groups.into_iter().map(FileGroup::of).collect();
        File {
            coreward_workload: VERSION,
            origin,
            assumptions,
            duration_s,
            classes,
            cpu_sets,
            groups,
            sockets,
            tasks,
        }
    }

    /// What the file says.
    pub(super) fn recorded(self) -> Result<Recorded, String> {
        let File { origin, assumptions, classes, duration_s, cpu_sets, groups, sockets, tasks: all, .. } =
            self;
        if !duration_s.is_finite() {
            return Err(format!("duration_s is {duration_s} (allowed: finite numbers)"));
        }
        if let Some(Figures { class, .. }) = classes.iter().find(|class| !class.is_writable()) {
            return Err(format!(
                "class {class}: a number is not finite, or beyond what is counted (allowed: 0 to 2^63 - 1)"
            ));
        }
        let cpu_sets: Vec<Vec<u32>> = cpu_sets.into_iter().map(|set| set.0).collect();
        for (index, set) in cpu_sets.iter().enumerate() {
            let none = set.is_empty().then(|| "it has no CPU".to_owned());
            if let Some(what) = none.or_else(|| no_cpu(set)) {
                return Err(format!("cpu_sets: set {index}: {what}"));
            }
        }
        let groups = groups.into_iter().map(FileGroup::group).collect::<Result<Vec<_>, _>>()?;
        if let Some(channel) = sockets.iter().find(|channel| **channel >= MAX_CHANNELS) {
            return Err(format!("sockets: {}", no_channel(*channel)));
        }
        let mut left = MAX_STEPS;
        let there = There { sets: cpu_sets.len(), groups: groups.len() };
        let mut tasks = Vec::new();
        for (index, task) in all.into_iter().enumerate() {
            let FileTask { name, process, nice, cpus, group, answers, steps } = task;
            let refuse = |what: String| format!("task {index} ({name}): {what}");
            if !NICES.contains(&nice) {
                return Err(refuse(format!("nice is {nice} (allowed: -20 to 19)")));
            }
            if let Some(what) = no_cpu(&cpus) {
                return Err(refuse(what));
            }
            if let Some(group) = group.filter(|group| *group as usize >= groups.len()) {
                return Err(refuse(none_such("group", group, groups.len())));
            }
            if let Some(channel) = answers.filter(|channel| *channel >= MAX_CHANNELS) {
                return Err(refuse(format!("answers: {}", no_channel(channel))));
            }
            let steps = read_steps(&steps, &mut left, &there).map_err(refuse)?;
            tasks.push(Task { name, process, nice, cpus, group, answers, steps });
        }
        Ok(Recorded { origin, assumptions, classes, duration_s, cpu_sets, groups, sockets, tasks })
    }
}

impl FileGroup {
    fn of(group: TaskGroup) -> FileGroup {
        let TaskGroup { name, weight, max } = group;
        FileGroup { name, weight, max_us: max.map(|(quota, period)| (quota / 1000, period / 1000)) }
    }

    fn group(self) -> Result<TaskGroup, String> {
        TaskGroup::checked(self.name, self.weight.into(), self.max_us)
    }
}

impl FileTask {
    fn of(task: Task, turn: &str) -> FileTask {
        let Task { name, process, nice, cpus, group, answers, steps } = task;
        FileTask { name, process, nice, cpus, group, answers, steps: write_steps(&steps, turn) }
    }
}

impl Versioned {
    /// Refuses other versions than [`VERSION`].
    pub(super) fn check(self) -> Result<(), String> {
        match self.coreward_workload {
            VERSION => Ok(()),
            found => Err(format!("coreward_workload is {found} (allowed: {VERSION})")),
        }
    }
}

impl Recorded {
    /// Reads a file's text.
    ///
    /// # Errors
    /// It is no JSON, not of this version, or has a field or step that there is not; with line or task.
    pub fn from_json(text: &str) -> Result<Recorded, String> {
        serde_json::from_str::<Versioned>(text)
            .map_err(|error| format!("it is not a recorded workload: {error}"))?
            .check()?;
        serde_json::from_str::<File>(text).map_err(|error| error.to_string())?.recorded()
    }

    /// The text, one line for each task.
    pub fn to_json(&self) -> String {
        let json = |value: &dyn Fn() -> serde_json::Result<String>| value().unwrap_or_default();
        let mut text = format!(
            "{{\"coreward_workload\": {VERSION},\n\"origin\": {},\n\"assumptions\": {},\n",
            json(&|| serde_json::to_string(&self.origin)),
            json(&|| serde_json::to_string(&self.assumptions)),
        );
        let classes = json(&|| serde_json::to_string(&self.classes));
        // writing to a string does not fail
        let _ = write!(text, "\"duration_s\": {},\n\"classes\": {classes},\n", self.duration_s);
        if !self.cpu_sets.is_empty() {
            let sets = json(&|| serde_json::to_string(&self.cpu_sets));
            let _ = writeln!(text, "\"cpu_sets\": {sets},");
        }
        if !self.groups.is_empty() {
            let groups: Vec<_> = self.groups.iter().cloned().map(FileGroup::of).collect();
            let groups = json(&|| serde_json::to_string(&groups));
            let _ = writeln!(text, "\"groups\": {groups},");
        }
        if !self.sockets.is_empty() {
            let _ = writeln!(text, "\"sockets\": {},", json(&|| serde_json::to_string(&self.sockets)));
        }
        text.push_str("\"tasks\": [");
        for (index, task) in self.tasks.iter().enumerate() {
            let task = FileTask::of(task.clone(), " ");
            let comma = if index == 0 { "\n" } else { ",\n" };
            text.push_str(comma);
            text.push_str(&json(&|| serde_json::to_string(&task)));
        }
        text.push_str("\n]}\n");
        text
    }
}

/// A list, which is refused before it takes more memory than one of `MAX` elements does.
fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MAX: usize>(
    list: D,
) -> Result<Vec<T>, D::Error> {
    struct AtMost<T, const MAX: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for AtMost<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "a list of at most {MAX}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut read = Vec::new();
            while let Some(element) = list.next_element()? {
                read.push(element);
                if read.len() > MAX {
                    return Err(A::Error::invalid_length(read.len(), &self));
                }
            }
            Ok(read)
        }
    }
    list.deserialize_seq(AtMost::<T, MAX>(PhantomData))
}

/// What is wrong with a list of CPUs.
fn no_cpu(cpus: &[u32]) -> Option<String> {
    let cpu = cpus.iter().find(|cpu| **cpu as usize >= MAX_CPUS)?;
    Some(format!("there is no CPU {cpu} (allowed: 0 to {})", MAX_CPUS - 1))
}

#[cfg(test)]
mod tests {
    use super::super::Form;
    use super::super::steps::tests::{THERE, step};
    use super::*;
    use proptest::prelude::*;

    fn text(tasks: &str) -> String {
        format!("{{\"coreward_workload\": 1, \"origin\": \"x\", \"assumptions\": [], \"tasks\": [{tasks}]}}")
    }

    /// As many as [`THERE`] says.
    fn groups() -> Vec<TaskGroup> {
        let max = Some((20_000_000, 100_000_000));
        vec![
            TaskGroup::new("/a/b"),
            TaskGroup { weight: 300, ..TaskGroup::new("/c") },
            TaskGroup { max, ..TaskGroup::new("/d") },
        ]
    }

    proptest! {
        #[test]
        fn a_file_reads_back(
            tasks in prop::collection::vec(
                (
                    "\\PC*", any::<u32>(), -20i8..20, prop::collection::vec(0..MAX_CPUS as u32, 0..3),
                    prop::option::of(0..THERE.groups as u32), prop::option::of(0..MAX_CHANNELS),
                    prop::collection::vec(step(), 0..20)
                ),
                0..5
            ),
            origin in "\\PC*",
        ) {
            let task = |(name, process, nice, cpus, group, answers, steps)| {
                Task { name, process, nice, cpus, group, answers, steps }
            };
            let tasks: Vec<Task> = tasks.into_iter().map(task).collect();
            let of = Figures { class: "a".into(), cpu_s: 0.1, request_us: [0.5, 1e9], ..Figures::default() };
            let classes = vec![of; tasks.len()];
            let duration_s = tasks.len() as f64 / 3.0;
            let cpu_sets = vec![vec![0, 4095], vec![3]];
            let assumptions = vec!["a \"b\"".into()];
            let (groups, sockets) = (groups(), vec![0, MAX_CHANNELS - 1]);
            let recorded = Recorded { origin, assumptions, classes, duration_s, cpu_sets, groups, sockets, tasks };
            for form in [Form::Compressed, Form::Json, Form::Toml] {
                let mut file = Vec::new();
                recorded.write(&mut file, form).unwrap();
                prop_assert_eq!(&Recorded::from_bytes(&file[..], form).unwrap(), &recorded, "{:?}", form);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*") {
            let _ = Recorded::from_json(&text);
        }
    }

    /// One more than TOML counts.
    const FIGURES: &str = "{\"class\": \"c\", \"tasks\": 9223372036854775808, \"cpu_s\": 0, \"wakeups\": 0, \"moves\": 0, \
                           \"wakeup_latency_us\": [0, 0], \"requests\": 0, \"request_us\": [0, 0]}";

    #[test]
    fn refusals_say_where_and_what() {
        let task = |steps: &str| {
            text(&format!("{{\"name\": \"n\", \"process\": 0, \"nice\": 0, \"steps\": \"{steps}\"}}"))
        };
        let with = |field: &str| text("").replace("\"tasks\"", &format!("{field}, \"tasks\""));
        for (text, what) in [
            ("", "it is not a recorded workload: EOF"),
            (
                &text("").replace("\"tasks\"", &format!("\"classes\": [{FIGURES}], \"tasks\"")),
                "class c: a number is not finite, or beyond what is counted (allowed: 0 to 2^63 - 1)",
            ),
            ("{\"coreward_workload\": 2}", "coreward_workload is 2 (allowed: 1)"),
            (&text("{\"name\": 1}"), "expected a string at line 1"),
            (&text("{\"nmae\": \"n\"}"), "unknown field `nmae`, expected one of `name`"),
            (&task("r1 z7"), "task 0 (n): step 2, `z7`: there is no such step (allowed: r, w"),
            (
                &with("\"groups\": [{\"name\": \"a\"}]"),
                "group a: it is no name (allowed: a path that begins with /)",
            ),
            (
                &with("\"groups\": [{\"name\": \"/a\", \"weight\": 0}]"),
                "group /a: weight is 0 (allowed: 1 to 10000)",
            ),
            (
                &with("\"groups\": [{\"name\": \"/a\", \"max_us\": [1000, 2000000]}]"),
                "group /a: max_us is [1000, 2000000] (allowed: a quota of 1000 to 4096000000, a period of 1000 to 1000000)",
            ),
            (&with("\"cpu_sets\": [[1], []]"), "cpu_sets: set 1: it has no CPU"),
            (&with("\"cpu_sets\": [[4096]]"), "cpu_sets: set 0: there is no CPU 4096 (allowed: 0 to 4095)"),
            (
                &text("{\"name\": \"n\", \"process\": 0, \"nice\": 0, \"group\": 0, \"steps\": \"\"}"),
                "task 0 (n): there is no group 0, as the file has none",
            ),
            (
                &text(
                    "{\"name\": \"n\", \"process\": 0, \"nice\": 0, \"answers\": 1048576, \"steps\": \"\"}",
                ),
                "task 0 (n): answers: there is no channel 1048576",
            ),
            (
                &text("{\"name\": \"n\", \"process\": 0, \"nice\": 0, \"cpus\": [0, 4096], \"steps\": \"\"}"),
                "task 0 (n): there is no CPU 4096 (allowed: 0 to 4095)",
            ),
            (
                &text("{\"name\": \"n\", \"process\": 0, \"nice\": 20, \"steps\": \"\"}"),
                "nice is 20 (allowed: -20 to 19)",
            ),
        ] {
            let error = Recorded::from_json(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
