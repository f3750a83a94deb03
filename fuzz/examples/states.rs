//! States of machines for the comparison of the native policy with BPF's, as `struct cw_sys` on standard output:
//!
//! ```text
//! cargo run --release --example states -- NUMBER FIRST
//! ```
//!
//! They are those of the cases of `structure`, from number FIRST on, with their settings.

use std::io::Write;
use std::mem::size_of_val;

use coreward_fuzz::structure::{self, bytes};
use libfuzzer_sys::arbitrary::Unstructured;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let number = arguments.next().expect("NUMBER");
    let first = arguments.next().unwrap_or(0);
    let mut out = std::io::stdout().lock();
    for number in first..first + number {
        let bytes = bytes(number);
        let case = structure::case(&mut Unstructured::new(&bytes)).expect("enough bytes");
        let Ok(system) = structure::system(&case) else { continue };
        // SAFETY: it is integers only, in memory that was zeroed when it was allocated.
        let state =
            unsafe { std::slice::from_raw_parts((&raw const *system).cast::<u8>(), size_of_val(&*system)) };
        // the reader may have seen enough
        if out.write_all(state).is_err() {
            return;
        }
    }
}
