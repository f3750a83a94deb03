//! The structures, constants and functions of `policy/native.h`, as bindgen translates them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use anyhow::Result;
use bindgen::callbacks::{DeriveInfo, EnumVariantValue, IntKind, ItemInfo, ItemKind, ParseCallbacks};
use bindgen::{Builder, EnumVariation, RustEdition, RustTarget};
use quote::ToTokens as _;
use syn::{ForeignItem, Item, Signature};

/// What the headers declare.
pub(crate) struct Headers {
    /// Structures and constants in Rust.
    pub(crate) layout: String,
    /// The entry points in Rust.
    pub(crate) functions: String,
    /// Rust's name of each structure and enum, and C's.
    pub(crate) tags: BTreeMap<String, String>,
    /// C's constants.
    pub(crate) constants: Vec<(String, i64)>,
}

/// Translates `native.h`, and all headers of the policy that it includes.
pub(crate) fn bind(policy: &Path) -> Result<Headers> {
    let seen = Rc::new(Names::default());
    let file = syn::parse_file(&builder(policy, &seen).generate()?.to_string())?;
    let (functions, layout): (Vec<_>, Vec<_>) =
        file.items.iter().partition(|item| matches!(item, Item::ForeignMod(_)));
    let text = |items: Vec<&Item>| -> String {
        items.iter().map(|item| format!("{}\n", item.to_token_stream())).collect()
    };
    Ok(Headers {
        layout: format!(
            "#![allow(missing_docs)] // one description is enough: the headers'\n{}",
            text(layout)
        ),
        functions: format!(
            "use super::layout::*;\n\n{}\n{}",
            text(functions.clone()),
            table_of_functions(&functions)
        ),
        tags: seen.tags.take(),
        constants: seen.constants.take(),
    })
}

/// A table of the entry points, which a library that is loaded has, too.
fn table_of_functions(blocks: &[&Item]) -> String {
    let blocks = blocks.iter().filter_map(|item| match item {
        Item::ForeignMod(block) => Some(&block.items),
        _ => None,
    });
    let functions = blocks.flatten().filter_map(|item| match item {
        ForeignItem::Fn(function) => Some(&function.sig),
        _ => None,
    });
    let (mut fields, mut linked, mut loaded) = (String::new(), String::new(), String::new());
    for Signature { ident, inputs, output, .. } in functions {
        let inputs = inputs.to_token_stream();
        let output = output.to_token_stream();
        fields += &format!("pub {ident}: unsafe extern \"C\" fn({inputs}) {output},\n");
        linked += &format!("{ident},\n");
        loaded += &format!("{ident}: *library.get(b\"{ident}\\0\")?,\n");
    }
    format!(
        "/// The entry points of a policy.\npub struct Native {{\n{fields}}}\n\n\
         impl Native {{\n\
         /// Those of the policy that is linked.\n\
         pub const BUILT_IN: Native = Native {{\n{linked}}};\n\n\
         /// Those of a library.\n///\n\
         /// # Errors\n/// One is missing.\n///\n\
         /// # Safety\n/// They must have been compiled from `policy/native.h` with this layout.\n\
         pub unsafe fn of(library: &libloading::Library) -> Result<Native, libloading::Error> {{\n\
         // SAFETY: the caller knows their types.\n\
         unsafe {{ Ok(Native {{\n{loaded}}}) }}\n}}\n}}\n"
    )
}

/// Names that bindgen takes for Rust's own types, in place of the headers'.
pub(crate) fn fixed_size_types() -> impl Iterator<Item = String> {
    let types = ["8", "16", "32", "64"]
        .map(|bits| [format!("-Du{bits}=uint{bits}_t"), format!("-Ds{bits}=int{bits}_t")]);
    types.into_iter().flatten()
}

