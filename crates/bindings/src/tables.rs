//! Rust tables generated from the `.def` files.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::headers::Headers;

/// Features, tunables, profiles, reasons, notes and events of balances; and the members of two enums by
/// name.
pub(crate) fn from_defs(policy: &Path, headers: &Headers) -> Result<String> {
    let read = |name: &str, macros: &[&str]| -> Result<Vec<Entry>> {
        let path = policy.join(name);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        entries(&text, macros).with_context(|| path.display().to_string())
    };
    let mut out = String::from("use super::layout;\nuse crate::profile::{FeatureInfo, TunableInfo};\n\n");
    let defs = read("features.def", &["FEATURE", "TUNABLE"])?;
    let (features, tunables): (Vec<_>, Vec<_>) = defs.into_iter().partition(|e| e.of == "FEATURE");
    numbered(&mut out, "Feature", "A feature bit of the policy", &features)?;
    table(
        &mut out,
        "FEATURES",
        "What features.def says of each feature, in the order of [`Feature`].",
        "FeatureInfo",
        &features,
        |args| {
            let [name, kernels, seed, help] = args else { bail!("not four arguments") };
            Ok(format!("FeatureInfo {{ name: \"{name}\", kernels: {kernels}, seed: {seed}, help: {help} }}"))
        },
    )?;
    numbered(&mut out, "Tunable", "A tunable of the policy", &tunables)?;
    table(
        &mut out,
        "TUNABLES",
        "What features.def says of each tunable, in the order of [`Tunable`].",
        "TunableInfo",
        &tunables,
        |args| {
            let [name, default, min, max, unit, help] = args else { bail!("not six arguments") };
            Ok(format!(
                "TunableInfo {{ name: \"{name}\", default: {default}, min: {min}, max: {max}, unit: {unit}, help: {help} }}"
            ))
        },
    )?;

    let profiles = read("profiles.def", &["PROFILE"])?;
    let rows = profiles.iter().map(|e| match &e.args[..] {
        [name, compared] => Ok((name.as_str(), compared.as_str())),
        _ => bail!("line {}: not two arguments", e.line),
    });
    let (names, compared): (Vec<_>, Vec<_>) = rows.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    for (name, help, column) in [
        ("PROFILES", "The names of the profiles, oldest kernel first.", names),
        ("COMPARED", "The kernel that each profile was compared with, or \"\".", compared),
    ] {
        let (nr, list) = (column.len(), column.join(", "));
        writeln!(out, "/// {help}\npub const {name}: [&str; {nr}] = [{list}];\n")?;
    }
    for (file, of, name) in
        [("reasons.def", "REASON", "REASONS"), ("queue/reasons.def", "QUEUE_REASON", "QUEUE_REASONS")]
    {
        let what = format!("Name and text of each reason of {file}, in the order of the codes.");
        table(&mut out, name, &what, "(&str, &str)", &read(file, &[of])?, |args| {
            let [name, text] = args else { bail!("not two arguments") };
            Ok(format!("(\"{name}\", {text})"))
        })?;
    }
    let distances = read("distances.def", &["DISTANCE"])?;
    let rows = distances.iter().map(|e| match &e.args[..] {
        [name, text] => Ok(format!("(\"{}\", {text})", name.to_lowercase())),
        _ => bail!("line {}: not two arguments", e.line),
    });
    let rows = rows.collect::<Result<Vec<_>>>()?;
    writeln!(
        out,
        "/// Name and text of each distance.\npub const DISTANCES: [(&str, &str); {}] = [{}];\n",
        rows.len(),
        rows.join(", ")
    )?;
    let notes = read("notes.def", &["NOTE"])?;
    table(
        &mut out,
        "NOTES",
        "Bit, name and text of each note on a decision.",
        "(u32, &str, &str)",
        &notes,
        |args| {
            let [name, _, text] = args else { bail!("not three arguments") };
            Ok(format!("(layout::NOTE_{name}, \"{name}\", {text})"))
        },
    )?;
    let events = read("balance/events.def", &["BALANCE_EVENT"])?;
    table(
        &mut out,
        "BALANCE_EVENTS",
        "Bit and text of each kind of balance.",
        "(u32, &str)",
        &events,
        |args| {
            let [name, _, text] = args else { bail!("not three arguments") };
            Ok(format!("(layout::BALANCE_{name}, {text})"))
        },
    )?;
    members(&mut out, "GROUP_TYPES", "`enum group_type`", "group_", headers)?;
    members(&mut out, "MIGRATION_TYPES", "`enum cw_migration_type`", "CW_MIGRATE_", headers)?;
    Ok(out)
}

