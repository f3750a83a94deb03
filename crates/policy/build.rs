//! Compiles `policy/native.c`, and with it the assertions that it is what the Rust side was
//! generated from; and embeds the text of `policy/`, which directories of users build upon.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policy").canonicalize()?;
    // all of it, in whatever folder
    println!("cargo:rerun-if-changed={}", policy.display());
    println!("cargo:rerun-if-changed=src/generated/layout.c");
    cc::Build::new()
        .file(policy.join("native.c"))
        .file("src/generated/layout.c")
        .include(&policy)
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .compile("coreward_policy");

    let mut files = Vec::new();
    collect(&policy, "", &mut files)?;
    files.sort();
    let rows = files.iter().map(|name| format!("({name:?}, include_str!({:?})),\n", policy.join(name)));
    let rows: String = rows.collect();
    let text = format!(
        "/// Path and text of each file of `policy/`.\nconst FILES: &[(&str, &str)] = &[\n{rows}];\n"
    );
    fs::write(Path::new(&env::var("OUT_DIR")?).join("embedded.rs"), text)?;
    Ok(())
}

/// The sources below `folder`, and what goes with them.
fn collect(policy: &Path, folder: &str, files: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(policy.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| format!("{name:?} is not UTF-8"))?;
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if entry.file_type()?.is_dir() {
            collect(policy, &path, files)?;
        } else if name == "Makefile" || [".h", ".def", ".c", ".md"].iter().any(|end| name.ends_with(end)) {
            files.push(path);
        }
    }
    Ok(())
}
