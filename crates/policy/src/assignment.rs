//! A setting as users write it.

use std::str::FromStr;

/// `NAME=VALUE` with an integer value. The value of a name that ends in a unit of time may have one of its own:
/// `base_slice_ns=2ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// What is set: a tunable, a cost; any name is taken here.
    pub name: String,
    /// What it is set to.
    pub value: i64,
}

impl FromStr for Assignment {
    /// What is allowed.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "allowed is NAME=VALUE with an integer value, for a time also like 2ms".to_owned();
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        let value = value.parse().ok().or_else(|| time(name, value)).ok_or_else(wrong)?;
        Ok(Assignment { name: name.into(), value })
    }
}

/// Units of time in ns. `s` comes last, as the others end in it, too.
const UNITS: [(&str, i64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// A time in the unit in which a name ends, if it is a whole number of it.
fn time(name: &str, value: &str) -> Option<i64> {
    let (_, own) =
        UNITS.iter().find(|(unit, _)| name.strip_suffix(unit).is_some_and(|rest| rest.ends_with('_')))?;
    let (number, unit) = UNITS.iter().find_map(|(unit, ns)| Some((value.strip_suffix(unit)?, ns)))?;
    let ns = number.parse::<i64>().ok()?.checked_mul(*unit)?;
    (ns % own == 0).then_some(ns / own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let value = |text: &str| text.parse::<Assignment>().map(|assignment| assignment.value).ok();
        assert_eq!(value("base_slice_ns=2ms"), Some(2_000_000));
        assert_eq!(value("base_slice_ns=2000000"), Some(2_000_000));
        assert_eq!(
            (value("x_ns=7ns"), value("x_us=3ms"), value("x_ms=1s")),
            (Some(7), Some(3_000), Some(1_000))
        );
        for wrong in [
            "x_us=1500ns",
            "nr_migrate=2ms",
            "x_ns=ms",
            "x_ns=1.5ms",
            "x_ns=2 ms",
            "x_ns=9999999999999s",
            "ns=1us",
        ] {
            assert_eq!(value(wrong), None, "{wrong}");
        }
    }
}
