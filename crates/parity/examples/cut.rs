//! Cuts a capture file down to a few decisions of each path, for tests: `cut FROM TO`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::Path;

use coreward_parity::{Reader, Replay, Writer};

/// How many decisions of each path are kept of those that agree, and of those that do not.
const KEPT: u32 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let [from, to] = <[String; 2]>::try_from(std::env::args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "usage: cut FROM TO")?;
    let mut reader = Reader::open(Path::new(&from))?;
    let host = &reader.machine().host;
    let (features, tunables) = (host.features(host.profile().0), host.tunables());
    let mut replay = Replay::new(reader.machine(), features, tunables)?;
    let mut writer = Writer::new(File::create(to)?, reader.machine())?;
    let mut seen: BTreeMap<_, u32> = BTreeMap::new();
    for record in &mut reader {
        let record = record?;
        let mut few = false;
        for outcome in replay.compare(&record) {
            let count = seen.entry((outcome.path.name(), outcome.agrees())).or_default();
            *count += 1;
            few |= *count <= KEPT;
        }
        if few {
            writer.record(&record)?;
        }
    }
    writer.finish(0)?;
    Ok(())
}
