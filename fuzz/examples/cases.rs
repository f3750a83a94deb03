//! Writes cases of `structure` as files for `coreward run`: `cases DIRECTORY NUMBER FIRST`.
//!
//! Each is a directory of its own with `machine.toml`, `workload.json` if it is an rt-app file, and `arguments`, one on
//! each line.

use std::fs;
use std::path::Path;

use coreward_fuzz::structure::{self, Case, Source, bytes};
use libfuzzer_sys::arbitrary::Unstructured;

fn arguments(case: &Case) -> Vec<String> {
    let workload = match &case.workload {
        Source::RtApp(_) => "rt-app workload.json".to_owned(),
        Source::Command(line) => line.clone(),
    };
    let (seed, depth) = (case.seed.to_string(), case.task_group_depth.to_string());
    let mut arguments: Vec<String> =
        ["run", &workload, "--json", "--machine", "machine.toml"].map(String::from).into();
    let mut option = |name: &str, value: &str| arguments.extend([name.to_owned(), value.to_owned()]);
    option("--profile", case.profile);
    option("--seed", &seed);
    option("--task-group-depth", &depth);
    for (name, value) in &case.changes {
        match (name.chars().all(|c| !c.is_lowercase()), value) {
            (true, 0) => option("--sched-feat", &format!("NO_{name}")),
            (true, _) => option("--sched-feat", name),
            (false, value) => option("--set", &format!("{name}={value}")),
        }
    }
    case.partition.iter().for_each(|cpus| option("--partition", cpus));
    case.events.iter().for_each(|event| option("--event", event));
    arguments
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, number, first] = &words[..] else { panic!("cases DIRECTORY NUMBER FIRST") };
    let (number, first): (u64, u64) = (number.parse().expect("NUMBER"), first.parse().expect("FIRST"));
    for number in first..first + number {
        let bytes = bytes(number);
        let case = structure::case(&mut Unstructured::new(&bytes)).expect("enough bytes");
        let directory = Path::new(directory).join(number.to_string());
        let write = |name: &str, text: &str| fs::write(directory.join(name), text).expect("a file");
        fs::create_dir_all(&directory).expect("a directory");
        write("machine.toml", &case.machine);
        if let Source::RtApp(text) = &case.workload {
            write("workload.json", text);
        }
        write("arguments", &arguments(&case).join("\n"));
    }
}
