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
//! starts a task. `y` alone answers the last request. `cpus` of a task are those that it may run on, if they are not all,
//! and `answers` is the channel on which it awaits answers.

use std::fmt::{self, Write as _};
use std::marker::PhantomData;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{Figures, MAX_STEPS, MAX_TASKS, Recorded, Step, Task};

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u32 = 1;
/// The largest text, in bytes: the most steps, each of the longest kind, and more than enough for names. What is written
/// can so be read.
pub(super) const MAX_BYTES: u64 = 256 << 20;
const _: () = assert!(MAX_BYTES > MAX_STEPS as u64 * 21);
/// CPUs have lower numbers, as in any machine.
const MAX_CPUS: usize = 4096;
/// Channels have lower numbers, so that a file cannot ask for more than it has bytes.
const MAX_CHANNELS: u32 = 1 << 20;
/// The largest number of a step: a time of 292 years, so that sums of a few do not overflow.
const MAX_NUMBER: u64 = i64::MAX as u64;

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
    #[serde(deserialize_with = "at_most::<_, _, MAX_TASKS>")]
    tasks: Vec<FileTask>,
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
        let Recorded { origin, assumptions, classes, duration_s, tasks } = recorded.clone();
        let tasks = tasks.into_iter().map(|task| FileTask::of(task, turn)).collect();
        File { coreward_workload: VERSION, origin, assumptions, duration_s, classes, tasks }
    }

    /// What the file says.
    pub(super) fn recorded(self) -> Result<Recorded, String> {
        let File { origin, assumptions, classes, duration_s, tasks: all, .. } = self;
        if !duration_s.is_finite() {
            return Err(format!("duration_s is {duration_s} (allowed: finite numbers)"));
        }
        if let Some(Figures { class, .. }) = classes.iter().find(|class| !class.is_writable()) {
            return Err(format!(
                "class {class}: a number is not finite, or beyond what is counted (allowed: 0 to 2^63 - 1)"
            ));
        }
        let mut left = MAX_STEPS;
        let mut tasks = Vec::new();
        for (index, task) in all.into_iter().enumerate() {
            let FileTask { name, process, nice, cpus, answers, steps } = task;
            let refuse = |what: String| format!("task {index} ({name}): {what}");
            if !(-20..=19).contains(&nice) {
                return Err(refuse(format!("nice is {nice} (allowed: -20 to 19)")));
            }
            if let Some(cpu) = cpus.iter().find(|cpu| **cpu as usize >= MAX_CPUS) {
                return Err(refuse(format!("there is no CPU {cpu} (allowed: 0 to {})", MAX_CPUS - 1)));
            }
            if let Some(channel) = answers.filter(|channel| *channel >= MAX_CHANNELS) {
                return Err(refuse(format!("answers: {}", no_channel(channel))));
            }
            let steps = read_steps(&steps, &mut left).map_err(refuse)?;
            tasks.push(Task { name, process, nice, cpus, answers, steps });
        }
        Ok(Recorded { origin, assumptions, classes, duration_s, tasks })
    }
}

