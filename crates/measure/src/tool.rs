//! What benchmarks print, and how they are made as short as they can be.

/// A benchmark whose output is understood.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// The first words of its command line.
    words: &'static [&'static str],
    /// What stands before the time that it measured, in s; None if it prints none.
    time: Option<&'static str>,
    /// How much it does; None if it works for a given time.
    amount: Option<Amount>,
    /// Counts the events (requests, cycles, operations) in what it prints.
    events: fn(&str) -> Option<f64>,
}

/// The option for an amount of work.
#[derive(Clone, Copy, Debug)]
struct Amount {
    /// Its short and its long form.
    names: [&'static str; 2],
    /// The words that ask for the least.
    least: &'static [&'static str],
}

const LOOPS: Amount = Amount { names: ["-l", "--loops"], least: &["-l", "1"] };

/// hackbench and cyclictest of rt-tests 2.4, perf of Linux 6.1, sysbench 1.0.20, stress-ng 0.15.06, rt-app 1.0 and
/// schbench of 2023 and later.
const TOOLS: [Tool; 11] = [
    Tool { words: &["hackbench"], time: Some("Time:"), amount: Some(LOOPS), events: none },
    Tool {
        words: &["perf", "bench", "sched", "messaging"],
        time: Some("Total time:"),
        amount: Some(Amount { names: ["-l", "--nr_loops"], ..LOOPS }),
        events: none,
    },
    Tool {
        words: &["perf", "bench", "sched", "pipe"],
        time: Some("Total time:"),
        amount: Some(Amount { names: ["-l", "--loop"], ..LOOPS }),
        events: none,
    },
    Tool {
        words: &["sysbench", "threads"],
        time: Some("total time:"),
        amount: Some(Amount { names: ["--events"; 2], least: &["--events=1"] }),
        events: |output| after(output, "total number of events:"),
    },
    Tool { words: &["cyclictest"], time: None, amount: None, events: cycles },
    Tool {
        words: &["stress-ng", "--switch"],
        time: None,
        amount: Some(Amount { names: ["--switch-ops"; 2], least: &["--switch-ops", "1"] }),
        events: none,
    },
    Tool {
        words: &["stress-ng", "--pipe"],
        time: None,
        amount: Some(Amount { names: ["--pipe-ops"; 2], least: &["--pipe-ops", "1"] }),
        events: none,
    },
    // its bogus operations are of different sizes, which the simulation does not know
    Tool { words: &["stress-ng"], time: None, amount: None, events: none },
    Tool { words: &["rt-app"], time: None, amount: None, events: none },
    Tool { words: &["schbench"], time: None, amount: None, events: requests },
    // what it prints of wakeups is a count of samples of each worker, of which there are not always as many as rounds
    Tool { words: &["schbench-old"], time: None, amount: None, events: none },
];

fn none(_: &str) -> Option<f64> {
    None
}

/// The number after some words.
fn after(output: &str, words: &str) -> Option<f64> {
    let word = output.split(words).nth(1)?.split_whitespace().next()?;
    word.trim_end_matches('s').parse().ok()
}

/// Of `T: 0 ( 4711) P: 0 I:500 C:   2000 Min: …`, the last line of each thread, the number of cycles.
fn cycles(output: &str) -> Option<f64> {
    let mut threads = std::collections::BTreeMap::new();
    for line in output.lines().filter(|line| line.trim_start().starts_with("T:")) {
        let thread = line.split_whitespace().nth(1)?;
        threads.insert(thread.to_owned(), after(line, " C:")?);
    }
    (!threads.is_empty()).then(|| threads.values().sum())
}

/// Of the last `Request Latencies percentiles (usec) runtime 5 (s) (1234 total samples)` the number of samples.
fn requests(output: &str) -> Option<f64> {
    let last = output.lines().rfind(|line| line.starts_with("Request Latencies percentiles"))?;
    last.split(['(', ')']).rfind(|part| part.ends_with("total samples"))?.split(' ').next()?.parse().ok()
}

impl Tool {
    /// The tool that a command line runs, if it is a known one. Its first word may be a path.
    pub fn of(words: &[&str]) -> Option<Tool> {
        let name = words.first()?.rsplit('/').next()?;
        let rest = &words[1..];
        TOOLS.into_iter().find(|tool| tool.words[0] == name && rest.starts_with(&tool.words[1..]))
    }

    /// The time that it says it took, in s. It leaves out what went before, such as the creation of tasks.
    pub fn time_s(&self, output: &str) -> Option<f64> {
        after(output, self.time?)
    }

    /// How many events it says that it counted.
    pub fn events(&self, output: &str) -> Option<f64> {
        (self.events)(output).filter(|events| *events > 0.0)
    }

    /// The command line that does the least amount of work: what it takes is the tool's start and end. None if its
    /// amount of work cannot be chosen.
    pub fn shortest<'a>(&self, words: &[&'a str]) -> Option<Vec<&'a str>> {
        let Amount { names: [short, long], least } = self.amount?;
        let mut shortest = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if *word == short || *word == long {
                rest.next();
            } else if !sets_amount(short, long, word) {
                shortest.push(*word);
            }
        }
        // sysbench's last word is a command
        let at = if shortest.last() == Some(&"run") { shortest.len() - 1 } else { shortest.len() };
        shortest.splice(at..at, least.iter().copied());
        Some(shortest)
    }
}

/// `--loops=5` or `-l5`.
fn sets_amount(short: &str, long: &str, word: &str) -> bool {
    let glued = |option: &str| word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
    glued(long) || (short.len() == 2 && word.strip_prefix(short).is_some_and(|n| n.parse::<u64>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(line: &str) -> Tool {
        Tool::of(&line.split_whitespace().collect::<Vec<_>>()).unwrap()
    }

    fn shortest(line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        tool(line).shortest(&words).unwrap().join(" ")
    }

    #[test]
    fn the_shortest_run_has_all_other_options() {
        assert_eq!(shortest("hackbench -g 1 -l 500 -T"), "hackbench -g 1 -T -l 1");
        assert_eq!(shortest("/usr/bin/hackbench --loops=500 -T"), "/usr/bin/hackbench -T -l 1");
        assert_eq!(shortest("hackbench -l500"), "hackbench -l 1");
        assert_eq!(shortest("perf bench sched pipe --loop 9 -T"), "perf bench sched pipe -T -l 1");
        let sysbench = "sysbench threads --events=1000 --time=0 run";
        assert_eq!(shortest(sysbench), "sysbench threads --time=0 --events=1 run");
        let switch = "stress-ng --switch 2 --switch-ops 5000";
        assert_eq!(shortest(switch), "stress-ng --switch 2 --switch-ops 1");
        assert_eq!(tool("rt-app a.json").shortest(&["rt-app", "a.json"]), None);
        assert!(Tool::of(&["ls"]).is_none());
        assert!(Tool::of(&["perf", "stat"]).is_none());
        assert!(Tool::of(&[]).is_none());
    }
}
