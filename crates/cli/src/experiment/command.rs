//! `coreward experiment`: a file to start from, and the format of such files.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};

use super::schema::schema;
use crate::cli;
use crate::output::{self, Outputs};

const TEMPLATE: &str = include_str!("template.toml");

pub(crate) fn run(args: &cli::ExperimentFile, out: &mut dyn Write) -> Result<()> {
    match &args.command {
        cli::ExperimentCommand::Init { file } => init(file),
        cli::ExperimentCommand::Schema => output::json(out, &schema()),
    }
}

/// Writes the file to start from; an existing one is somebody's work.
fn init(target: &Path) -> Result<()> {
    if target.is_file() {
        bail!("cannot write {}: it exists already, allowed is the name of a new file", target.display());
    }
    let mut file = Outputs::new([]).create("init", target)?;
    file.write_all(TEMPLATE.as_bytes())?;
    file.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn the_template_is_an_experiment_that_shows_every_key() {
        Experiment::parse("t.toml", TEMPLATE).unwrap();
        let schema = serde_json::to_value(schema()).unwrap();
        let tables = schema["$defs"].as_object().unwrap().values().chain([&schema]);
        for key in tables.filter_map(|table| table["properties"].as_object()).flat_map(|table| table.keys()) {
            let shown = TEMPLATE.lines().map(|line| line.trim_start_matches(['#', ' ', '['])).any(|line| {
                line.strip_prefix(key.as_str()).is_some_and(|rest| rest.trim_start().starts_with(['=', ']']))
            });
            assert!(shown, "{key} is not in the template");
        }
    }

    /// What is commented out is right, too.
    #[test]
    fn the_examples_in_the_template_can_be_used() {
        let example = |line: &str| {
            line.strip_prefix("# ").map(str::to_owned).filter(|l| l.contains(" = ") || l.starts_with("[["))
        };
        let lines = TEMPLATE.lines().map(|line| example(line).unwrap_or_else(|| line.to_owned()));
        let text: Vec<_> = lines
            .filter(|line| !line.starts_with("workload = \"hackbench -g 2 -f 4 --threads --pipe -l 500\""))
            .collect();
        // the case has a workload instead of the experiment, and there is no such directory here
        let text = text
            .join("\n")
            .replace("\npolicy = ", "\n# policy = ")
            .replace("label = \"2 groups\"\n", "label = \"2 groups\"\nworkload = \"hackbench\"\n");
        let cases = "ablation_cases = [\"2 groups\"]\n";
        let text = format!("{cases}{}", text.replace(cases, ""));
        Experiment::parse("t.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
