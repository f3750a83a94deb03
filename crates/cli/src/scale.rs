//! The fraction of a workload to run, parsed without rounding.

use coreward_workload::Scale;

/// Digits after the point: [`Scale`] counts in millionths.
const DECIMALS: usize = 6;

const ALLOWED: &str = "allowed are 0.000001 to 1, with at most 6 decimals";

/// Reads a decimal number like `0.005`.
///
/// # Errors
/// Anything but digits with at most one point, a value outside 0 < x <= 1, more than 6 decimals.
pub(crate) fn parse(text: &str) -> Result<Scale, String> {
    ppm(text).map(Scale).ok_or_else(|| format!("scale is {text}, {ALLOWED}"))
}

fn ppm(text: &str) -> Option<u32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() > 1 || fraction.len() > DECIMALS {
        return None;
    }
    let ppm = format!("{whole}{fraction:0<DECIMALS$}").parse().ok()?;
    (1..=Scale::FULL.0).contains(&ppm).then_some(ppm)
}

/// The number as it is written.
pub(crate) fn text(scale: Scale) -> String {
    let decimals = format!("{:06}", scale.0 % Scale::FULL.0);
    match decimals.trim_end_matches('0') {
        "" => (scale.0 / Scale::FULL.0).to_string(),
        fraction => format!("0.{fraction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_become_millionths() {
        for (text_in, ppm) in
            [("1", 1_000_000), ("1.0", 1_000_000), ("0.005", 5_000), ("0.000001", 1), ("0.123456", 123_456)]
        {
            assert_eq!(parse(text_in), Ok(Scale(ppm)), "{text_in}");
        }
        assert_eq!(text(Scale(5_000)), "0.005");
        assert_eq!(text(Scale(1)), "0.000001");
        assert_eq!(text(Scale::FULL), "1");
    }

    #[test]
    fn everything_else_is_refused() {
        for bad in [
            "",
            ".",
            "0",
            "0.0",
            "1.000001",
            "2",
            "-1",
            "+1",
            "1e-3",
            "0.0000001",
            "0.5x",
            ".5",
            "0.",
            "11",
            "nan",
        ] {
            let error = parse(bad).unwrap_err();
            assert_eq!(error, format!("scale is {bad}, {ALLOWED}"));
        }
    }
}
