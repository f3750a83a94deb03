//! Readers of sysfs trees and hwloc XML, and the spec that selects them.

use std::fs;
use std::path::{Path, PathBuf};

use coreward_machine::{Arch, Machine, MachineError, render_topology};

/// A sysfs tree that the test writes file by file.
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        Self { root }
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.root.join("devices/system").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    fn cache(&self, cpu: usize, index: usize, level: u32, kind: &str, size: &str, shared: &str) {
        let dir = format!("cpu/cpu{cpu}/cache/index{index}");
        self.file(&format!("{dir}/level"), &level.to_string())
            .file(&format!("{dir}/type"), kind)
            .file(&format!("{dir}/size"), size)
            .file(&format!("{dir}/coherency_line_size"), "64")
            .file(&format!("{dir}/shared_cpu_list"), shared);
    }

    fn read(&self) -> Result<Machine, MachineError> {
        Machine::load(&format!("sysfs:{}", self.root.display()))
    }
}

/// Two nodes, each a package with one L3 of two cores of two threads, as an x86 server has it.
fn server(name: &str) -> Tree {
    let tree = Tree::new(name);
    tree.file("cpu/online", "0-7").file("node/online", "0-1");
    tree.file("node/node0/cpulist", "0-1,4-5").file("node/node0/distance", "10 21");
    tree.file("node/node1/cpulist", "2-3,6-7").file("node/node1/distance", "21 10");
    for cpu in 0..8 {
        let core = format!("{},{}", cpu % 4, cpu % 4 + 4);
        let package = if cpu % 4 < 2 { "0-1,4-5" } else { "2-3,6-7" };
        tree.file(&format!("cpu/cpu{cpu}/topology/core_cpus_list"), &core);
        tree.file(&format!("cpu/cpu{cpu}/topology/cluster_cpus_list"), &core);
        tree.file(&format!("cpu/cpu{cpu}/topology/package_cpus_list"), package);
        tree.cache(cpu, 0, 1, "Data", "32K", &core);
        tree.cache(cpu, 1, 1, "Instruction", "64K", &core);
        tree.cache(cpu, 2, 2, "Unified", "256K", &core);
        tree.cache(cpu, 3, 3, "Unified", "30720K", package);
    }
    tree
}

#[test]
fn sysfs_of_a_server() {
    let machine = server("server").read().unwrap();
    let mut expected = Machine::from_shorthand("2n1l2c2t").unwrap();
    assert_eq!(machine.cpus, expected.cpus);
    assert_eq!(machine.distances, [[10, 21], [21, 10]]);
    assert_eq!(machine.arch, Arch::X86);
    expected.caches.l1d_bytes = 32 << 10;
    expected.caches.l2_bytes = 256 << 10;
    expected.caches.llc_bytes = 30 << 20;
    assert_eq!(machine.caches, expected.caches);
    assert_eq!(machine.llc_bytes, [30 << 20, 30 << 20]);
    // No cpuidle directory: the defaults.
    assert_eq!(machine.idle_states, expected.idle_states);
}

#[test]
fn sysfs_idle_states() {
    let tree = server("idle");
    for (index, name, desc, latency, residency) in [
        (0, "POLL", "CPUIDLE CORE POLL IDLE", 0, 0),
        (1, "C1", "MWAIT 0x00", 2, 2),
        (2, "C2", "ACPI IOPORT 0x814", 400, 800),
    ] {
        let dir = format!("cpu/cpu0/cpuidle/state{index}");
        tree.file(&format!("{dir}/name"), name)
            .file(&format!("{dir}/desc"), desc)
            .file(&format!("{dir}/latency"), &latency.to_string())
            .file(&format!("{dir}/residency"), &residency.to_string());
    }
    let states: Vec<_> = tree
        .read()
        .unwrap()
        .idle_states
        .into_iter()
        .map(|state| (state.name, state.exit_ns, state.residency_ns, state.polling))
        .collect();
    assert_eq!(
        states,
        [
            ("POLL".to_owned(), 0, 0, true),
            ("C1".to_owned(), 2_000, 2_000, true),
            ("C2".to_owned(), 400_000, 800_000, false),
        ]
    );
}

