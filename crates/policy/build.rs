//! Compiles `policy/native.c`, and with it the assertions that it is what the Rust side was
//! generated from.

use std::path::Path;

fn main() {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policy");
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
}
