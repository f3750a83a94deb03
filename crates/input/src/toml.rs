//! What is wrong with a TOML file, and where.

use crate::suggest::did_you_mean;

const INTEGERS: &str = "the integer is out of range, allowed are -9223372036854775808 to 9223372036854775807";
const NO_VALUE: &str = "the key has no value, or its text no quotation marks, allowed are \"text\", numbers, true, false, [...] and {...}";

/// The line of a text, from 1 on, that a byte of it is in. An offset behind its end is in the last line.
pub fn line_at(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// What TOML's reader says, with what is allowed where it does not say that itself.
pub fn toml_refusal(message: &str) -> String {
    let message = message.replace('\n', " ");
    // it says nothing where the file ends instead of a value
    if message.is_empty() {
        return NO_VALUE.into();
    }
    for (said, meant) in [
        ("recursion limit exceeded", "it is nested too deeply, allowed are 80 levels"),
        ("number too large to fit in target type", INTEGERS),
        ("number too small to fit in target type", INTEGERS),
        ("invalid string expected `\"`, `'`", NO_VALUE),
    ] {
        if message.contains(said) {
            return meant.into();
        }
    }
    let message = with_suggestion(message);
    // a number of the file is one of 64 bits with a sign, whatever type it is for
    let message = message.replace("expected u64", "allowed are 0 to 9223372036854775807");
    message.replace("expected u32", "allowed are 0 to 4294967295")
}

/// A message of serde that names what is allowed: ``unknown field `x`, expected one of `a`, `b` ``.
fn with_suggestion(message: String) -> String {
    let parts = message.split_once(", expected ").filter(|_| message.starts_with("unknown "));
    let Some((unknown, expected)) = parts else { return message };
    let names = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let name = names(unknown).pop().unwrap_or_default();
    let hint = did_you_mean(&name, names(expected).iter().map(String::as_str));
    format!("{unknown}, {hint}expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_answered_with_the_nearest() {
        assert_eq!(
            toml_refusal("unknown field `rnus`, expected one of `runs`, `seed`"),
            "unknown field `rnus`, did you mean `runs`? expected one of `runs`, `seed`"
        );
        assert_eq!(
            toml_refusal("unknown field `x`, expected `runs` or `seed`"),
            "unknown field `x`, expected `runs` or `seed`"
        );
    }

    #[test]
    fn a_key_without_a_value_is_refused_with_what_is_allowed() {
        for text in ["a =", "a = text", "a = { b = }", "a = \n[b]"] {
            let error = toml::from_str::<toml::Table>(text).unwrap_err();
            assert_eq!(toml_refusal(error.message()), NO_VALUE, "{text}");
        }
    }

    #[test]
    fn lines_count_from_1() {
        let text = "a\n\nb";
        assert_eq!([0, 1, 2, 3, 4, 9].map(|offset| line_at(text, offset)), [1, 1, 2, 3, 3, 3]);
    }
}
