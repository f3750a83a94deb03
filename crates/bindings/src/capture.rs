//! The Rust side of the capture file: the structures, flags and numbers of `bpf/record/capture.h`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail};
use bindgen::EnumVariation;
use bindgen::callbacks::{EnumVariantValue, IntKind, ParseCallbacks};
use quote::ToTokens as _;
use syn::{Fields, Item, ItemStruct, Type};

use crate::headers::{Headers, camel_case, fixed_size_types};

/// Structures by C's name without `capture_`, and by Rust's if it is not the same.
const RENAMED: [(&str, &str); 12] = [
    ("frame", "FrameHeader"),
    ("domain", "DomainHead"),
    ("group", "GroupHead"),
    ("group_state", "GroupState"),
    ("cpu", "CpuState"),
    ("changed_cpu", "ChangedCpu"),
    ("task", "TaskState"),
    ("placement", "PlacementHead"),
    ("balance", "BalanceHead"),
    ("entity", "EntityState"),
    ("fair_rq", "FairRqState"),
    ("step", "StepHead"),
];

/// What the recorder and its BPF programs share without writing it to the file.
const NOT_WRITTEN: [&str; 3] = ["setup", "control", "question"];

/// The enums whose members become those of a Rust enum, with the prefix of the members.
const ENUMS: [(&str, &str, &str); 2] =
    [("enum capture_type", "FrameType", "CAPTURE_"), ("enum capture_step_kind", "StepKind", "CAPTURE_STEP_")];

/// Macros that are lengths.
const LENGTHS: &str = "CAPTURE_MAX_";

/// What the header declares.
pub(crate) struct Capture {
    /// As Rust, for the macros of `crates/parity/src/format.rs`.
    pub(crate) rust: String,
    /// As C sees it, for assertions.
    pub(crate) headers: Headers,
}

/// Translates `bpf/record/capture.h`.
pub(crate) fn bind(root: &Path) -> Result<Capture> {
    let seen = Rc::new(Numbers::default());
    let layout = bindgen::builder()
        .header(root.join("bpf/record/capture.h").display().to_string())
        .clang_args(["-std=c11", "-include", "stdint.h"])
        .clang_args(fixed_size_types())
        .allowlist_type("capture_.*")
        .allowlist_var("CAPTURE_.*")
        .generate_comments(false)
        .disable_header_comment()
        .prepend_enum_name(false)
        .default_enum_style(EnumVariation::Consts)
        .translate_enum_integer_types(true)
        .parse_callbacks(Box::new(Callbacks(Rc::clone(&seen))))
        .generate()?
        .to_string();
    let file = syn::parse_file(&layout)?;
    let structures: Vec<&ItemStruct> = file.items.iter().filter_map(written).collect();
    let tags: BTreeMap<_, _> =
        structures.iter().map(|of| (of.ident.to_string(), of.ident.to_string())).collect();

    let mut rust = String::new();
    for (name, value) in seen.macros.borrow().iter() {
        let kind = if name.starts_with(LENGTHS) {
            "usize"
        } else if u32::try_from(*value).is_ok() {
            "u32"
        } else {
            "u64"
        };
        writeln!(rust, "pub const {}: {kind} = {value};", name.trim_start_matches("CAPTURE_"))?;
    }
    for (_, name, value) in seen.members.borrow().iter().filter(|(of, ..)| of.ends_with("_flag")) {
        writeln!(rust, "pub const {}: u32 = {value};", name.trim_start_matches("CAPTURE_"))?;
    }
    for (of, rust_name, prefix) in ENUMS {
        writeln!(rust, "\nnumbered! {{\n    /// `{of}`.\n    {rust_name} {{")?;
        for (_, name, value) in seen.members.borrow().iter().filter(|(member_of, ..)| member_of == of) {
            let name = name.trim_start_matches(prefix);
            // the number of kinds, not one of them
            if name != "KINDS" {
                writeln!(rust, "        {} = {value} {:?},", camel_case(name), name.to_lowercase())?;
            }
        }
        writeln!(rust, "    }}\n}}")?;
    }
    writeln!(rust, "\nstructures! {{")?;
    for of in &structures {
        structure(&mut rust, of).with_context(|| of.ident.to_string())?;
    }
    writeln!(rust, "}}")?;

    let members = seen.members.take().into_iter().map(|(_, name, value)| (name, value));
    let constants = seen.macros.take().into_iter().chain(members).collect();
    let layout = structures.iter().map(|of| format!("{}\n", of.to_token_stream())).collect::<String>();
    let asserted = file.items.iter().filter(|item| matches!(item, Item::Const(c) if c.ident == "_"));
    let asserted = asserted.map(|item| format!("{}\n", item.to_token_stream())).collect::<String>();
    let headers = Headers { layout: layout + &asserted, functions: String::new(), tags, constants };
    Ok(Capture { rust, headers })
}

/// The structures of the file.
fn written(item: &Item) -> Option<&ItemStruct> {
    let Item::Struct(of) = item else { return None };
    let name = of.ident.to_string();
    let name = name.strip_prefix("capture_")?;
    (!NOT_WRITTEN.contains(&name)).then_some(of)
}

fn structure(out: &mut String, of: &ItemStruct) -> Result<()> {
    let Fields::Named(fields) = &of.fields else { bail!("without named fields") };
    writeln!(out, "    /// `struct {}`.\n    {} {{", of.ident, rust_name(&of.ident.to_string()))?;
    for field in &fields.named {
        let name = field.ident.as_ref().context("a field without a name")?.to_string();
        // a keyword of Rust
        let name = if name == "type_" { "kind" } else { &name };
        writeln!(out, "        {name}: {},", rust_type(&field.ty)?)?;
    }
    writeln!(out, "    }}")?;
    Ok(())
}

fn rust_type(of: &Type) -> Result<String> {
    if let Type::Array(array) = of {
        return Ok(format!("[{}; {}]", rust_type(&array.elem)?, array.len.to_token_stream()));
    }
    Ok(match of.to_token_stream().to_string().as_str() {
        name @ ("u32" | "i32" | "u64" | "i64") => name.to_owned(),
        name if name.ends_with("c_char") => "u8".to_owned(),
        name => rust_name(name),
    })
}

fn rust_name(c: &str) -> String {
    let name = c.strip_prefix("capture_").unwrap_or(c);
    let renamed = RENAMED.iter().find(|(c, _)| *c == name);
    renamed.map_or_else(|| camel_case(name), |(_, rust)| (*rust).to_owned())
}

/// What was numbered on the way.
#[derive(Debug, Default)]
struct Numbers {
    macros: RefCell<Vec<(String, i64)>>,
    /// Enum, member and value.
    members: RefCell<Vec<(String, String, i64)>>,
}

#[derive(Debug)]
struct Callbacks(Rc<Numbers>);

impl ParseCallbacks for Callbacks {
    fn enum_variant_name(&self, of: Option<&str>, name: &str, value: EnumVariantValue) -> Option<String> {
        let number = match value {
            EnumVariantValue::Boolean(value) => i64::from(value),
            EnumVariantValue::Signed(value) => value,
            EnumVariantValue::Unsigned(value) => value as i64,
        };
        self.0.members.borrow_mut().push((of.unwrap_or_default().to_owned(), name.to_owned(), number));
        None
    }

    fn int_macro(&self, name: &str, value: i64) -> Option<IntKind> {
        if name.starts_with("CAPTURE_") {
            self.0.macros.borrow_mut().push((name.to_owned(), value));
        }
        None
    }
}
