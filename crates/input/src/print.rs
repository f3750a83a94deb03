//! Text to be printed.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a terminal, or what lays out text, could take a character for a command: control characters, and those
/// about the order of letters and the end of lines.
pub fn commands(c: char) -> bool {
    // Unicode's Bidi_Control, and its separators of lines and paragraphs
    let order =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || order || matches!(c, '\u{2028}' | '\u{2029}')
}

fn escaped<'a>(
    text: &'a str,
    which: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char),
) -> Cow<'a, str> {
    if !text.contains(&which) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match which(c) {
            true => escape(&mut out, c),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn visible(out: &mut String, c: char) {
    out.extend(c.escape_unicode());
}

/// Text as one line that a terminal shows as it is: an escape character becomes `\u{1b}`, a newline `\u{a}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, commands, visible)
}

/// The longest word of a message, and the longest message, in characters: a file may have names of any length.
const WORD: usize = 200;
const MESSAGE: usize = 4000;

/// A message about what is wrong, which may quote what nobody has seen yet, as one printable line of bounded length.
pub fn message(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().map(|word| shortened(word, WORD)).collect();
    printable(&shortened(&words.join(" "), MESSAGE)).into_owned()
}

/// A long text without its middle.
fn shortened(text: &str, max: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= max {
        return Cow::Borrowed(text);
    }
    let half = max / 2;
    let ends = [text.chars().take(half).collect(), text.chars().skip(length - half).collect::<String>()];
    Cow::Owned(ends.join("…"))
}

/// JSON with what a terminal could take for a command escaped as JSON has it; what it says stays the same.
pub fn printable_json(text: &str) -> Cow<'_, str> {
    // outside of strings only these separate, and in strings they cannot stand
    let which = |c| commands(c) && !matches!(c, '\n' | '\t' | '\r');
    escaped(text, which, |out, c| {
        // none of them is beyond the basic plane; writing to a string does not fail
        let _ = write!(out, "\\u{:04x}", u32::from(c));
    })
}

/// Lines for people: passes on text as [`printable`] has it, but for newlines and tabs, which are the program's.
pub struct Printer<W>(W);

impl<W: Write> Printer<W> {
    /// Prints to `inner`.
    pub fn new(inner: W) -> Self {
        Self(inner)
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let which = |c| commands(c) && !matches!(c, '\n' | '\t');
        self.0.write_all(escaped(text, which, visible).as_bytes())
    }
}

impl<W: Write> Write for Printer<W> {
    /// A character must not be divided between calls: the halves are no text.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(chunk) = bytes.utf8_chunks().next() else { return Ok(0) };
        self.text(chunk.valid())?;
        if !chunk.invalid().is_empty() {
            self.text("\u{fffd}")?;
        }
        Ok(chunk.valid().len() + chunk.invalid().len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A number of things by their name: `1 cell`, `2 cells`.
pub fn many(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NASTY: &str = "a\u{1b}]0;t\u{7}b\u{9b}1mc\u{202e}d\u{2066}e\u{7f}\r\u{2028}ü";

    fn printed(bytes: &[u8]) -> String {
        let mut out = Vec::new();
        Printer::new(&mut out).write_all(bytes).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_commands_a_terminal_is_shown() {
        let shown = "a\\u{1b}]0;t\\u{7}b\\u{9b}1mc\\u{202e}d\\u{2066}e\\u{7f}\\u{d}\\u{2028}ü";
        assert_eq!(printable(NASTY), shown);
        assert_eq!(printed(format!("{NASTY}\n\tx\n").as_bytes()), format!("{shown}\n\tx\n"));
        assert_eq!(printable("a\nb\t"), "a\\u{a}b\\u{9}");
        assert!(matches!(printable("plain, ünd 中"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_message_is_a_line_of_bounded_length() {
        assert_eq!(message("a\n  b\t`\u{1b}[31mü\u{9b}`"), "a b `\\u{1b}[31mü\\u{9b}`");
        let (a, b) = ("ä".repeat(100), "b".repeat(100));
        assert_eq!(message(&format!("unknown `{a}{b}`")), format!("unknown `{}…{}`", &a[2..], &b[1..]));
        assert_eq!(message(&format!("{a}{b}")), format!("{a}{b}"));
        let long = message(&"word ".repeat(10_000));
        assert_eq!(long.chars().count(), 4001);
        assert!(long.starts_with("word word") && long.ends_with("word word"));
    }

    #[test]
    fn json_stays_json() {
        let json = "{\n\t\"a\u{9b}\": \"\u{202e}\u{7f}\"}";
        assert_eq!(printable_json(json), "{\n\t\"a\\u009b\": \"\\u202e\\u007f\"}");
    }

    #[test]
    fn what_is_no_text_is_replaced() {
        assert_eq!(printed(b"a\xffb\xc3"), "a\u{fffd}b\u{fffd}");
    }

    proptest! {
        #[test]
        fn nothing_commands(text in any::<String>(), bytes in any::<Vec<u8>>()) {
            prop_assert!(!printable(&text).contains(commands));
            prop_assert!(!printed(&bytes).contains(|c| commands(c) && c != '\n' && c != '\t'));
        }

        #[test]
        fn plain_text_is_left_alone(text in "[ -~äöü中\n]*") {
            prop_assert_eq!(printed(text.as_bytes()), text);
        }
    }
}
