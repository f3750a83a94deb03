//! What the readers assume where a description says nothing, and that they say so.

use std::fs;
use std::path::{Path, PathBuf};

use coreward_machine::Machine;

const TWO_NODES: &str = include_str!("data/two-nodes.xml");

/// Reads the XML of two nodes with a part of it exchanged.
fn hwloc(from: &str, to: &str) -> Machine {
    assert!(TWO_NODES.contains(from), "{from}");
    Machine::from_hwloc_str("t.xml", &TWO_NODES.replacen(from, to, 1)).unwrap()
}

/// The assumptions that the XML of two nodes does not need as it is.
fn assumed(from: &str, to: &str) -> Vec<String> {
    let usual = hwloc("<topology", "<topology").assumptions;
    let new = hwloc(from, to).assumptions.into_iter().filter(|what| !usual.contains(what));
    new.collect()
}

#[test]
fn hwloc_says_what_it_does_not_know() {
    assert_eq!(
        hwloc("<topology", "<topology").assumptions,
        [
            "the file says nothing of capacities: all CPUs are taken as equally fast",
            "sizes of caches are not given: assumed are L1d 32 KiB, L2 1 MiB",
        ]
    );
    let none = "<topology version=\"2.0\"><object type=\"PU\" os_index=\"0\"/></topology>";
    assert_eq!(
        Machine::from_hwloc_str("t.xml", none).unwrap().assumptions,
        [
            "no caches are described: the CPUs of a package are taken to share one",
            "the file says nothing of capacities: all CPUs are taken as equally fast",
            "sizes of caches are not given: assumed are L1d 32 KiB, L2 1 MiB, LLC 32 MiB, cache line 64 B",
        ]
    );
}

#[test]
fn hwloc_3_is_read_as_hwloc_2() {
    assert_eq!(hwloc("version=\"2.0\"", "version=\"3.0\""), hwloc("version=\"2.0\"", "version=\"2.0\""));
}

#[test]
fn cpus_without_a_node_are_put_into_the_nearest_one() {
    let node = "type=\"NUMANode\" os_index=\"1\" cpuset=\"0x0000ff00\"";
    let less = "type=\"NUMANode\" os_index=\"1\" cpuset=\"0x00007f00\"";
    assert_eq!(
        assumed(node, less),
        ["CPUs 15 are in no NUMANode's cpuset: each is put into the nearest node"]
    );
    assert_eq!(hwloc(node, less).cpus[15].node, 1);
}

/// Memory that both nodes' CPUs use (HBM, CXL) is a node with a larger cpuset.
#[test]
fn a_cpu_is_in_its_smallest_node() {
    let shared = "<object type=\"NUMANode\" os_index=\"2\" cpuset=\"0x0000ffff\"/><object type=\"Package\"";
    let machine = hwloc("<object type=\"Package\"", shared);
    assert_eq!((machine.nodes, machine.cpus[0].node, machine.cpus[8].node), (2, 0, 1));
}

#[test]
fn distances_are_made_those_of_a_slit() {
    let with =
        |values: &str| (hwloc("10 21 21 10", values).distances[0].clone(), assumed("10 21 21 10", values));
    let one = |what: &str| vec![what.to_owned()];
    let scaled = "distances of nodes to themselves are not 10: all are scaled so that they are";
    let larger = "distances of nodes differ by direction: the larger one counts";
    let default = "the distances of nodes are no ACPI SLIT (10 of a node to itself, more to others): 10 and 20 are \
                   assumed, as by the kernel";
    assert_eq!(with("10 21 21 10"), (vec![10, 21], vec![]));
    assert_eq!(with("100 160 160 100"), (vec![10, 16], one(scaled)));
    assert_eq!(with("10 21 22 10"), (vec![10, 22], one(larger)));
    for wrong in ["10 21 21 11", "10 10 10 10", "0 0 0 0", "10 255 255 10", "10 4294967295 4294967295 10"] {
        assert_eq!(with(wrong), (vec![10, 20], one(default)), "{wrong}");
    }
}

