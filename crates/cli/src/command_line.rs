//! A workload that is given as several words, told apart from coreward's own options.
//!
//! `coreward run hackbench -g 1 --machine 2c` becomes `coreward run --machine 2c -- "hackbench -g 1"`. Before the
//! workload's name, and between its words, the long options of the subcommand are coreward's, each with its value. All
//! other words from the name on are the workload's, and so is everything after `--`.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory};

use crate::cli::Cli;

/// Options of real tools that have the name of one of coreward's.
const AMBIGUOUS: [(&str, &str); 6] = [
    ("cyclictest", "json"),
    ("cyclictest", "policy"),
    ("cyclictest", "quiet"),
    ("schbench", "json"),
    ("stress-ng", "cpu"),
    ("stress-ng", "quiet"),
];

/// The arguments with the workload as one of them.
///
/// # Errors
/// An option may be the workload's or coreward's, or the workload cannot be put into one line.
pub(crate) fn join_workload(args: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let mut cli = Cli::command();
    cli.build();
    let words: Option<Vec<&str>> = args.iter().map(|arg| arg.to_str()).collect();
    let Some((head, rest)) = words.as_deref().and_then(|words| words.split_at_checked(2)) else {
        return Ok(args);
    };
    let subcommand = cli.find_subcommand(head[1]).filter(|command| takes_workload(command, rest));
    let Some((own, workload)) = subcommand.map(|command| split(command, rest)).transpose()?.flatten() else {
        return Ok(args);
    };
    if let [_, _, ..] = workload[..]
        && let Some(word) = workload.iter().find(|word| word.contains(char::is_whitespace))
    {
        return Err(format!(
            "the words of a workload are separated by blanks, so `{word}` cannot be one of them"
        ));
    }
    let joined = workload.join(" ");
    Ok(head.iter().chain(&own).copied().chain(["--", &joined]).map(OsString::from).collect())
}

/// `compare` takes one with `--with` and `--machine`, and otherwise experiment files.
fn takes_workload(command: &Command, words: &[&str]) -> bool {
    let with = |word: &&str| matches!(word.split('=').next(), Some("--with" | "--machine"));
    let is_file = |word: &&str| word.ends_with(".toml");
    match command.get_name() {
        "compare" => words.iter().any(with) && !words.iter().any(is_file),
        _ => command.get_positionals().any(|argument| argument.get_id() == "workload"),
    }
}

/// coreward's words and the workload's.
type Split<'a> = (Vec<&'a str>, Vec<&'a str>);

/// `None` if the workload is one word already, or missing.
fn split<'a>(command: &Command, words: &[&'a str]) -> Result<Option<Split<'a>>, String> {
    let (mut own, mut workload) = (Vec::new(), Vec::new());
    let mut rest = words.iter().copied().peekable();
    while let Some(word) = rest.next() {
        if word == "--" {
            // netperf's own words may follow a `--`, which it has to see
            workload.extend((!workload.is_empty()).then_some(word));
            workload.extend(rest.by_ref());
        } else if let Some(option) = option(command, word) {
            if let Some(name) = workload.first().filter(|name| ambiguous(name, option)) {
                return Err(format!(
                    "`{word}` is an option of {name} and of coreward: put it before `{name}` if it is coreward's, or \
                     all of {name}'s command line after `--`"
                ));
            }
            own.push(word);
            if option.get_action().takes_values() && !word.contains('=') {
                match rest.peek() {
                    _ if !option.is_require_equals_set() => own.extend(rest.next()),
                    Some(value) if is_value(value) => {
                        return Err(format!(
                            "the value of `{word}` has to follow it in one word: {word}={value}"
                        ));
                    }
                    _ => {}
                }
            }
        } else if !workload.is_empty() {
            workload.push(word);
        } else if word.starts_with('-') {
            own.push(word); // clap says what is wrong with it
        } else if word.is_empty() || word.contains(char::is_whitespace) {
            return Ok(None);
        } else {
            workload.push(word);
        }
    }
    Ok((!workload.is_empty()).then_some((own, workload)))
}

/// Is it a number or a file for a report, which no workload begins with?
fn is_value(word: &str) -> bool {
    word.parse::<f64>().is_ok() || word.ends_with(".json") || word.ends_with(".html")
}

/// The long option of the subcommand that the word is.
fn option<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let name = word.strip_prefix("--")?.split('=').next();
    command.get_arguments().find(|argument| argument.get_long() == name)
}

