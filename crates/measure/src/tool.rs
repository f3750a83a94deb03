//! What benchmarks print, and how they are made as short as they can be.

/// A benchmark whose output is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The first words of its command line.
    words: &'static [&'static str],
    /// What stands before the time that it measured, in s.
    time: &'static str,
    /// Its option for the amount of work: the short and the long form.
    amount: [&'static str; 2],
}

/// hackbench of rt-tests 2.4, perf of Linux 6.1 and sysbench 1.0.20.
const TOOLS: [Tool; 4] = [
    Tool { words: &["hackbench"], time: "Time:", amount: ["-l", "--loops"] },
    Tool {
        words: &["perf", "bench", "sched", "messaging"],
        time: "Total time:",
        amount: ["-l", "--nr_loops"],
    },
    Tool { words: &["perf", "bench", "sched", "pipe"], time: "Total time:", amount: ["-l", "--loop"] },
    Tool { words: &["sysbench", "threads"], time: "total time:", amount: ["--events", "--events"] },
];

impl Tool {
    /// The tool that a command line runs, if it is a known one.
    pub fn of(words: &[&str]) -> Option<Tool> {
        TOOLS.into_iter().find(|tool| words.starts_with(tool.words))
    }

    /// The time that it says it took, in s. It leaves out what went before, such as the creation of tasks.
    pub fn time_s(&self, output: &str) -> Option<f64> {
        let after = output.split(self.time).nth(1)?;
        let number = after.split_whitespace().next()?;
        number.trim_end_matches('s').parse().ok()
    }

    /// The command line that does the least amount of work: what it takes is the tool's start and end.
    pub fn shortest<'a>(&self, words: &[&'a str]) -> Vec<&'a str> {
        let [short, long] = self.amount;
        let mut shortest = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if *word == short || *word == long {
                rest.next();
            } else if !self.sets_amount(word) {
                shortest.push(*word);
            }
        }
        // sysbench's last word is a command
        let at = if shortest.last() == Some(&"run") { shortest.len() - 1 } else { shortest.len() };
        shortest.splice(at..at, if short == long { vec!["--events=1"] } else { vec![short, "1"] });
        shortest
    }

    /// `--loops=5` or `-l5`.
    fn sets_amount(&self, word: &str) -> bool {
        let [short, long] = self.amount;
        let glued = |option: &str| word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
        glued(long)
            || (short.len() == 2 && word.strip_prefix(short).is_some_and(|n| n.parse::<u64>().is_ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shortest(line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        Tool::of(&words).unwrap().shortest(&words).join(" ")
    }

    #[test]
    fn the_shortest_run_has_all_other_options() {
        assert_eq!(shortest("hackbench -g 1 -l 500 -T"), "hackbench -g 1 -T -l 1");
        assert_eq!(shortest("hackbench --loops=500 -T"), "hackbench -T -l 1");
        assert_eq!(shortest("hackbench -l500"), "hackbench -l 1");
        assert_eq!(shortest("perf bench sched pipe --loop 9 -T"), "perf bench sched pipe -T -l 1");
        let sysbench = "sysbench threads --events=1000 --time=0 run";
        assert_eq!(shortest(sysbench), "sysbench threads --time=0 --events=1 run");
    }

    #[test]
    fn times_are_read_as_the_tools_print_them() {
        let time = |line: &str, output| {
            Tool::of(&line.split_whitespace().collect::<Vec<_>>()).unwrap().time_s(output)
        };
        assert_eq!(time("hackbench", "Running in threaded mode\nTime: 0.722\n"), Some(0.722));
        let perf = "# Running 'sched/pipe' benchmark:\n\n     Total time: 1.273 [sec]\n\n  6.3 usecs/op\n";
        assert_eq!(time("perf bench sched pipe", perf), Some(1.273));
        let sysbench = "General statistics:\n    total time:                          1.0312s\n    total number of events: 5\n";
        assert_eq!(time("sysbench threads run", sysbench), Some(1.0312));
        assert_eq!(time("hackbench", "Killed"), None);
        assert_eq!(Tool::of(&["ls"]), None);
    }
}