#[test]
fn capacities_come_from_kinds_of_cpus() {
    let kinds = |first: &str, second: &str| {
        let kind = |cpus: &str, infos: &str| format!("<cpukind cpuset=\"{cpus}\">{infos}</cpukind>");
        let both = kind("0x000000ff", first) + &kind("0x0000ff00", second);
        let machine = hwloc("</topology>", &(both + "</topology>"));
        let note = machine.assumptions.iter().find(|note| note.contains("capacit") || note.contains("fast"));
        (machine.cpus[0].capacity, machine.cpus[8].capacity, note.cloned().unwrap_or_default())
    };
    let info = |name: &str, value: &str| format!("<info name=\"{name}\" value=\"{value}\"/>");
    let capacity = |n| info("LinuxCapacity", n);
    assert_eq!(kinds(&capacity("1024"), &capacity("512")), (1024, 512, String::new()));
    let scaled = "a capacity is 1280: all are scaled so that the largest is 1024";
    assert_eq!(kinds(&capacity("1280"), &capacity("640")), (1024, 512, scaled.into()));
    let of = "1024 of CPUs 0-7, 604 of CPUs 8-15";
    let cores = "capacities are inferred from the kinds of cores";
    assert_eq!(
        kinds(&info("CoreType", "IntelCore"), &info("CoreType", "IntelAtom")),
        (1024, 604, format!("{cores}, with the maximum frequencies of common models: {of}"))
    );
    let core = |kind, mhz| info("CoreType", kind) + &info("FrequencyMaxMHz", mhz);
    assert_eq!(
        kinds(&core("IntelCore", "5200"), &core("IntelAtom", "3900")),
        (1024, 604, format!("{cores} and their maximum frequencies, as by intel_pstate: {of}"))
    );
    let unknown =
        "the CPUs are of 2 kinds, but nothing says how fast they are: all CPUs are taken as equally fast";
    assert_eq!(kinds("", ""), (1024, 1024, unknown.into()));
    let mhz = |mhz| info("FrequencyMaxMHz", mhz);
    assert_eq!(kinds(&mhz("0"), &mhz("3000")), (1024, 1024, unknown.into()), "0 is not known");
}

/// A sysfs tree of two CPUs, file by file.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        Tree(root)
    }

    fn file(&self, path: &str, text: &str) -> &Tree {
        let path = self.0.join("devices").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn read(&self) -> Machine {
        Machine::load(&format!("sysfs:{}", self.0.display())).unwrap()
    }
}

/// As Linux 2.6.20 showed it: masks instead of lists, no lists of online CPUs and nodes.
#[test]
fn sysfs_of_an_old_kernel() {
    let tree = Tree::new("old");
    for (cpu, node, own) in [(0, 0, "5"), (1, 1, "a"), (2, 0, "5"), (3, 1, "a")] {
        let dir = format!("system/cpu/cpu{cpu}");
        tree.file(&format!("{dir}/topology/core_siblings"), &format!("00000000,{own}\n"));
        tree.file(&format!("{dir}/topology/thread_siblings"), &format!("{:x}\n", 1 << cpu));
        tree.file(&format!("{dir}/cache/index0/level"), "2\n");
        tree.file(&format!("{dir}/cache/index0/shared_cpu_map"), &format!("{own}\n"));
        tree.file(&format!("system/node/node{node}/cpumap"), &format!("{own}\n"));
        tree.file(&format!("{dir}/cpuidle/state0/name"), "C1\n");
        tree.file(&format!("{dir}/cpuidle/state0/latency"), "7\n");
    }
    tree.file("system/node/node0/distance", "10 21\n").file("system/node/node1/distance", "21 10\n");
    // a CPU that is offline, and one that has never been online
    tree.file("system/cpu/cpu4/online", "0\n").file("system/cpu/cpu4/topology/core_id", "0\n");
    tree.file("system/cpu/cpu5/crash_notes", "0\n");
    let machine = tree.read();
    assert_eq!((machine.nr_cpus(), machine.nodes, machine.nr_llcs()), (4, 2, 2));
    assert_eq!(machine.llc_mask(0).to_string(), "0,2");
    assert_eq!(machine.distances, [[10, 21], [21, 10]]);
    assert_eq!(machine.idle_states[0].residency_ns, 7_000);
    assert!(
        machine.assumptions.contains(
            &"the residencies of idle states C1 are not given: exit latencies are assumed".to_owned()
        )
    );
}

