//! Tests that every entry point of the policy passes the verifier of the kernel that the tests run on.

use std::path::Path;
use std::process::Command;

use libbpf_rs::ObjectBuilder;

use crate::kernel;

#[test]
fn every_entry_point_of_the_policy_passes() {
    if let Err(why) = kernel::has_bpf() {
        eprintln!("not tested: {why}");
        return;
    }
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let built = Command::new("make").arg("-C").arg(root.join("policy")).arg("bpf").status();
    assert!(built.expect("make").success());
    for name in ["bpf_check", "bpf_check_balance"] {
        let object = root.join("target/policy").join(name).with_extension("o");
        let mut builder = ObjectBuilder::default();
        let opened = builder.open_file(&object).expect(name);
        opened.load().expect(name);
    }
}
