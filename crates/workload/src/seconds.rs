//! Lengths of time as tools read them.

/// The most seconds that are taken.
const MOST: u64 = 1_000_000;

/// `90`, `90s`, `2m`, `1h`, `1d`, `1w` or `1y` in s, from `least` on. `units` are the letters that the tool knows.
///
/// # Errors
/// What is allowed, if it is no such length.
pub(crate) fn seconds(text: &str, units: &str, least: u64) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().next_back() {
        Some((at, unit)) if units.contains(unit) => (&text[..at], unit.to_ascii_lowercase()),
        _ => (text, 's'),
    };
    let unit = match unit {
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        'y' => 365 * 86_400,
        _ => 1,
    };
    let seconds = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    let seconds = seconds.filter(|seconds| (least..=MOST).contains(seconds));
    seconds.ok_or_else(|| format!("allowed are {least} to {MOST} s"))
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn a_number_may_have_a_unit_that_the_tool_knows() {
        let read = |text| seconds(text, "smhdS", 1).ok();
        assert_eq!(["7", "7s", "7S", "2m", "1h", "3d"].map(read), [7, 7, 7, 120, 3600, 259_200].map(Some));
        for refused in ["", "s", "0", "1w", "1H", "-1", "1.5", "11m ", "12d", "99999999999999999999", "1ä"] {
            assert_eq!(read(refused), None, "{refused}");
        }
        assert_eq!(seconds("0s", "s", 0), Ok(0));
        assert_eq!(seconds("x", "s", 0).unwrap_err(), "allowed are 0 to 1000000 s");
    }
}