#[test]
fn sysfs_files_may_end_with_nul_bytes() {
    let tree = Tree::new("nul");
    tree.file("system/cpu/online", "0-1 \0").file("system/node/online", "0\n\0");
    tree.file("system/node/node0/cpulist", "0-1\0\0").file("system/node/node0/distance", "10\0");
    assert_eq!(tree.read().nr_cpus(), 2);
}

#[test]
fn sysfs_says_what_it_does_not_know() {
    let tree = Tree::new("little");
    tree.file("system/cpu/online", "0-3\n").file("system/node/online", "0-1\n");
    tree.file("system/node/node0/cpulist", "0\n").file("system/node/node1/cpulist", "1-2\n");
    for cpu in 0..4 {
        tree.file(&format!("system/cpu/cpu{cpu}/topology/core_siblings"), if cpu == 0 { "1" } else { "e" });
    }
    let machine = tree.read();
    assert_eq!(machine.cpus[3].node, 1, "that of its package");
    assert_eq!(
        machine.assumptions,
        [
            "CPUs 3 are in no node's cpulist: each is put into that of its package",
            "no caches are described: the CPUs of a package are taken to share one",
            "the distances of nodes are not given: 10 and 20 are assumed",
            "sizes of caches are not given: assumed are L1d 32 KiB, L2 1 MiB, LLC 32 MiB, cache line 64 B",
            "no idle states are described: POLL and C1 are assumed",
        ]
    );
}

#[test]
fn sysfs_capacities_come_from_frequencies_and_core_types() {
    let tree = Tree::new("hybrid");
    tree.file("system/cpu/online", "0-1\n");
    let frequency = |cpu, khz| tree.file(&format!("system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"), khz);
    frequency(0, "5200000\n");
    frequency(1, "3900000\n");
    let capacities = || tree.read().cpus.iter().map(|cpu| cpu.capacity).collect::<Vec<_>>();
    assert_eq!(capacities(), [1024, 768]);
    tree.file("cpu_core/cpus", "0\n").file("cpu_atom/cpus", "1\n");
    assert_eq!(capacities(), [1024, 604]);
    tree.file("system/cpu/cpu1/cpu_capacity", "600\n").file("system/cpu/cpu0/cpu_capacity", "1024\n");
    assert_eq!(capacities(), [1024, 600], "what the machine reports itself counts");
}

#[test]
fn a_machine_file_says_what_it_does_not_know() {
    let read = |text: &str| Machine::from_toml_str("m.toml", text).unwrap().assumptions;
    assert_eq!(
        read("shape = \"2n2c\""),
        [
            "the distances of nodes are not given: 10 and 20 are assumed",
            "sizes of caches are not given: assumed are L1d 32 KiB, L2 1 MiB, LLC 32 MiB, cache line 64 B",
        ]
    );
    assert_eq!(read("shape = \"2c\"\nlike = \"epyc-9654-2s\""), [""; 0]);
    assert_eq!(
        read("shape = \"2c\"\nidle = []\n[caches]\nl1d_bytes = 1\nl2_bytes = 1\nllc_bytes = 1"),
        ["sizes of caches are not given: assumed are cache line 64 B"]
    );
}