fn builder(policy: &Path, seen: &Rc<Names>) -> Builder {
    bindgen::builder()
        .header(policy.join("native.h").display().to_string())
        .clang_arg(format!("-I{}", policy.display()))
        .clang_args(["-std=c11", "-D__VMLINUX_H__", "-include", "stdint.h", "-include", "stdbool.h"])
        .clang_args(fixed_size_types())
        // with what they take
        .allowlist_function("cw_.*")
        // enums whose members are values of integer fields
        .allowlist_type("cw_.*(distance|enqueue|event|flag|note|reason|type)|group_type")
        .allowlist_var("CW_.*|NUMA_NO_NODE")
        .rust_edition(RustEdition::Edition2024)
        .rust_target(RustTarget::stable(85, 0).expect("bindgen knows the rust-version"))
        .merge_extern_blocks(true)
        .generate_comments(false)
        .disable_header_comment()
        .prepend_enum_name(false)
        .default_enum_style(EnumVariation::Consts)
        .rustified_enum("cw_detach|cw_lb_step|cw_distance")
        .translate_enum_integer_types(true)
        .derive_default(true)
        .derive_eq(true)
        .derive_partialeq(true)
        // too large to be copied by accident, or to be built on a stack
        .no_copy("cw_sys|cw_process|cw_balance|cw_lb")
        .no_default("cw_sys|cw_process|cw_wakeup|cw_fair_rq")
        .parse_callbacks(Box::new(Callbacks(Rc::clone(seen))))
}

/// What was named and numbered on the way.
#[derive(Debug, Default)]
struct Names {
    tags: RefCell<BTreeMap<String, String>>,
    constants: RefCell<Vec<(String, i64)>>,
}

/// Names as Rust has them, noted with C's.
#[derive(Debug)]
struct Callbacks(Rc<Names>);

impl ParseCallbacks for Callbacks {
    fn item_name(&self, item: ItemInfo<'_>) -> Option<String> {
        let c = item.name;
        match item.kind {
            ItemKind::Type => {
                let rust = match c.strip_prefix("cw_").unwrap_or(c) {
                    "cpumask" => "CpuMask".to_owned(),
                    name => camel_case(name),
                };
                self.0.tags.borrow_mut().insert(rust.clone(), c.to_owned());
                Some(rust)
            }
            ItemKind::Var => c.strip_prefix("CW_").map(str::to_owned),
            _ => None,
        }
    }

    fn enum_variant_name(
        &self,
        enumeration: Option<&str>,
        c: &str,
        value: EnumVariantValue,
    ) -> Option<String> {
        let number = match value {
            EnumVariantValue::Boolean(value) => i64::from(value),
            EnumVariantValue::Signed(value) => value,
            EnumVariantValue::Unsigned(value) => value as i64,
        };
        self.0.constants.borrow_mut().push((c.to_owned(), number));
        let name = c.strip_prefix("CW_").unwrap_or(c);
        let member = |prefix| camel_case(name.strip_prefix(prefix).unwrap_or(name));
        Some(match enumeration.and_then(|e| e.strip_prefix("enum ")) {
            Some("cw_detach") => member("DETACH_"),
            Some("cw_lb_step") => member("LB_"),
            Some("cw_distance") => member("DISTANCE_"),
            // the kernel's names
            Some("cw_idle_type") => format!("CPU_{name}"),
            _ => name.to_uppercase(),
        })
    }

    fn add_derives(&self, of: &DeriveInfo<'_>) -> Vec<String> {
        let more: &[&str] = match of.name {
            // not copied by accident, but on purpose
            "Process" | "Balance" => &["Clone"],
            "Distance" => &["PartialOrd", "Ord"],
            _ => &[],
        };
        more.iter().map(|&derive| derive.to_owned()).collect()
    }

    fn int_macro(&self, c: &str, value: i64) -> Option<IntKind> {
        // system headers' are seen, too
        if c.starts_with("CW_") || c == "NUMA_NO_NODE" {
            self.0.constants.borrow_mut().push((c.to_owned(), value));
        }
        let index = c.starts_with("CW_MAX_") || c == "CW_MASK_WORDS" || c == "CW_CPU_MASK";
        index.then_some(IntKind::Custom { name: "usize", is_signed: false })
    }
}

/// `CamelCase` of `snake_case` or `UPPER_CASE`.
pub(crate) fn camel_case(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(usize::from(!word.is_empty()));
        first.to_uppercase() + &rest.to_lowercase()
    };
    name.split('_').map(word).collect()
}
