//! Compiles the BPF programs in `bpf/` and generates their skeletons.

fn main() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    println!("cargo:rerun-if-changed={root}/policy");
    println!("cargo:rerun-if-changed={root}/bpf");
    scx_cargo::BpfBuilder::new()
        .expect("clang for BPF")
        .add_include_path(&format!("{root}/policy"))
        .add_include_path(&format!("{root}/bpf"))
        .enable_skel(&format!("{root}/bpf/live/live.bpf.c"), "live")
        .build()
        .expect("the BPF programs compile");
    // these need no sched_ext and none of its headers
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR").expect("set by cargo"));
    for name in ["shadow", "place"] {
        libbpf_cargo::SkeletonBuilder::new()
            .source(format!("{root}/bpf/shadow/{name}.bpf.c"))
            .clang(std::env::var("BPF_CLANG").unwrap_or("clang".into()))
            .clang_args([format!("-I{root}/policy"), format!("-I{root}/bpf"), "-mcpu=v3".into()])
            .build_and_generate(out.join(format!("{name}_skel.rs")))
            .expect("the BPF programs compile");
    }
}
