//! The steps of a recorded task as text; [`super::file`] says what the letters mean.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use super::{MAX_STEPS, Step};

/// Channels have lower numbers, so that a file cannot ask for more than it has bytes.
pub(super) const MAX_CHANNELS: u32 = 1 << 20;
/// The largest number of a step: a time of 292 years, so that sums of a few do not overflow.
const MAX_NUMBER: u64 = i64::MAX as u64;
/// Nice values.
pub(super) const NICES: RangeInclusive<i8> = -20..=19;

/// `turn` separates turns, which end with a wait; blanks separate other steps.
pub(super) fn write_steps(steps: &[Step], turn: &str) -> String {
    let (mut text, mut blank) = (String::new(), "");
    for step in steps {
        text.push_str(blank);
        blank = match step {
            Step::Await(_)
            | Step::Take(_)
            | Step::Request(_)
            | Step::Sleep(_)
            | Step::Device(_)
            | Step::Until(_) => turn,
            _ => " ",
        };
        // writing to a string does not fail
        let _ = match *step {
            Step::Run(ns) => write!(text, "r{ns}"),
            Step::Wake(task) => write!(text, "w{task}"),
            Step::Await(task) => write!(text, "a{task}"),
            Step::Post(channel) => write!(text, "p{channel}"),
            Step::Take(channel) => write!(text, "t{channel}"),
            Step::Request(channel) => write!(text, "q{channel}"),
            Step::Answer => write!(text, "y"),
            Step::Sleep(ns) => write!(text, "s{ns}"),
            Step::Device(ns) => write!(text, "d{ns}"),
            Step::Until(ns) => write!(text, "u{ns}"),
            Step::Start(task) => write!(text, "f{task}"),
            Step::Allow(Some(set)) => write!(text, "c{set}"),
            Step::Allow(None) => write!(text, "c"),
            Step::Nice(nice) => write!(text, "n{nice}"),
            Step::Group(Some(group)) => write!(text, "g{group}"),
            Step::Group(None) => write!(text, "g"),
            Step::Exit => write!(text, "x"),
        };
    }
    text
}

/// How many of the things that steps name there are in the file.
pub(super) struct There {
    pub(super) sets: usize,
    pub(super) groups: usize,
}

/// `left` is how many steps there may be.
pub(super) fn read_steps(text: &str, left: &mut usize, there: &There) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for (index, word) in text.split_ascii_whitespace().enumerate() {
        *left = left
            .checked_sub(1)
            .ok_or_else(|| format!("all tasks together have more than {MAX_STEPS} steps"))?;
        let refuse = |what: &str| format!("step {}, `{word}`: {what}", index + 1);
        let (letter, number) = word.split_at_checked(1).ok_or_else(|| refuse(LETTERS))?;
        if let Some(step) = read_short(letter, number) {
            steps
                .push(step.ok_or_else(|| refuse("what follows the letter is no nice value from -20 to 19"))?);
            continue;
        }
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
            "d" => Step::Device(number),
            "u" => Step::Until(number),
            "f" => Step::Start(task()?),
            "c" => {
                Step::Allow(Some(index_of("set of CPUs", number, there.sets).map_err(|what| refuse(&what))?))
            }
            "g" => Step::Group(Some(index_of("group", number, there.groups).map_err(|what| refuse(&what))?)),
            _ => return Err(refuse(LETTERS)),
        });
    }
    Ok(steps)
}

/// Reads a step that has no number, or one that may be negative; `None` if it is another one.
fn read_short(letter: &str, number: &str) -> Option<Option<Step>> {
    match (letter, number) {
        ("y", "") => Some(Some(Step::Answer)),
        ("c", "") => Some(Some(Step::Allow(None))),
        ("g", "") => Some(Some(Step::Group(None))),
        ("x", "") => Some(Some(Step::Exit)),
        ("n", _) => {
            let nice = number.parse().ok().filter(|nice| NICES.contains(nice) && !number.starts_with('+'));
            Some(nice.map(Step::Nice))
        }
        _ => None,
    }
}

