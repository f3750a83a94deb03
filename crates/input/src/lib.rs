//! What comes from outside: files that are read without trusting what they are and how long they are, and text that
//! is printed without trusting what a terminal makes of it.

mod file;
mod number;
mod print;

pub use file::{open, read_text};
pub use number::{toml_refusal, within};
pub use print::{Printer, commands, message, printable, printable_json};
