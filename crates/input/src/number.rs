//! Numbers in arguments.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_says_what_is_allowed() {
        let number = within(1..=12u32);
        assert_eq!((number("1"), number("12")), (Ok(1), Ok(12)));
        for wrong in ["0", "13", "-1", "", "x", "1.5", "99999999999999999999"] {
            assert_eq!(number(wrong).unwrap_err(), "allowed are 1 to 12", "{wrong}");
        }
    }
}
