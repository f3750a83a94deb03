//! Options of the real tools that do not change what the tasks do: how a tool prints its results, how
//! often it runs, where its server is. They are taken out of a command line, with a note for each.

use crate::WorkloadError;

/// An option that is taken out.
struct Ignored {
    /// Its names.
    names: &'static [&'static str],
    /// A value follows it, or stands in the same word.
    has_value: bool,
    why: &'static str,
}

const fn shapes(names: &'static [&'static str], has_value: bool) -> Ignored {
    Ignored { names, has_value, why: "it only shapes the tool's output" }
}

const SYSBENCH: &[Ignored] = &[
    shapes(&["--report-interval"], true),
    shapes(&["--report-checkpoints"], true),
    shapes(&["--percentile"], true),
    shapes(&["--histogram"], false),
    shapes(&["--verbosity"], true),
    shapes(&["--debug"], false),
];

const PERF: &[Ignored] = &[
    shapes(&["-f", "--format"], true),
    Ignored { names: &["-r", "--repeat"], has_value: true, why: "the benchmark is simulated once" },
];

const SCHBENCH: &[Ignored] = &[
    shapes(&["-i", "--intervaltime"], true),
    shapes(&["-z", "--zerotime"], true),
    shapes(&["-j", "--json"], true),
];

const NETPERF: &[Ignored] = &[
    Ignored { names: &["-H"], has_value: true, why: "the server is simulated on the same machine" },
    shapes(&["-P"], true),
    shapes(&["-v"], true),
    shapes(&["-f"], true),
    shapes(&["-j"], false),
    shapes(&["-o"], true),
    shapes(&["-O"], true),
    shapes(&["-k"], true),
];

const CYCLICTEST: &[Ignored] = &[shapes(&["--histfile"], true), shapes(&["--json"], true)];

const STRESS_NG: &[Ignored] = &[
    Ignored { names: &["--cpu-method"], has_value: true, why: "what is computed is not simulated" },
    Ignored { names: &["--pipe-data-size"], has_value: true, why: "stress-ng 0.15 forgets it" },
];

impl Ignored {
    /// Is this word the option, and does it have its value in it?
    fn is(&self, word: &str) -> Option<bool> {
        self.names.iter().find_map(|name| {
            let rest = word.strip_prefix(name)?;
            let attached = match name.starts_with("--") {
                true => rest.starts_with('='),
                false => self.has_value && !rest.is_empty(),
            };
            (rest.is_empty() || attached).then_some(attached)
        })
    }
}

/// The words after a tool's name without such options, and what to say about these.
///
/// # Errors
/// The value of the last one is missing.
pub(crate) fn taken<'a>(
    tool: &str,
    words: impl Iterator<Item = &'a str>,
) -> Result<(Vec<&'a str>, Vec<String>), WorkloadError> {
    let options = match tool {
        "sysbench" => SYSBENCH,
        "perf" => PERF,
        "schbench" | "schbench-old" => SCHBENCH,
        "netperf" => NETPERF,
        "cyclictest" => CYCLICTEST,
        "stress-ng" => STRESS_NG,
        _ => &[],
    };
    let (mut kept, mut notes) = (Vec::new(), Vec::new());
    let mut words = words;
    // perf's own options stand before the name of the collection
    let mut before_sched = true;
    while let Some(word) = words.next() {
        before_sched &= word != "sched";
        let found = options.iter().find_map(|option| Some((option, option.is(word)?)));
        let Some((option, attached)) = found.filter(|_| tool != "perf" || before_sched) else {
            kept.push(word);
            continue;
        };
        let mut text = word.to_owned();
        if option.has_value && !attached {
            let Some(value) = words.next() else {
                return Err(WorkloadError::Usage(format!("{tool}: {word} has no value")));
            };
            text = format!("{word} {value}");
        }
        notes.push(format!("{text} is ignored: {}", option.why));
    }
    Ok((kept, notes))
}

#[cfg(test)]
mod tests {
    use crate::{Scale, parse};

    /// Both command lines mean the same, and the first one says so.
    fn same(with: &str, without: &str, notes: &[&str]) {
        let [with, without] = [with, without].map(|text| parse(text, Scale::FULL).unwrap());
        assert_eq!((with.name, with.programs, with.limits), (without.name, without.programs, without.limits));
        assert_eq!(with.notes, notes);
        assert_eq!(without.notes, [""; 0]);
    }

    #[test]
    fn options_of_the_output_are_taken_with_a_note() {
        let shaping = |option: &str| format!("{option} is ignored: it only shapes the tool's output");
        for option in
            ["--report-interval=1", "--percentile 99", "--histogram", "--histogram=on", "--verbosity=3"]
        {
            let run = "sysbench threads run --threads=4";
            same(&format!("sysbench threads {option} run --threads=4"), run, &[&shaping(option)]);
        }
        let once = "is ignored: the benchmark is simulated once";
        same(
            "/usr/bin/perf bench -f simple -r 3 sched pipe -l 5",
            "perf bench sched pipe -l 5",
            &[&shaping("-f simple"), &format!("-r 3 {once}")],
        );
        same("perf bench -r3 sched pipe", "perf bench sched pipe", &[&format!("-r3 {once}")]);
        for tool in ["schbench", "schbench-old"] {
            same(
                &format!("{tool} -t 4 -i 5 -z 10 -w 3"),
                &format!("{tool} -t 4 -w 3"),
                &[&shaping("-i 5"), &shaping("-z 10")],
            );
        }
        same(
            "netperf -H 127.0.0.1 -t TCP_RR -P 0 -- -r 64,64 -o all",
            "netperf -t TCP_RR -r 64,64",
            &[
                "-H 127.0.0.1 is ignored: the server is simulated on the same machine",
                &shaping("-P 0"),
                &shaping("-o all"),
            ],
        );
    }

    #[test]
    fn a_tool_may_be_given_with_its_path() {
        same("/usr/bin/hackbench -g 2", "hackbench -g 2", &[]);
        let unknown = parse("/usr/bin/stress -c 2", Scale::FULL).map(|w| w.name).unwrap_err().to_string();
        assert!(unknown.starts_with("workload 'stress' is not known"), "{unknown}");
    }

    #[test]
    fn what_shapes_nothing_is_still_refused() {
        let refused = |text: &str| parse(text, Scale::FULL).map(|w| w.name).unwrap_err().to_string();
        assert_eq!(refused("sysbench threads run --percentile"), "sysbench: --percentile has no value");
        for text in [
            "perf bench sched pipe -f simple",
            "sysbench threads run --rate=5",
            "hackbench -i 5",
            "schbench -t 1 -A 5",
            "netperf --percentile 5",
        ] {
            assert!(refused(text).contains("allowed: "), "{text}");
        }
    }
}
