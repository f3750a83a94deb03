//! The seeds of the fuzz targets are valid input: from what a reader refuses, mutation finds little.

mod common;

use std::fmt::Display;
use std::fs;
use std::path::Path;

use common::{directory, names};
use coreward_cli::experiment::Experiment;
use coreward_machine::Machine;
use coreward_workload::{Scale, rt_app};

/// Reads all seeds of a target.
fn accepted<T, E: Display>(target: &str, read: impl Fn(&str) -> Result<T, E>) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let names = names(&seeds);
    assert!(!names.is_empty());
    for name in names {
        if let Err(error) = read(&fs::read_to_string(seeds.join(&name)).unwrap()) {
            panic!("{target}/{name}: {error}");
        }
    }
}

#[test]
fn seeds_are_accepted() {
    accepted("experiment_toml", |text| Experiment::parse("e.toml", text));
    accepted("machine_toml", |text| Machine::from_toml_str("m.toml", text));
    accepted("hwloc_xml", |text| Machine::from_hwloc_str("h.xml", text));
    accepted("shorthand", Machine::from_shorthand);
    accepted("hackbench", |text| coreward_workload::parse(text, Scale::FULL));
    accepted("rt_app", |text| rt_app::from_text("r.json", text, Scale::FULL));
    let tree = directory("seeds");
    accepted("sysfs_tree", |text| {
        fs::remove_dir_all(&tree).unwrap();
        for line in text.lines() {
            let (file, content) = line.split_once(':').unwrap();
            let file = tree.join("devices/system").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        Machine::load(&format!("sysfs:{}", tree.display()))
    });
}
