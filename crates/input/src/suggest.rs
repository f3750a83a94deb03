//! What a user may have meant by a name that there is not.

/// A part of a name that is at least this long is taken for the name.
const LONG: usize = 4;

/// The message that there is no `what` of a name, with the most similar name that there is, and all that are allowed.
pub fn unknown<'a>(what: &str, name: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    let allowed: Vec<_> = allowed.into_iter().collect();
    format!(
        "unknown {what} `{name}`, {}allowed are {}",
        did_you_mean(name, allowed.iter().copied()),
        allowed.join(", ")
    )
}

/// ``did you mean `NAME`? `` if one of the allowed names is similar, nothing otherwise: if a fifth of the letters, or one,
/// is wrong, missing, too many or swapped with the next, or if the name is a part of it.
pub fn did_you_mean<'a>(name: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    let name = name.to_lowercase();
    let most = if name.len() < 3 { 0 } else { (name.len() / 5).max(1) };
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let slips = strsim::damerau_levenshtein(&name, &candidate);
        let is_part = name.len() >= LONG && candidate.contains(&name);
        (slips <= most || is_part).then_some(slips)
    };
    let similar = allowed.into_iter().filter_map(|candidate| Some((distance(candidate)?, candidate)));
    let nearest = similar.min_by_key(|(distance, _)| *distance);
    nearest.map(|(_, name)| format!("did you mean `{name}`? ")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_that_was_meant() {
        for (slip, meant) in [
            ("WAKEUP_BAIS_PREV", "WAKEUP_BIAS_PREV"),
            ("wakeup_bias_prev", "WAKEUP_BIAS_PREV"),
            ("WAKEUP_BIAS", "WAKEUP_BIAS_PREV"),
            ("slice_ns", "base_slice_ns"),
        ] {
            let all = ["UTIL_EST", "WAKEUP_BIAS_PREV", "base_slice_ns", "SIS_UTIL"];
            assert_eq!(did_you_mean(slip, all), format!("did you mean `{meant}`? "));
        }
        assert_eq!(did_you_mean("SUCH", ["UTIL_EST", "SIS_UTIL"]), "");
        assert_eq!(did_you_mean("z", ["x", "y"]), "", "nothing of it is the same");
        assert_eq!(
            unknown("cost", "tik", ["tick", "tock"]),
            "unknown cost `tik`, did you mean `tick`? allowed are tick, tock"
        );
        assert_eq!(unknown("cost", "x", ["tick", "tock"]), "unknown cost `x`, allowed are tick, tock");
    }
}
