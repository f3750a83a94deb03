//! Which idle states a CPU enters, as the kernel counts them.

use std::fs;
use std::path::Path;

/// The idle states of a CPU, each with how often it was entered. Empty without cpuidle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage(Vec<(String, u64)>);

impl Usage {
    pub(crate) fn of_cpu(cpu: usize) -> Usage {
        Usage::read(&Path::new("/sys/devices/system/cpu").join(format!("cpu{cpu}/cpuidle")))
    }

    fn read(directory: &Path) -> Usage {
        let state = |i: u32| {
            let file = |name: &str| fs::read_to_string(directory.join(format!("state{i}/{name}"))).ok();
            let name = file("name")?.trim().replace(char::is_whitespace, "-");
            Some((name, file("usage")?.trim().parse().ok()?))
        };
        Usage((0..).map_while(state).collect())
    }

    /// The state that was entered most often since `before`.
    pub(crate) fn most_since(&self, before: &Usage) -> Option<&str> {
        let entered =
            self.0.iter().zip(&before.0).map(|((name, now), (_, then))| (now.saturating_sub(*then), name));
        entered.max_by_key(|(n, _)| *n).filter(|(n, _)| *n > 0).map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_that_was_entered_most_often_counts() {
        let usage = |numbers: [u64; 2]| {
            Usage(["POLL", "haltpoll-idle"].map(str::to_owned).into_iter().zip(numbers).collect())
        };
        let before = usage([1000, 10]);
        assert_eq!(usage([1003, 67]).most_since(&before), Some("haltpoll-idle"));
        assert_eq!(usage([1000, 10]).most_since(&before), None);
        assert_eq!(Usage::default().most_since(&Usage::default()), None);
    }

    #[test]
    fn names_and_counts_are_read_until_there_is_no_further_state() {
        let directory = tempfile::tempdir().unwrap();
        for (i, (name, usage)) in [("POLL\n", "3\n"), ("haltpoll idle\n", "9\n")].iter().enumerate() {
            let state = directory.path().join(format!("state{i}"));
            fs::create_dir(&state).unwrap();
            fs::write(state.join("name"), name).unwrap();
            fs::write(state.join("usage"), usage).unwrap();
        }
        let usage = Usage::read(directory.path());
        assert_eq!(usage.0, [("POLL".to_owned(), 3), ("haltpoll-idle".to_owned(), 9)]);
    }
}
