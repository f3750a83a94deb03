//! Numbers in arguments.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::suggest::did_you_mean;

/// A reader of integers of a range, as clap takes one; what it refuses, it refuses with what is allowed.
pub fn within<T>(
    allowed: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if allowed.contains(&number) => Ok(number),
        _ => Err(format!("allowed are {} to {}", allowed.start(), allowed.end())),
    }
}

/// What TOML's reader says, with what is allowed where it says that something is too large.
pub fn toml_refusal(message: &str) -> String {
    let message = message.replace('\n', " ");
    for (said, meant) in [
        ("recursion limit exceeded", "it is nested too deeply, allowed are 80 levels"),
        ("number too large to fit in target type", INTEGERS),
        ("number too small to fit in target type", INTEGERS),
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

const INTEGERS: &str = "the integer is out of range, allowed are -9223372036854775808 to 9223372036854775807";

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
    fn a_range_says_what_is_allowed() {
        let number = within(1..=12u32);
        assert_eq!((number("1"), number("12")), (Ok(1), Ok(12)));
        for wrong in ["0", "13", "-1", "", "x", "1.5", "99999999999999999999"] {
            assert_eq!(number(wrong).unwrap_err(), "allowed are 1 to 12", "{wrong}");
        }
    }
}
