//! What a user may have meant by a name that there is not.

/// A part of a name that is at least this long is taken for the name.
const LONG: usize = 4;
/// So many names are suggested at most.
const FEW: usize = 3;

/// The message that there is no `what` of a name, with the most similar name that there is, and all that are allowed.
pub fn unknown<'a>(what: &str, name: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    let allowed: Vec<_> = allowed.into_iter().collect();
    format!(
        "unknown {what} `{name}`, {}allowed are {}",
        did_you_mean(name, allowed.iter().copied()),
        allowed.join(", ")
    )
}

/// The same where there are too many to be read in a message: `listed` is the command that lists all.
pub fn unknown_of_many<'a>(
    what: &str,
    name: &str,
    allowed: impl IntoIterator<Item = &'a str>,
    listed: &str,
) -> String {
    format!("unknown {what} `{name}`, {}`{listed}` lists all", did_you_mean(name, allowed))
}

/// ``did you mean `NAME`? `` if allowed names are similar, nothing otherwise: those of which the fewest letters are
/// wrong, missing, too many or swapped with the next, at most a fifth or one; or else a few that contain the name.
pub fn did_you_mean<'a>(name: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    let name = name.to_lowercase();
    let most = if name.len() < 3 { 0 } else { (name.len() / 5).max(1) };
    let rated = |candidate: &'a str| {
        let lower = candidate.to_lowercase();
        let slips = strsim::damerau_levenshtein(&name, &lower);
        let is_part = name.len() >= LONG && lower.contains(&name);
        (slips <= most || is_part).then_some((slips, candidate))
    };
    let mut similar: Vec<_> = allowed.into_iter().filter_map(rated).collect();
    similar.sort_by_key(|(slips, _)| *slips);
    let fewest = similar.first().map_or(0, |(slips, _)| *slips);
    let as_near = |slips: usize| slips == fewest || fewest > most;
    let meant: Vec<_> = similar.into_iter().filter(|(slips, _)| as_near(*slips)).take(FEW).collect();
    let meant: Vec<_> = meant.into_iter().map(|(_, candidate)| format!("`{candidate}`")).collect();
    match &meant[..] {
        [] => String::new(),
        [one] => format!("did you mean {one}? "),
        [others @ .., last] => format!("did you mean {} or {last}? ", others.join(", ")),
    }
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
        let all =
            ["WAKEUP_PICK", "SIS_UTIL", "CACHE_AWARE_WAKEUP", "WAKEUP_BIAS_PREV", "NO_WAKEUP_AT_ALL_HERE"];
        let few = "did you mean `WAKEUP_PICK`, `WAKEUP_BIAS_PREV` or `CACHE_AWARE_WAKEUP`? ";
        assert_eq!(did_you_mean("wakeup", all), few);
        assert_eq!(did_you_mean("1l4c", ["1l4d", "2l4c", "x1l4cx"]), "did you mean `1l4d` or `2l4c`? ");
        assert_eq!(did_you_mean("SUCH", ["UTIL_EST", "SIS_UTIL"]), "");
        assert_eq!(did_you_mean("z", ["x", "y"]), "", "nothing of it is the same");
        assert_eq!(
            unknown("cost", "tik", ["tick", "tock"]),
            "unknown cost `tik`, did you mean `tick`? allowed are tick, tock"
        );
        assert_eq!(
            unknown_of_many("cost", "tik", ["tick", "tock"], "coreward costs"),
            "unknown cost `tik`, did you mean `tick`? `coreward costs` lists all"
        );
        assert_eq!(unknown("cost", "x", ["tick", "tock"]), "unknown cost `x`, allowed are tick, tock");
    }
}
