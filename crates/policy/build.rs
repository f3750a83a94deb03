//! Compiles `policy/native.c` and turns `policy/features.def` into Rust tables,
//! so that the list of features and tunables stands in one place only.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policy");
    for part in ["", "track", "wakeup", "balance", "queue"] {
        for entry in fs::read_dir(policy.join(part)).expect("policy/ is part of the tree") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|e| e == "h" || e == "c" || e == "def") {
                println!("cargo:rerun-if-changed={}", path.display());
            }
        }
    }
    cc::Build::new()
        .file(policy.join("native.c"))
        .include(&policy)
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .compile("coreward_policy");

    let def = fs::read_to_string(policy.join("features.def")).expect("features.def");
    let out = Path::new(&env::var("OUT_DIR").expect("set by cargo")).join("features.rs");
    fs::write(out, tables(&def)).expect("OUT_DIR is writable");
}

/// The enums and tables for the `FEATURE(...)` and `TUNABLE(...)` lines of features.def.
fn tables(def: &str) -> String {
    let mut features = (String::new(), String::new());
    let mut tunables = (String::new(), String::new());
    for line in def.lines() {
        if let Some(args) = macro_args(line, "FEATURE") {
            let [name, kernels, seed, help] = args.as_slice() else { panic!("{line}") };
            let _ = write!(features.0, "#[doc = {help}] {name},");
            let _ = write!(
                features.1,
                "FeatureInfo {{ name: \"{name}\", kernels: {kernels}, seed: {seed}, help: {help} }},"
            );
        } else if let Some(args) = macro_args(line, "TUNABLE") {
            let [name, default, min, max, unit, help] = args.as_slice() else { panic!("{line}") };
            let _ = write!(tunables.0, "#[doc = {help}] {name},");
            let _ = write!(
                tunables.1,
                "TunableInfo {{ name: \"{name}\", default: {default}, min: {min}, max: {max}, unit: {unit}, help: {help} }},"
            );
        }
    }
    format!(
        "/// A feature bit of the policy; see `policy/features.def`.\n\
         #[allow(non_camel_case_types, clippy::upper_case_acronyms)]\n#[repr(u32)]\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]\npub enum Feature {{ {} }}\n\
         /// What features.def says of each feature, in the order of [`Feature`].\n\
         pub const FEATURES: &[FeatureInfo] = &[{}];\n\
         /// A tunable of the policy; see `policy/features.def`.\n\
         #[allow(non_camel_case_types)]\n#[repr(u32)]\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]\npub enum Tunable {{ {} }}\n\
         /// What features.def says of each tunable, in the order of [`Tunable`].\n\
         pub const TUNABLES: &[TunableInfo] = &[{}];\n\
         /// How many tunables there are.\npub const NR_TUNABLES: usize = {};\n",
        features.0,
        features.1,
        tunables.0,
        tunables.1,
        tunables.1.matches("TunableInfo").count()
    )
}

/// The arguments of `line` if it is a use of the macro `name`; commas inside quotes do not separate.
fn macro_args(line: &str, name: &str) -> Option<Vec<String>> {
    let inner = line.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
    let mut args = vec![String::new()];
    let mut quoted = false;
    for c in inner.chars() {
        quoted ^= c == '"';
        if c == ',' && !quoted {
            args.push(String::new());
        } else {
            args.last_mut()?.push(c);
        }
    }
    Some(args.iter().map(|a| a.trim().to_string()).collect())
}