fn ambiguous(tool: &str, option: &Arg) -> bool {
    let tool = tool.rsplit('/').next();
    AMBIGUOUS.iter().any(|(its, name)| tool == Some(its) && option.get_long() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coreward_workload::{
        Cyclictest, Encoder, Hackbench, Netperf, PerfMessaging, PerfPipe, Schbench, SchbenchOld, Server,
        StressNg, Sysbench, Tbench,
    };

    /// The arguments after `coreward`, and after being joined; an error as it is.
    fn joined(line: &[&str]) -> Result<String, String> {
        let args = ["coreward"].iter().chain(line).map(OsString::from).collect();
        let joined = join_workload(args)?;
        let words: Vec<_> = joined[1..].iter().map(|word| word.to_str().unwrap()).collect();
        Ok(words.join("|"))
    }

    #[test]
    fn compare_takes_a_workload_with_a_change_and_files_without() {
        assert_eq!(
            joined(&[
                "compare",
                "hackbench",
                "-g",
                "1",
                "--machine",
                "2c",
                "--with",
                "NO_TTWU_QUEUE",
                "--why"
            ]),
            Ok("compare|--machine|2c|--with|NO_TTWU_QUEUE|--why|--|hackbench -g 1".into())
        );
        for files in
            [&["compare", "experiments", "more"][..], &["compare", "a.toml", "--with", "x", "b.toml"]]
        {
            assert_eq!(joined(files), Ok(files.join("|")));
        }
    }

    #[test]
    fn options_of_coreward_stand_anywhere() {
        let wanted = Ok("run|--machine|2c|--json|--|hackbench -g 1".to_owned());
        assert_eq!(joined(&["run", "hackbench", "-g", "1", "--machine", "2c", "--json"]), wanted);
        assert_eq!(joined(&["run", "--machine", "2c", "hackbench", "-g", "1", "--json"]), wanted);
        assert_eq!(joined(&["run", "--machine", "2c", "--json", "--", "hackbench", "-g", "1"]), wanted);
        assert_eq!(joined(&["run", "--machine", "2c", "--json", "hackbench", "-g", "1"]), wanted);
        assert_eq!(
            joined(&["explain", "hackbench", "--relax-domain-level", "-1", "-T", "--seed=3"]),
            Ok("explain|--relax-domain-level|-1|--seed=3|--|hackbench -T".into())
        );
    }

    #[test]
    fn all_else_is_the_workloads() {
        assert_eq!(
            joined(&["run", "sysbench", "threads", "--threads=4", "run", "--machine", "2c"]),
            Ok("run|--machine|2c|--|sysbench threads --threads=4 run".into())
        );
        assert_eq!(
            joined(&["run", "--machine", "2c", "netperf", "-t", "TCP_RR", "--", "-r", "1,1"]),
            Ok("run|--machine|2c|--|netperf -t TCP_RR -- -r 1,1".into())
        );
        assert_eq!(
            joined(&["run", "--json", "--", "schbench", "--json", "f"]),
            Ok("run|--json|--|schbench --json f".into())
        );
    }

    #[test]
    fn what_is_one_word_stays() {
        for line in [
            &["run", "hackbench -g 1", "--machine", "2c"][..],
            &["run", "--machine", "2c", "hackbench -g 1", "extra"],
            &["run", "--machine", "2c"],
            &["run", ""],
            &["topology", "2c"],
            &["validate", "hackbench", "--rounds", "2"],
            &["record", "--queue", "--", "hackbench", "-g", "1"],
            &["run"],
            &[],
        ] {
            assert_eq!(joined(line), Ok(line.join("|")));
        }
    }

    #[test]
    fn a_value_that_is_not_in_its_options_word_is_refused() {
        for (line, what) in [
            (&["compare", "--with", "x", "--intervals", "10", "hackbench -g 1"][..], "--intervals=10"),
            (&["compare", "hackbench", "--with", "x", "--json", "x.json"], "--json=x.json"),
        ] {
            let refused = joined(line).unwrap_err();
            assert!(refused.ends_with(&format!("in one word: {what}")), "{refused}");
        }
        assert_eq!(
            joined(&["run", "--json", "hackbench", "-g", "1"]),
            Ok("run|--json|--|hackbench -g 1".into())
        );
    }

    #[test]
    fn what_may_be_either_is_refused() {
        let refused = joined(&["run", "schbench", "-t", "4", "--json"]).unwrap_err();
        assert!(refused.starts_with("`--json` is an option of schbench and of coreward: put"), "{refused}");
        assert!(joined(&["run", "--json", "schbench", "-t", "4"]).is_ok());
        for line in [
            ["run", "cyclictest", "--policy=batch"],
            ["run", "cyclictest", "--json"],
            ["compare", "cyclictest", "--quiet"],
            ["run", "stress-ng", "--quiet"],
            ["explain", "stress-ng", "--cpu"],
        ] {
            let line = line.into_iter().chain(["--machine", "2c"]).collect::<Vec<_>>();
            let refused = joined(&line).unwrap_err();
            assert!(refused.contains("and of coreward: put it before"), "{refused}");
        }
        assert!(joined(&["run", "stress-ng", "--cpu", "1"]).is_ok(), "run has no such option");
        assert!(joined(&["run", "hackbench", "--json"]).is_ok(), "hackbench has no such option");
        let refused = joined(&["run", "rt-app", "my file.json"]).unwrap_err();
        assert!(refused.contains("`my file.json`"), "{refused}");
    }

    /// A new option on either side has to be put into [`AMBIGUOUS`].
    #[test]
    fn no_other_option_may_be_either() {
        let mut cli = Cli::command();
        cli.build();
        let tools = [
            Cyclictest::command(),
            Encoder::command(),
            Hackbench::command(),
            Netperf::command(),
            PerfMessaging::command(),
            PerfPipe::command(),
            Schbench::command(),
            SchbenchOld::command(),
            Server::command(),
            StressNg::command(),
            Sysbench::command(),
            Tbench::command(),
        ];
        for own in cli.get_subcommands().filter(|command| takes_workload(command, &["--with"])) {
            for tool in &tools {
                let both = tool.get_arguments().filter_map(|argument| {
                    argument.get_long().and_then(|name| option(own, &format!("--{name}")))
                });
                for option in both {
                    assert!(ambiguous(tool.get_name(), option), "{}: {option}", tool.get_name());
                }
            }
        }
    }
}
