//! Assertions that the C compiler finds everything where the Rust side expects it.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use quote::ToTokens as _;
use syn::{Fields, Item, ItemStruct, PointerMutability, Type};

use crate::GENERATED;
use crate::headers::Headers;

/// How many entries each table has to which a variant of the policy may append.
const TABLES: [&str; 4] = ["CW_NR_FEATURES", "CW_NR_TUNABLES", "CW_NR_REASONS", "CW_NR_QUEUE_REASONS"];

/// A C file that only compiles if each structure has the size, and each field the offset and type,
/// and each constant the value that bindgen saw.
pub(crate) fn assertions(header: &str, headers: &Headers) -> Result<String> {
    let mut out = format!(
        "/* SPDX-License-Identifier: GPL-2.0-only */\n\
         /*\n * {GENERATED}\n *\n\
         \x20* The layout that the Rust side relies on: a structure or constant that changes\n\
         \x20* without it does not compile.\n */\n\
         #include \"{header}\"\n\n\
         #define SIZE(type, size) \\\n\
         \t_Static_assert(sizeof(type) == size, #type \": make bindings\");\n\
         #define FIELD(type, name, of, offset) \\\n\
         \t_Static_assert(__builtin_offsetof(type, name) == offset && \\\n\
         \t\t       __builtin_types_compatible_p(__typeof__(((type *)0)->name), __typeof__(of)), \\\n\
         \t\t       #type \".\" #name \": make bindings\");\n\
         #define VALUE(name, value) _Static_assert(name == value, #name \": make bindings\");\n"
    );
    let is_table = |name: &str| TABLES.contains(&name);
    if headers.constants.iter().any(|(name, _)| is_table(name)) {
        out += "/* of a table; crates/policy/src/directory.c lets a directory append to it */\n\
                #ifndef COUNT\n#define COUNT VALUE\n#endif\n";
    }
    out.push('\n');
    let file = syn::parse_file(&headers.layout)?;
    let asserted = asserted(&file);
    for item in &file.items {
        if let Item::Struct(of) = item {
            structure(&mut out, headers, &asserted, of).with_context(|| of.ident.to_string())?;
        }
    }
    for (name, value) in &headers.constants {
        writeln!(out, "{}({name}, {value})", if is_table(name) { "COUNT" } else { "VALUE" })?;
    }
    Ok(out)
}

fn structure(out: &mut String, headers: &Headers, asserted: &str, of: &ItemStruct) -> Result<()> {
    let rust = of.ident.to_string();
    let c = tag(headers, &rust)?;
    writeln!(out, "SIZE({c}, {})", number(asserted, &format!("Size of {rust}"))?)?;
    let Fields::Named(fields) = &of.fields else { bail!("without named fields") };
    for field in &fields.named {
        let name = field.ident.as_ref().context("a field without a name")?.to_string();
        let offset = number(asserted, &format!("Offset of field: {rust}::{name}"))?;
        // bindgen's, of names that are Rust's keywords
        let c_name = name.trim_end_matches('_');
        writeln!(out, "FIELD({c}, {c_name}, {}, {offset})", c_type(headers, &field.ty)?)?;
    }
    writeln!(out)?;
    Ok(())
}

/// The text of bindgen's own assertions, which say what libclang saw.
fn asserted(file: &syn::File) -> String {
    let constants = file.items.iter().filter(|item| matches!(item, Item::Const(c) if c.ident == "_"));
    constants.map(|item| item.to_token_stream().to_string()).collect()
}

/// What is asserted of `what`: the number after the minus that follows it.
fn number(asserted: &str, what: &str) -> Result<usize> {
    let rest = asserted.split_once(&format!("\"{what}\"")).with_context(|| format!("no {what}"))?.1;
    let rest = rest.split_once("- ").with_context(|| format!("no number of {what}"))?.1;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}

fn tag(headers: &Headers, rust: &str) -> Result<String> {
    let tag = headers.tags.get(rust).with_context(|| format!("{rust} is not a C structure"))?;
    Ok(format!("struct {tag}"))
}

fn c_type(headers: &Headers, rust: &Type) -> Result<String> {
    Ok(match rust {
        Type::Array(array) => {
            // dimensions stand the other way round: C's last is the innermost of Rust
            let (mut element, mut lengths) = (&*array.elem, length(&array.len)?);
            while let Type::Array(inner) = element {
                lengths += &length(&inner.len)?;
                element = &inner.elem;
            }
            format!("{}{lengths}", c_type(headers, element)?)
        }
        Type::Ptr(pointer) => {
            let constant =
                if matches!(pointer.mutability, PointerMutability::Const(_)) { "const " } else { "" };
            format!("{constant}{} *", c_type(headers, &pointer.elem)?)
        }
        other => match other.to_token_stream().to_string().as_str() {
            "bool" => "bool".to_owned(),
            name @ ("u8" | "u16" | "u32" | "u64") => name.to_owned(),
            name @ ("i8" | "i16" | "i32" | "i64") => name.replace('i', "s"),
            name if name.ends_with("c_char") => "char".to_owned(),
            name => tag(headers, name)?,
        },
    })
}

fn length(of: &syn::Expr) -> Result<String> {
    let text = of.to_token_stream().to_string();
    Ok(format!("[{}]", text.strip_suffix("usize").with_context(|| format!("the length {text}"))?))
}
