//! Untrusted input and output: files are read without trusting their type or length, and text is printed
//! without trusting how a terminal would interpret it.

mod file;
mod number;
mod print;
mod suggest;
mod toml;
mod twice;

pub use file::{open, read_text};
pub use number::within;
pub use print::{Printer, commands, many, message, printable, printable_json};
pub use suggest::{did_you_mean, unknown, unknown_of_many};
pub use toml::{line_at, toml_refusal};
pub use twice::twice;
