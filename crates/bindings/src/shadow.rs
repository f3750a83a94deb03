//! The Rust side of the shadow's counters: the structures of `bpf/shadow/shadow.h` that its programs fill in.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use bindgen::EnumVariation;
use quote::ToTokens as _;
use syn::{Fields, Item, ItemStruct, Type};

use crate::headers::{camel_case, fixed_size_types};

/// Each holds 64-bit counters only.
const COUNTED: [&str; 4] = ["shadow_counts", "shadow_drift", "shadow_totals", "shadow_share"];

/// Arrays whose names are plural on the Rust side.
const PLURAL: [&str; 2] = ["kind", "reason"];

/// Translates `bpf/shadow/shadow.h`, for the macro of `crates/live/src/shadow/count.rs`.
pub(crate) fn bind(root: &Path) -> Result<String> {
    let layout = bindgen::builder()
        .header(root.join("bpf/shadow/shadow.h").display().to_string())
        .clang_arg(format!("-I{}", root.join("policy").display()))
        .clang_args(["-std=c11", "-D__VMLINUX_H__", "-include", "stdint.h", "-include", "stdbool.h"])
        .clang_args(fixed_size_types())
        .allowlist_type(COUNTED.join("|"))
        .generate_comments(false)
        .disable_header_comment()
        .layout_tests(false)
        .default_enum_style(EnumVariation::Consts)
        .generate()?
        .to_string();
    let file = syn::parse_file(&layout)?;
    let structures: Vec<&ItemStruct> = file
        .items
        .iter()
        .filter_map(|item| if let Item::Struct(of) = item { Some(of) } else { None })
        .collect();
    let mut out = String::from("use super::{Counted, Words};\n\ncounted! {\n");
    for of in structures.iter().filter(|of| COUNTED.contains(&of.ident.to_string().as_str())) {
        let name = of.ident.to_string();
        writeln!(out, "    /// `struct {name}`.\n    {} {{", rust_name(&name))?;
        for (field, of) in fields(of)? {
            let field = if PLURAL.contains(&field.as_str()) { field + "s" } else { field };
            writeln!(out, "        {field}: {},", rust_type(of, &structures)?)?;
        }
        writeln!(out, "    }}")?;
    }
    writeln!(out, "}}")?;
    Ok(out)
}

fn fields(of: &ItemStruct) -> Result<Vec<(String, &Type)>> {
    let Fields::Named(fields) = &of.fields else { bail!("{} has no named fields", of.ident) };
    let named = |field: &'_ syn::Field| Some(field.ident.as_ref()?.to_string());
    let fields = fields.named.iter().map(|f| Ok((named(f).context("a field without a name")?, &f.ty)));
    fields.collect()
}

fn rust_type(of: &Type, structures: &[&ItemStruct]) -> Result<String> {
    if let Type::Array(array) = of {
        let length = array.len.to_token_stream().to_string();
        let length = length.trim_end_matches("usize");
        return Ok(format!("[{}; {length}]", rust_type(&array.elem, structures)?));
    }
    let name = of.to_token_stream().to_string();
    if name == "u64" || COUNTED.contains(&name.as_str()) {
        return Ok(rust_name(&name));
    }
    // without a name of its own: as many counters as it has fields
    let unnamed = structures.iter().find(|of| of.ident == name).with_context(|| name.clone())?;
    let fields = fields(unnamed)?;
    for (field, of) in &fields {
        if rust_type(of, structures)? != "u64" {
            bail!("{name}.{field} is no counter");
        }
    }
    Ok(format!("[u64; {}]", fields.len()))
}

fn rust_name(c: &str) -> String {
    c.strip_prefix("shadow_").map_or_else(|| c.to_owned(), camel_case)
}