impl FileTask {
    fn of(task: Task, turn: &str) -> FileTask {
        let Task { name, process, nice, cpus, answers, steps } = task;
        FileTask { name, process, nice, cpus, answers, steps: write_steps(&steps, turn) }
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
        let _ = write!(text, "\"duration_s\": {},\n\"classes\": {classes},\n\"tasks\": [", self.duration_s);
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

/// `turn` separates turns, which end with a wait; blanks separate other steps.
fn write_steps(steps: &[Step], turn: &str) -> String {
    let (mut text, mut blank) = (String::new(), "");
    for step in steps {
        text.push_str(blank);
        blank = match step {
            Step::Await(_) | Step::Take(_) | Step::Request(_) | Step::Sleep(_) | Step::Until(_) => turn,
            _ => " ",
        };
        let (letter, number): (char, u64) = match *step {
            Step::Run(ns) => ('r', ns),
            Step::Wake(task) => ('w', task.into()),
            Step::Await(task) => ('a', task.into()),
            Step::Post(channel) => ('p', channel.into()),
            Step::Take(channel) => ('t', channel.into()),
            Step::Request(channel) => ('q', channel.into()),
            Step::Answer => {
                text.push_str(ANSWER);
                continue;
            }
            Step::Sleep(ns) => ('s', ns),
            Step::Until(ns) => ('u', ns),
            Step::Start(task) => ('f', task.into()),
        };
        // writing to a string does not fail
        let _ = write!(text, "{letter}{number}");
    }
    text
}

/// `left` is how many steps there may be.
fn read_steps(text: &str, left: &mut usize) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for (index, word) in text.split_ascii_whitespace().enumerate() {
        *left = left
            .checked_sub(1)
            .ok_or_else(|| format!("all tasks together have more than {MAX_STEPS} steps"))?;
        let refuse = |what: &str| format!("step {}, `{word}`: {what}", index + 1);
        if word == ANSWER {
            steps.push(Step::Answer);
            continue;
        }
        let (letter, number) = word.split_at_checked(1).ok_or_else(|| refuse(LETTERS))?;
        let number = number.parse::<u64>().ok().filter(|n| *n <= MAX_NUMBER && !number.starts_with('+'));
        let number =
            number.ok_or_else(|| refuse("what follows the letter is no number from 0 to 2^63 - 1"))?;
        let task = || u32::try_from(number).map_err(|_| refuse("there is no such task"));
        let channel = || {
            let channel = u32::try_from(number).ok().filter(|channel| *channel < MAX_CHANNELS);
            channel.ok_or_else(|| refuse(&no_channel(number)))
        };
        steps.push(match letter {
            "r" => Step::Run(number),
            "w" => Step::Wake(task()?),
            "a" => Step::Await(task()?),
            "p" => Step::Post(channel()?),
            "t" => Step::Take(channel()?),
            "q" => Step::Request(channel()?),
            "s" => Step::Sleep(number),
            "u" => Step::Until(number),
            "f" => Step::Start(task()?),
            _ => return Err(refuse(LETTERS)),
        });
    }
    Ok(steps)
}

fn no_channel(number: impl std::fmt::Display) -> String {
    format!("there is no channel {number} (allowed: 0 to {})", MAX_CHANNELS - 1)
}

/// The step that has no number.
const ANSWER: &str = "y";
const LETTERS: &str = "there is no such step (allowed: r, w, a, p, t, q, s, u, f, each with a number, and y)";

#[cfg(test)]
mod tests {
    use super::super::Form;
    use super::*;
    use proptest::prelude::*;

    fn text(tasks: &str) -> String {
        format!("{{\"coreward_workload\": 1, \"origin\": \"x\", \"assumptions\": [], \"tasks\": [{tasks}]}}")
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..=MAX_NUMBER).prop_map(Step::Run),
            any::<u32>().prop_map(Step::Wake),
            any::<u32>().prop_map(Step::Await),
            (0..MAX_CHANNELS).prop_map(Step::Post),
            (0..MAX_CHANNELS).prop_map(Step::Take),
            (0..MAX_CHANNELS).prop_map(Step::Request),
            Just(Step::Answer),
            (0..=MAX_NUMBER).prop_map(Step::Sleep),
            (0..=MAX_NUMBER).prop_map(Step::Until),
            any::<u32>().prop_map(Step::Start),
        ]
    }

    proptest! {
        #[test]
        fn a_file_reads_back(
            tasks in prop::collection::vec(
                ("\\PC*", any::<u32>(), -20i8..20, prop::collection::vec(0..MAX_CPUS as u32, 0..3), prop::option::of(0..MAX_CHANNELS), prop::collection::vec(step(), 0..20)),
                0..5
            ),
            origin in "\\PC*",
        ) {
            let task = |(name, process, nice, cpus, answers, steps)| Task { name, process, nice, cpus, answers, steps };
            let tasks: Vec<Task> = tasks.into_iter().map(task).collect();
            let of = Figures { class: "a".into(), cpu_s: 0.1, request_us: [0.5, 1e9], ..Figures::default() };
            let classes = vec![of; tasks.len()];
            let duration_s = tasks.len() as f64 / 3.0;
            let recorded = Recorded { origin, assumptions: vec!["a \"b\"".into()], classes, duration_s, tasks };
            for form in [Form::Compressed, Form::Json, Form::Toml] {
                let mut file = Vec::new();
                recorded.write(&mut file, form).unwrap();
                prop_assert_eq!(&Recorded::from_bytes(&file[..], form).unwrap(), &recorded, "{:?}", form);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*", steps in "[rwaptqsufy0-9 +-]*") {
            let _ = Recorded::from_json(&text);
            let _ = read_steps(&steps, &mut 100);
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
            (&task("r"), "step 1, `r`: what follows the letter is no number"),
            (&task("r+1"), "no number"),
            (&task("r9223372036854775808"), "no number"),
            (&task("é1"), "there is no such step"),
            (&task("w4294967296"), "there is no such task"),
            (&task("p1048576"), "there is no channel 1048576 (allowed: 0 to 1048575)"),
            (&task("y1"), "there is no such step"),
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
        let mut left = 2;
        assert!(read_steps("r1 r1 r1", &mut left).unwrap_err().contains("steps"));
    }
}