/// A big.LITTLE board without NUMA and without cache descriptions.
#[test]
fn sysfs_of_a_board() {
    let tree = Tree::new("board");
    tree.file("cpu/online", "0-3");
    tree.file("cpu/cpu0/regs/identification/midr_el1", "0x00000000410fd034");
    for cpu in 0..4 {
        tree.file(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"), &cpu.to_string());
        tree.file(&format!("cpu/cpu{cpu}/topology/core_siblings_list"), "0-3");
        let cluster = if cpu < 2 { "0-1" } else { "2-3" };
        tree.file(&format!("cpu/cpu{cpu}/topology/cluster_cpus_list"), cluster);
        tree.file(&format!("cpu/cpu{cpu}/cpu_capacity"), if cpu < 2 { "446" } else { "1024" });
    }
    let machine = tree.read().unwrap();
    assert_eq!(machine.arch, Arch::Arm64);
    assert_eq!(machine.nodes, 1);
    assert_eq!(machine.llc_mask(0).to_string(), "0-3");
    assert_eq!(machine.cluster_mask(3).to_string(), "2-3");
    let capacities: Vec<_> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
    assert_eq!(capacities, [446, 446, 1024, 1024]);
}

#[test]
fn sysfs_with_offline_cpus_and_a_memory_only_node() {
    let tree = server("offline");
    tree.file("cpu/online", "0-3").file("node/online", "0-2");
    tree.file("node/node0/distance", "10 21 30").file("node/node1/distance", "21 10 30");
    tree.file("node/node2/cpulist", "").file("node/node2/distance", "30 30 10");
    let machine = tree.read().unwrap();
    assert_eq!((machine.nr_cpus(), machine.nodes), (4, 2));
    assert_eq!(machine.distances, [[10, 21], [21, 10]]);
    tree.file("cpu/online", "1,3,5,7");
    let machine = tree.read().unwrap();
    assert_eq!(machine.description, "online CPUs 1,3,5,7, renumbered from 0");
    assert_eq!(machine.smt_mask(0).to_string(), "0,2");
}

/// Sub-NUMA clusters: the cache is the package's, but the kernel cuts it at the nodes.
#[test]
fn sysfs_llc_is_cut_at_nodes() {
    let tree = server("snc");
    for cpu in 0..8 {
        tree.cache(cpu, 3, 3, "Unified", "60M", "0-7");
        tree.file(&format!("cpu/cpu{cpu}/topology/package_cpus_list"), "0-7");
    }
    let machine = tree.read().unwrap();
    assert_eq!(machine.nr_packages(), 1);
    assert_eq!(machine.llc_mask(0).to_string(), "0-1,4-5");
}

#[test]
fn sysfs_errors() {
    let message = |change: &dyn Fn(&Tree)| {
        let tree = server("errors");
        change(&tree);
        let root = format!("{}/devices/system/", tree.root.display());
        tree.read().unwrap_err().to_string().replace(&root, "")
    };
    let wrong = |path: &'static str, text: &'static str| {
        message(&|tree| {
            tree.file(path, text);
        })
    };
    assert_eq!(wrong("cpu/online", ""), "cpu: no CPU is online, or none has a topology");
    assert_eq!(wrong("cpu/online", "0-2000"), "cpu/online: CPU 2000 is above the limit of 1023");
    assert_eq!(wrong("cpu/online", "all"), "cpu/online: `all` is not a CPU number or a range like 0-3");
    assert_eq!(
        wrong("cpu/cpu3/topology/core_cpus_list", "0-1"),
        "cpu/cpu3/topology/core_cpus: CPU 3 is not in its own list `0-1`"
    );
    assert_eq!(
        wrong("cpu/cpu2/cache/index0/level", "two"),
        "cpu/cpu2/cache/index0/level: `two` is not a cache level"
    );
    assert_eq!(
        wrong("cpu/cpu2/cache/index0/size", "-1K"),
        "cpu/cpu2/cache/index0/size: `-1K` is not a size like 32K"
    );
    assert_eq!(
        wrong("cpu/cpu2/cpu_capacity", "0"),
        "cpu/cpu2/cpu_capacity: capacity is `0`, allowed are 1 to 2048"
    );
    assert_eq!(wrong("node/node1/distance", "21"), "node/node1/distance: 1 distances for 2 nodes");
    assert_eq!(
        wrong("node/node1/distance", "21 far"),
        "node/node1/distance: distance is `far`, allowed are 0 to 4294967295"
    );
    assert_eq!(
        wrong("cpu/cpu1/cpufreq/cpuinfo_max_freq", "0"),
        "cpu/cpu1/cpufreq/cpuinfo_max_freq: `0` is not a frequency of up to 100000000 kHz"
    );
}

#[test]
fn sysfs_of_this_host() {
    // Not every build machine shows its topology; if it does, it must be readable.
    if Path::new("/sys/devices/system/cpu/cpu0/topology/core_cpus_list").exists() {
        let machine = Machine::load("sysfs").unwrap();
        assert!(machine.nr_cpus() >= 1);
    }
}

const TWO_NODES: &str = include_str!("data/two-nodes.xml");

fn hwloc(text: &str) -> Result<Machine, MachineError> {
    Machine::from_hwloc_str("t.xml", text)
}

/// What `lstopo --input "numa:2 package:1 l3:2 core:2 pu:2" --of xml` writes, with distances
/// added by `hwloc-annotate`.
#[test]
fn hwloc_of_two_nodes() {
    let machine = hwloc(TWO_NODES).unwrap();
    let tree: Vec<_> = render_topology(&machine).lines().map(str::to_owned).collect();
    assert_eq!(
        tree[..14],
        [
            "t.xml: hwloc topology, 16 CPUs",
            "2 nodes, 2 packages, 4 LLCs, 8 cores, 16 CPUs",
            "caches: L1d 32 KiB, L2 1 MiB, line 64 B",
            "node 0: CPUs 0-7",
            "  package 0: CPUs 0-7",
            "    LLC 0 (16 MiB): CPUs 0-3",
            "      core 0: CPUs 0-1, capacity 1024",
            "      core 1: CPUs 2-3, capacity 1024",
            "    LLC 1 (16 MiB): CPUs 4-7",
            "      core 2: CPUs 4-5, capacity 1024",
            "      core 3: CPUs 6-7, capacity 1024",
            "node 1: CPUs 8-15",
            "  package 1: CPUs 8-15",
            "    LLC 2 (16 MiB): CPUs 8-11",
        ]
    );
    assert_eq!(machine.distances, [[10, 21], [21, 10]]);
}

#[test]
fn hwloc_of_an_asymmetric_amd_machine() {
    let kinds = "<cpukind cpuset=\"0x00000003\"><info name=\"LinuxCapacity\" value=\"512\"/></cpukind>\
        <info name=\"CPUVendor\" value=\"AuthenticAMD\"/><info name=\"CPUFamilyNumber\" value=\"25\"/>\
        <info name=\"CPUModel\" value=\"AMD EPYC\"/></topology>";
    let machine = hwloc(&TWO_NODES.replace("</topology>", kinds)).unwrap();
    let capacities: Vec<_> = machine.cpus[..4].iter().map(|cpu| cpu.capacity).collect();
    assert_eq!(capacities, [512, 512, 1024, 1024]);
    assert_eq!(machine.reclaim_distance, 32);
    assert_eq!(machine.description, "AMD EPYC, 16 CPUs");
}

/// Finding the line of each capacity for each CPU took minutes.
#[test]
fn hwloc_of_many_kinds_and_cpus() {
    let pus: String = (0..500).map(|cpu| format!("<object type=\"PU\" os_index=\"{cpu}\"/>")).collect();
    let cpuset = ["0xffffffff"; 16].join(",");
    let kind = format!("<cpukind cpuset=\"{cpuset}\"><info name=\"LinuxCapacity\" value=\"5\"/></cpukind>");
    let machine = hwloc(&format!("<topology version=\"2.0\">{pus}{}</topology>", kind.repeat(200))).unwrap();
    assert_eq!(machine.cpus[499].capacity, 5);
}

#[test]
fn hwloc_without_caches_or_nodes() {
    let text = "<topology version=\"2.0\"><object type=\"Machine\"><object type=\"Package\">\
        <object type=\"PU\" os_index=\"0\"/><object type=\"PU\" os_index=\"5\"/></object></object></topology>";
    let machine = hwloc(text).unwrap();
    assert_eq!((machine.nr_cpus(), machine.nr_llcs(), machine.nodes), (2, 1, 1));
    assert_eq!(machine.description, "online CPUs 0,5, renumbered from 0");
}

#[test]
fn hwloc_l2_clusters() {
    let text = "<topology version=\"2.0\"><object type=\"L3Cache\" cache_size=\"1024\">\
        <object type=\"L2Cache\"><object type=\"Core\"><object type=\"PU\" os_index=\"0\"/></object>\
        <object type=\"Core\"><object type=\"PU\" os_index=\"1\"/></object></object>\
        <object type=\"L2Cache\"><object type=\"Core\"><object type=\"PU\" os_index=\"2\"/></object></object>\
        </object></topology>";
    let machine = hwloc(text).unwrap();
    let clusters: Vec<_> = machine.cpus.iter().map(|cpu| cpu.cluster).collect();
    assert_eq!(clusters, [Some(0), Some(0), None]);
    assert_eq!(machine.caches.llc_bytes, 1024);
}

/// hwloc writes 0 for a size that it does not know; zeros before a number change nothing.
#[test]
fn hwloc_sizes_of_zero() {
    let machine = hwloc(&TWO_NODES.replace("cache_size=\"16777216\"", "cache_size=\"00\"")).unwrap();
    assert_eq!(machine.caches.llc_bytes, 32 << 20, "the default");
}

#[test]
fn hwloc_errors() {
    let message = |text: &str| hwloc(text).unwrap_err().to_string();
    let changed = |from: &str, to: &str| {
        assert!(TWO_NODES.contains(from), "{from}");
        message(&TWO_NODES.replacen(from, to, 1))
    };
    assert_eq!(message(""), "t.xml: not well-formed XML: the document does not have a root node");
    assert_eq!(message("<html/>"), "t.xml:1: <html> is not a hwloc topology");
    assert_eq!(
        message("<topology/>"),
        "t.xml:1: this is XML of hwloc 1, allowed are 2 and 3: convert it with lstopo of hwloc 2 (lstopo -i OLD.xml NEW.xml)"
    );
    assert!(
        message("<topology version=\"4.0\"/>")
            .starts_with("t.xml:1: this is XML of hwloc 4.0, allowed are 2 and 3")
    );
    assert_eq!(message("<topology version=\"2.0\"/>"), "t.xml:1: no object of type PU");
    assert_eq!(
        changed("type=\"PU\" os_index=\"1\"", "type=\"PU\" os_index=\"0\""),
        "t.xml:15: PU 0 appears twice"
    );
    assert_eq!(
        changed("type=\"PU\" os_index=\"1\"", "type=\"PU\" os_index=\"1024\""),
        "t.xml:15: os_index is `1024`, allowed are 0 to 1023"
    );
    assert_eq!(changed("type=\"PU\" os_index=\"1\"", "type=\"PU\""), "t.xml:15: PU has no os_index");
    assert_eq!(
        changed(
            "type=\"NUMANode\" os_index=\"0\" cpuset=\"0x000000ff\"",
            "type=\"NUMANode\" os_index=\"0\" cpuset=\"zz\""
        ),
        "t.xml:9: cpuset: `zz` is not a group of up to 8 hexadecimal digits"
    );
    assert_eq!(
        changed("cache_size=\"16777216\"", "cache_size=\"big\""),
        "t.xml:12: cache_size is `big`, allowed are 0 to 17179869184"
    );
    assert_eq!(
        changed("cache_linesize=\"64\"", "cache_linesize=\"62\""),
        "t.xml: caches.line_bytes is 62, it must be a power of two, at most 4096"
    );
    assert_eq!(changed("10 21 21 10", "10 21 21"), "t.xml:59: 3 distances for 2 nodes");
    assert_eq!(
        changed("10 21 21 10", "10 -1 21 10"),
        "t.xml:59: distance is `-1`, allowed are 0 to 4294967295"
    );
}

#[test]
fn spec_selects_the_source() {
    let message = |spec: &str| Machine::load(spec).unwrap_err().to_string();
    assert_eq!(
        message("epyc"),
        "unknown machine `epyc`: did you mean `epyc-7543-2s`, `epyc-9654-2s` or `epyc-zen4-2x128`? give a preset (arm-2x4, e5-10c-2s, e5-2680v3-2s, epyc-7543-2s, epyc-7543-2s-nps1, epyc-9654-2s, epyc-zen4-2x128, hikey, juno-r0, pixel3, pixel3-phantom, power10, power10-12c, power10-46c, thunderx2-2s, xeon-32c-2s, xeon-56c-2s, xeon-60c-2s), a path ending in .toml or .json, sysfs for this machine, sysfs:DIR, hwloc:FILE or a shorthand like 2n4l8c2t"
    );
    for nothing in ["sysfs:", "hwloc:"] {
        assert!(message(nothing).starts_with(&format!("unknown machine `{nothing}`: give a preset")));
    }
    // Files without an end.
    let endless = Path::new(env!("CARGO_TARGET_TMPDIR")).join("endless.toml");
    let _ = fs::remove_file(&endless);
    std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
    let endless = endless.display().to_string();
    assert_eq!(message(&endless), format!("cannot read {endless}: it is not a regular file"));
    assert_eq!(message("hwloc:/dev/zero"), "cannot read /dev/zero: it is not a regular file");
    assert_eq!(message("no/such.toml"), "cannot read no/such.toml: No such file or directory (os error 2)");
    assert_eq!(
        message("hwloc:no/such.xml"),
        "cannot read no/such.xml: No such file or directory (os error 2)"
    );
    assert_eq!(
        message("sysfs:no/such"),
        "cannot read no/such/devices/system/cpu/online: No such file or directory (os error 2)"
    );
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).display().to_string();
    assert!(message(&format!("hwloc:{directory}")).starts_with(&format!("cannot read {directory}: ")));
    assert_eq!(Machine::load("4c").unwrap().nr_cpus(), 4);
}