/// The live scheduler's counters, as a macro that hands them to another one.
pub(crate) fn counters(def: &Path) -> Result<String> {
    let text = fs::read_to_string(def).with_context(|| def.display().to_string())?;
    let entries = entries(&text, &["FAMILY", "COUNTER"]).with_context(|| def.display().to_string())?;
    let rows = |of: &str| -> String {
        let rows = entries.iter().filter(|e| e.of == of);
        rows.map(|e| format!("            ({})\n", e.args.join(", "))).collect()
    };
    Ok(format!(
        "/// Calls `$with` with each FAMILY and each COUNTER.\nmacro_rules! counters {{\n    ($with:ident) => {{\n        \
         $with! {{\n{}            ;\n{}        }}\n    }};\n}}\npub(crate) use counters;\n",
        rows("FAMILY"),
        rows("COUNTER")
    ))
}

/// The names of an enum's members, which begin with `prefix`.
fn members(out: &mut String, table: &str, what: &str, prefix: &str, headers: &Headers) -> Result<()> {
    let found = headers.constants.iter().filter_map(|(name, _)| name.strip_prefix(prefix));
    let names: Vec<_> = found.map(|name| format!("\"{}\"", name.to_lowercase())).collect();
    writeln!(
        out,
        "/// The members of {what}, by name.\npub const {table}: [&str; {}] = [{}];\n",
        names.len(),
        names.join(", ")
    )?;
    Ok(())
}

/// An enum whose variants are the first arguments; the last ones say what they mean.
fn numbered(out: &mut String, name: &str, what: &str, entries: &[Entry]) -> Result<()> {
    writeln!(
        out,
        "/// {what}; see `policy/features.def`.\n#[allow(non_camel_case_types, clippy::upper_case_acronyms)]\n\
         #[repr(u32)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]\npub enum {name} {{"
    )?;
    for entry in entries {
        let [variant, .., help] = &entry.args[..] else { bail!("line {}: too few arguments", entry.line) };
        writeln!(out, "    /// {}\n    {variant},", help.trim_matches('"'))?;
    }
    writeln!(out, "}}\n")?;
    Ok(())
}

fn table(
    out: &mut String,
    name: &str,
    what: &str,
    of: &str,
    entries: &[Entry],
    row: impl Fn(&[String]) -> Result<String>,
) -> Result<()> {
    writeln!(out, "/// {what}\npub const {name}: &[{of}] = &[")?;
    for entry in entries {
        let row = row(&entry.args).with_context(|| format!("line {}: {}", entry.line, entry.of))?;
        writeln!(out, "    {row},")?;
    }
    writeln!(out, "];\n")?;
    Ok(())
}

/// One use of a macro.
struct Entry {
    of: String,
    args: Vec<String>,
    line: usize,
}

/// The uses of `macros`, each on a line of its own.
fn entries(text: &str, macros: &[&str]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let Some(of) =
            macros.iter().find(|m| text.strip_prefix(**m).is_some_and(|rest| rest.starts_with('(')))
        else {
            continue;
        };
        let inner = text[of.len() + 1..].strip_suffix(')');
        let inner = inner.with_context(|| format!("line {line}: {of} does not end with )"))?;
        entries.push(Entry { of: (*of).to_owned(), args: arguments(inner), line });
    }
    Ok(entries)
}

/// What commas separate; those inside quotes do not.
fn arguments(text: &str) -> Vec<String> {
    let mut args = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        quoted ^= c == '"';
        if c == ',' && !quoted {
            args.push(String::new());
        } else if let Some(last) = args.last_mut() {
            last.push(c);
        }
    }
    args.iter().map(|arg| arg.trim().to_owned()).collect()
}