fn index_of(what: &str, number: u64, count: usize) -> Result<u32, String> {
    let index = u32::try_from(number).ok().filter(|index| (*index as usize) < count);
    index.ok_or_else(|| none_such(what, number, count))
}

pub(super) fn none_such(what: &str, number: impl std::fmt::Display, count: usize) -> String {
    match count {
        0 => format!("there is no {what} {number}, as the file has none"),
        count => format!("there is no {what} {number} (allowed: 0 to {})", count - 1),
    }
}

pub(super) fn no_channel(number: impl std::fmt::Display) -> String {
    format!("there is no channel {number} (allowed: 0 to {})", MAX_CHANNELS - 1)
}

const LETTERS: &str = "there is no such step (allowed: r, w, a, p, t, q, s, d, u, f, n, c, g, each with a number, and y, c, g, x alone)";

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How many sets and groups files of tests have.
    pub(in super::super) const THERE: There = There { sets: 2, groups: 3 };

    pub(in super::super) fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..=MAX_NUMBER).prop_map(Step::Run),
            any::<u32>().prop_map(Step::Wake),
            any::<u32>().prop_map(Step::Await),
            (0..MAX_CHANNELS).prop_map(Step::Post),
            (0..MAX_CHANNELS).prop_map(Step::Take),
            (0..MAX_CHANNELS).prop_map(Step::Request),
            Just(Step::Answer),
            (0..=MAX_NUMBER).prop_map(Step::Sleep),
            (0..=MAX_NUMBER).prop_map(Step::Device),
            (0..=MAX_NUMBER).prop_map(Step::Until),
            any::<u32>().prop_map(Step::Start),
            prop::option::of(0..THERE.sets as u32).prop_map(Step::Allow),
            NICES.prop_map(Step::Nice),
            prop::option::of(0..THERE.groups as u32).prop_map(Step::Group),
            Just(Step::Exit),
        ]
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(steps in "[rwaptqsufycngx0-9 +-]*") {
            let _ = read_steps(&steps, &mut 100, &THERE);
        }
    }

    #[test]
    fn changes_are_written_as_they_are_read() {
        let text = "n-20 n19 c1 c g2 g y r5 x";
        let steps = read_steps(text, &mut 9, &THERE).unwrap();
        let wanted = [
            Step::Nice(-20),
            Step::Nice(19),
            Step::Allow(Some(1)),
            Step::Allow(None),
            Step::Group(Some(2)),
            Step::Group(None),
            Step::Answer,
            Step::Run(5),
            Step::Exit,
        ];
        assert_eq!(steps, wanted);
        assert_eq!(write_steps(&steps, "\n"), text);
    }

    #[test]
    fn refusals_say_which_step_and_what_is_allowed() {
        let none = There { sets: 0, groups: 0 };
        for (text, there, what) in [
            ("r1 z7", &THERE, "step 2, `z7`: there is no such step (allowed: r, w"),
            ("r", &THERE, "step 1, `r`: what follows the letter is no number"),
            ("r+1", &THERE, "no number"),
            ("r9223372036854775808", &THERE, "no number"),
            ("é1", &THERE, "there is no such step"),
            ("w4294967296", &THERE, "there is no such task"),
            ("p1048576", &THERE, "there is no channel 1048576 (allowed: 0 to 1048575)"),
            ("y1", &THERE, "there is no such step"),
            ("n20", &THERE, "what follows the letter is no nice value from -20 to 19"),
            ("n", &THERE, "no nice value"),
            ("n+1", &THERE, "no nice value"),
            ("c2", &THERE, "there is no set of CPUs 2 (allowed: 0 to 1)"),
            ("g3", &THERE, "there is no group 3 (allowed: 0 to 2)"),
            ("g0", &none, "there is no group 0, as the file has none"),
            ("r1 r1 r1", &THERE, "more than 10000000 steps"),
        ] {
            let error = read_steps(text, &mut 2, there).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
