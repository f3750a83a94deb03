//! Cuts capture files of one machine down to a few decisions of each path and reason, for tests: `cut FROM... TO`.
//! Of those that agree it keeps the first, second, fourth, eighth and so on, and the same of those that do not.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;

use coreward_parity::{Reader, Replay, Writer};
use coreward_policy::Code;

fn main() -> Result<(), Box<dyn Error>> {
    let mut files: Vec<_> = std::env::args().skip(1).collect();
    let to = files.pop().filter(|_| !files.is_empty()).ok_or("usage: cut FROM... TO")?;
    let first = Reader::open(Path::new(&files[0]))?;
    let machine = first.machine();
    let policy = machine.host.settings(Code::built_in(), machine.host.profile().0);
    let mut writer = Writer::new(File::create(to)?, machine)?;
    let mut seen: BTreeMap<_, u32> = BTreeMap::new();
    for from in &files {
        let mut reader = Reader::open(Path::new(from))?;
        if reader.machine() != machine {
            return Err(format!("{from} is of another machine than {}", files[0]).into());
        }
        let mut replay = Replay::new(machine, &policy)?;
        for record in &mut reader {
            let record = record?;
            let mut few = false;
            for outcome in replay.compare(&record) {
                let key = (outcome.path.name(), outcome.policy_reason, outcome.agrees());
                let count = seen.entry(key).or_default();
                *count += 1;
                few |= count.is_power_of_two();
            }
            if few {
                writer.record(&record)?;
            }
        }
    }
    writer.finish(0)?;
    Ok(())
}