#[test]
fn hostile_xml() {
    let nested = |open: &str, depth: usize| {
        let (open, close) = (open.repeat(depth), "</object>".repeat(depth));
        let pu = "<object type=\"PU\" os_index=\"0\"/>";
        hwloc(&format!("<topology version=\"2.0\">{open}{pu}{close}</topology>"))
    };
    let deep = "t.xml: elements are nested deeper than 64 levels";
    assert!(nested("<object type=\"L2Cache\">", 60).is_ok());
    // Neither quotes nor comments hide the depth.
    for open in ["<object>", "<object a=\"/>\">", "<object a='/>'><!-- </object> -->", "<object\n>"] {
        assert_eq!(nested(open, 20_000).unwrap_err().to_string(), deep);
    }
    assert_eq!(
        hwloc("<!DOCTYPE t [<!ENTITY a \"<b><b>\">]><topology>&a;</topology>").unwrap_err().to_string(),
        "t.xml: a document type with definitions of its own is not supported"
    );
    // A quoted `>` does not end the document type, so that what follows it hides no tags.
    let hidden = format!("<!DOCTYPE t SYSTEM \"a><!--\"><t>{}", "<object>".repeat(20_000));
    assert_eq!(hwloc(&hidden).unwrap_err().to_string(), deep);
    assert_eq!(
        hwloc("<topology xmlns:a=\"b\"/>").unwrap_err().to_string(),
        "t.xml: namespaces are not supported"
    );
    let attributes: String = (0..1000).map(|n| format!(" a{n}=''")).collect();
    assert_eq!(
        hwloc(&format!("<topology{attributes}/>")).unwrap_err().to_string(),
        "t.xml: a tag is longer than 4096 bytes"
    );
    for text in ["<a", "<a b=\"", "<!--", "<![CDATA[", "<?", "</", "<!DOCTYPE", "<é"] {
        assert!(hwloc(text).is_err());
    }
}
