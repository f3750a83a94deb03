//! Capture files: the decisions that are read are repeated, and written again unchanged.
//!
//! Checksums are corrected first, because otherwise nothing else would be tested.
#![no_main]

use coreward_parity::{Reader, Replay, Writer};
use coreward_policy::Code;
use libfuzzer_sys::fuzz_target;

/// Bytes before the first frame, and of a frame's header.
const HEADER: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    repair(&mut bytes);
    let Ok(mut reader) = Reader::new(&bytes[..], "fuzz") else { return };
    let machine = reader.machine().clone();
    let (profile, _) = machine.host.profile();
    let policy = machine.host.settings(Code::built_in(), profile);
    let Ok(mut replay) = Replay::new(&machine, &policy) else { return };
    let mut writer = Writer::new(Vec::new(), &machine).expect("memory is written");
    for record in &mut reader {
        let Ok(record) = record else { return };
        replay.compare(&record);
        writer.record(&record).expect("memory is written");
    }
    let written = writer.finish(reader.lost().expect("the end was read")).expect("memory is written");
    let again = Reader::new(&written[..], "again").expect("what was written is read");
    assert_eq!(*again.machine(), machine);
    assert!(again.into_iter().all(|record| record.is_ok()));
});

/// Sets the checksum of every frame to that of its payload.
fn repair(bytes: &mut [u8]) {
    let mut rest = bytes.get_mut(HEADER..).unwrap_or_default();
    while rest.len() >= HEADER {
        let (header, after) = rest.split_at_mut(HEADER);
        let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        if length > after.len() {
            return;
        }
        let (payload, next) = after.split_at_mut(length);
        header[8..12].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        rest = next;
    }
}
