//! Sched domains and groups of machines of many shapes, worked out by hand.

use coreward_machine::{
    CpuSet, Domain, DomainOptions, KernelStyle, Machine, SdFlags, Topology, render_domains,
};

fn build(spec: &str) -> Topology {
    topology(&Machine::load(spec).unwrap())
}

fn topology(machine: &Machine) -> Topology {
    Topology::build(machine, &DomainOptions::default()).unwrap()
}

fn toml(text: &str) -> Machine {
    Machine::from_toml_str("test.toml", text).unwrap()
}

/// Names and levels of a CPU's domains.
fn levels(topology: &Topology, cpu: usize) -> Vec<(&'static str, u32)> {
    topology.domains_of(cpu).map(|domain| (domain.name, domain.level)).collect()
}

/// Spans of a CPU's domains.
fn spans(topology: &Topology, cpu: usize) -> Vec<String> {
    topology.domains_of(cpu).map(|domain| domain.span.to_string()).collect()
}

/// Spans of the groups of a CPU's domain, local group first.
fn groups(topology: &Topology, cpu: usize, index: usize) -> Vec<String> {
    let domain = domain(topology, cpu, index);
    topology.groups_from(domain, cpu).map(|group| group.span.to_string()).collect()
}

fn domain(topology: &Topology, cpu: usize, index: usize) -> &Domain {
    topology.domains_of(cpu).nth(index).unwrap()
}

#[test]
fn one_cpu_has_no_domain() {
    let topology = build("1c");
    assert_eq!(topology.cpu_domains, [[0usize; 0]]);
    assert!(topology.groups.is_empty());
    assert_eq!(topology.level_max, 0);
}

#[test]
fn one_core_has_smt_only() {
    let topology = build("1c2t");
    assert_eq!(levels(&topology, 1), [("SMT", 0)]);
    assert_eq!(groups(&topology, 1, 0), ["1", "0"]);
    assert_eq!(domain(&topology, 0, 0).imbalance_pct, 110);
}

#[test]
fn without_smt_the_lowest_groups_have_no_flags() {
    let topology = build("4c");
    assert_eq!(levels(&topology, 2), [("MC", 2)]);
    assert_eq!(groups(&topology, 2, 0), ["2", "3", "0", "1"]);
    assert!(topology.groups.iter().all(|group| group.flags.is_empty()));
    // The single CPU's SMT domain is gone, and with it the flags of the groups.
    let text = render_domains(&topology, 0, KernelStyle::default());
    assert!(!text.contains("groups_flags"), "{text}");
}

#[test]
fn one_llc_ends_at_mc() {
    let topology = build("8c2t");
    assert_eq!(levels(&topology, 0), [("SMT", 0), ("MC", 2)]);
    assert_eq!(topology.level_max, 2);
    assert!(domain(&topology, 0, 1).flags.contains(SdFlags::PREFER_SIBLING));
}

#[test]
fn one_llc_a_node_drops_package_and_node() {
    let topology = build("2n1l3c");
    assert_eq!(levels(&topology, 5), [("MC", 2), ("NUMA", 5)]);
    assert_eq!(groups(&topology, 5, 0), ["5", "3", "4"]);
    assert_eq!(groups(&topology, 5, 1), ["3-5", "0-2"]);
}

#[test]
fn five_llcs_of_three_cores() {
    let topology = build("5l3c2t");
    assert_eq!(levels(&topology, 4), [("SMT", 0), ("MC", 2), ("PKG", 3)]);
    assert_eq!(spans(&topology, 4), ["4,19", "3-5,18-20", "0-29"]);
    assert_eq!(groups(&topology, 4, 2), ["3-5,18-20", "6-8,21-23", "9-11,24-26", "12-14,27-29", "0-2,15-17"]);
    let group = topology.groups_from(domain(&topology, 4, 2), 4).next().unwrap();
    assert_eq!((group.weight, group.cores, group.capacity), (6, 3, 6 * 1024));
}

#[test]
fn epyc_9654() {
    let topology = build("epyc-9654-2s");
    assert_eq!(levels(&topology, 383), [("SMT", 0), ("MC", 2), ("PKG", 3), ("NUMA", 5)]);
    assert_eq!(spans(&topology, 383), ["191,383", "184-191,376-383", "96-191,288-383", "0-383"]);
    // 192 cores, 24 LLCs, 2 packages, and NUMA seen from 2 nodes.
    assert_eq!(topology.domains.len(), 192 + 24 + 2 + 2);
    let numa = domain(&topology, 0, 3);
    // Distance 32 is not beyond AMD's reclaim distance.
    assert!(numa.flags.contains(SdFlags::WAKE_AFFINE | SdFlags::BALANCE_FORK));
    let intervals = (numa.min_interval_ms, numa.max_interval_ms, numa.busy_factor);
    assert_eq!(intervals, (384, 768, 16));
    let nr = |index| domain(&topology, 0, index).imb_numa_nr;
    assert_eq!([nr(0), nr(1), nr(2), nr(3)], [0, 0, 12, 12]);
}

/// Two sockets of 64 Zen 3 cores: spans and imb_numa_nr as printed in the review of the patch
/// that introduced imb_numa_nr, for one, two and four nodes a socket.
#[test]
fn imb_numa_nr_of_zen3() {
    let machine = |shape: &str, distances: &str| {
        topology(&toml(&format!(
            "shape = \"{shape}\"\npackages = 2\nreclaim_distance = 32\ndistances = {distances}"
        )))
    };
    let table = |topology: &Topology| -> Vec<(&'static str, usize, u32)> {
        let domains = topology.domains_of(0);
        domains.map(|domain| (domain.name, domain.span.len(), domain.imb_numa_nr)).collect()
    };
    let nps1 = machine("2n8l8c2t", "[[10, 32], [32, 10]]");
    assert_eq!(table(&nps1), [("SMT", 2, 0), ("MC", 16, 0), ("PKG", 128, 8), ("NUMA", 256, 8)]);
    let two = "[[10, 12, 32, 32], [12, 10, 32, 32], [32, 32, 10, 12], [32, 32, 12, 10]]";
    assert_eq!(
        table(&machine("4n4l8c2t", two)),
        [("SMT", 2, 0), ("MC", 16, 0), ("NODE", 64, 4), ("NUMA", 128, 4), ("NUMA", 256, 8)]
    );
    let row = |node: usize| {
        let distance = |other: usize| match other {
            _ if other == node => 10,
            _ if other / 4 == node / 4 => 12,
            _ => 32,
        };
        (0..8).map(distance).collect::<Vec<_>>()
    };
    let four = format!("{:?}", (0..8).map(row).collect::<Vec<_>>());
    assert_eq!(
        table(&machine("8n2l8c2t", &four)),
        [("SMT", 2, 0), ("MC", 16, 0), ("NODE", 32, 2), ("NUMA", 128, 2), ("NUMA", 256, 4)]
    );
}

#[test]
fn epyc_7543_has_nodes_within_packages() {
    let topology = build("epyc-7543-2s");
    // The x86 table leaves the package level out, so NODE is level 3.
    assert_eq!(levels(&topology, 20), [("SMT", 0), ("MC", 2), ("NODE", 3), ("NUMA", 4), ("NUMA", 5)]);
    assert_eq!(groups(&topology, 20, 3), ["16-31,80-95", "0-15,64-79"]);
    assert_eq!(groups(&topology, 20, 4), ["0-31,64-95", "32-63,96-127"]);
    // The same machine with the general table has the package level, dropped, below NODE.
    let mut general = Machine::load("epyc-7543-2s").unwrap();
    general.arch = coreward_machine::Arch::Arm64;
    let general = self::topology(&general);
    assert_eq!(levels(&general, 20), [("SMT", 0), ("MC", 2), ("PKG", 3), ("NUMA", 5), ("NUMA", 6)]);
}

#[test]
fn xeon_has_two_llcs_in_one_node() {
    let topology = build("xeon-60c-2s");
    assert_eq!(levels(&topology, 0), [("SMT", 0), ("MC", 2), ("PKG", 3)]);
    assert_eq!(groups(&topology, 0, 2), ["0-59,120-179", "60-119,180-239"]);
}

#[test]
fn power10_llc_is_a_small_core() {
    let topology = build("power10");
    assert_eq!(levels(&topology, 3), [("SMT", 0), ("MC", 2)]);
    assert_eq!(spans(&topology, 3), ["1,3,5,7", "0-79"]);
    let mc = domain(&topology, 3, 1);
    assert!(!mc.flags.contains(SdFlags::SHARE_LLC));
    assert_eq!(mc.groups.len(), 20);
    let group = topology.groups_from(mc, 3).next().unwrap();
    assert!(group.flags.contains(SdFlags::SHARE_LLC | SdFlags::SHARE_CPUCAPACITY));
    assert_eq!((group.weight, group.cores), (4, 1));
}

/// The machines of published results: names, levels and widths of CPU 0's domains.
#[test]
fn domains_of_published_machines() {
    let rows = |spec: &str| -> Vec<(&'static str, u32, usize)> {
        let topology = build(spec);
        topology.domains_of(0).map(|d| (d.name, d.level, d.span.len())).collect()
    };
    assert_eq!(rows("arm-2x4"), [("MC", 2, 4), ("PKG", 3, 8)]);
    assert_eq!(rows("e5-10c-2s"), [("SMT", 0, 2), ("MC", 2, 20), ("NUMA", 5, 40)]);
    assert_eq!(rows("xeon-56c-2s"), [("SMT", 0, 2), ("MC", 2, 112), ("NUMA", 5, 224)]);
    // as the mails say: SMT, MC, NUMA
    assert_eq!(rows("thunderx2-2s"), [("SMT", 0, 4), ("MC", 2, 112), ("NUMA", 5, 224)]);
    // SMT, MC, DIE (PKG since 6.7), NUMA
    assert_eq!(rows("epyc-zen4-2x128"), [("SMT", 0, 2), ("MC", 2, 16), ("PKG", 3, 256), ("NUMA", 5, 512)]);
    // 2 nodes of 64 CPUs and 8 LLCs
    assert_eq!(rows("epyc-7543-2s-nps1"), [("SMT", 0, 2), ("MC", 2, 8), ("PKG", 3, 64), ("NUMA", 5, 128)]);
    // 4 nodes of 32 CPUs and 4 LLCs
    assert_eq!(
        rows("epyc-7543-2s"),
        [("SMT", 0, 2), ("MC", 2, 8), ("NODE", 3, 32), ("NUMA", 4, 64), ("NUMA", 5, 128)]
    );
    assert_eq!(rows("power10-12c"), [("SMT", 0, 4), ("MC", 2, 48), ("NUMA", 5, 96)]);
    assert_eq!(rows("power10-46c"), [("SMT", 0, 4), ("MC", 2, 48), ("NUMA", 5, 96), ("NUMA", 6, 368)]);
}

/// RECLAIM_DISTANCE of POWER is 10: no fork, exec or affine wakeup reaches another node.
#[test]
fn power_stays_in_its_node() {
    let topology = build("power10-12c");
    let far = SdFlags::BALANCE_EXEC | SdFlags::BALANCE_FORK | SdFlags::WAKE_AFFINE;
    assert!(!domain(&topology, 0, 2).flags.intersects(far));
    assert!(domain(&topology, 0, 1).flags.contains(far));
    assert_eq!(Machine::load("power10-46c").unwrap().node_mask(7).to_string(), "328-367");
}

#[test]
fn asymmetric_capacities() {
    let both = SdFlags::ASYM_CPUCAPACITY | SdFlags::ASYM_CPUCAPACITY_FULL;
    let juno = build("juno-r0");
    assert_eq!(levels(&juno, 1), [("MC", 2), ("PKG", 3)]);
    assert!(!domain(&juno, 1, 0).flags.intersects(both | SdFlags::PREFER_SIBLING));
    assert!(domain(&juno, 1, 1).flags.contains(both));
    let capacities: Vec<_> = juno
        .groups_from(domain(&juno, 1, 1), 1)
        .map(|group| (group.capacity, group.min_capacity, group.max_capacity))
        .collect();
    assert_eq!(capacities, [(2048, 1024, 1024), (4 * 446, 446, 446)]);

    let wake = |kernel: (u32, u32), spec: &str, cpu: usize| {
        let names = KernelStyle::new(kernel.0, kernel.1);
        let options = DomainOptions { names, ..Default::default() };
        let topology = Topology::build(&Machine::load(spec).unwrap(), &options).unwrap();
        let flags = topology.domains_of(cpu).map(|d| d.flags.contains(SdFlags::BALANCE_WAKE));
        flags.collect::<Vec<_>>()
    };
    for (kernel, expected) in
        [((4, 8), false), ((4, 9), true), ((5, 5), true), ((5, 6), true), ((5, 7), false)]
    {
        assert_eq!(wake(kernel, "juno-r0", 0), [expected; 2], "{kernel:?}");
        assert_eq!(wake(kernel, "pixel3", 7), [expected], "{kernel:?}");
        assert_eq!(wake(kernel, "4c", 0), [false], "{kernel:?}");
    }

    let pixel3 = build("pixel3");
    assert_eq!(levels(&pixel3, 0), [("MC", 2)]);
    assert!(domain(&pixel3, 0, 0).flags.contains(both | SdFlags::SHARE_LLC));

    let phantom = build("pixel3-phantom");
    assert_eq!(levels(&phantom, 0), [("MC", 2), ("PKG", 3)]);
    assert_eq!(spans(&phantom, 0), ["0-3", "0-7"]);
    assert!(!domain(&phantom, 0, 0).flags.intersects(both));
    assert!(domain(&phantom, 0, 1).flags.contains(both));
}

#[test]
fn some_capacities_are_not_all() {
    let machine = toml("arch = \"arm64\"\nshape = \"1n2l4c1t\"\n[capacity]\n\"0-1\" = 300\n\"2-3\" = 600\n");
    let topology = topology(&machine);
    let low = domain(&topology, 0, 0).flags;
    assert!(low.contains(SdFlags::ASYM_CPUCAPACITY));
    assert!(!low.contains(SdFlags::ASYM_CPUCAPACITY_FULL));
    assert!(domain(&topology, 0, 1).flags.contains(SdFlags::ASYM_CPUCAPACITY_FULL));
}

#[test]
fn old_names() {
    let machine = Machine::load("hikey").unwrap();
    let options = DomainOptions { names: KernelStyle::new(6, 6), ..DomainOptions::default() };
    let topology = Topology::build(&machine, &options).unwrap();
    assert_eq!(levels(&topology, 7), [("MC", 2), ("DIE", 3)]);
    let text = render_domains(&topology, 7, KernelStyle::new(6, 6));
    assert!(text.contains("SD_SHARE_PKG_RESOURCES") && !text.contains("level"), "{text}");
}

fn topology_of(machine: &Machine, names: KernelStyle) -> Topology {
    Topology::build(machine, &DomainOptions { names, ..DomainOptions::default() }).unwrap()
}

// What the next three tests expect was seen in guests with Debian's kernels (vm/domains).

#[test]
fn linux_7_3_has_no_smt_level_where_there_is_no_smt() {
    let seven = KernelStyle::new(7, 3);
    let levels_of = |spec: &str| levels(&topology_of(&Machine::load(spec).unwrap(), seven), 0);
    assert_eq!(levels_of("1n1l4c1t"), [("MC", 1)]);
    assert_eq!(levels_of("2n2l2c1t"), [("MC", 1), ("PKG", 2), ("NUMA", 4)]);
    assert_eq!(levels_of("1n1l4c2t"), [("SMT", 0), ("MC", 2)]);
    // arm64 has the generic table, which keeps it.
    assert_eq!(levels_of("juno-r0"), [("MC", 2), ("PKG", 3)]);
}

#[test]
fn linux_7_3_has_no_overlap_flag() {
    let machine = Machine::load("2n1l4c2t").unwrap();
    let old = domain(&topology(&machine), 0, 2).flags;
    let new = domain(&topology_of(&machine, KernelStyle::new(7, 3)), 0, 2).flags;
    assert!(old.contains(SdFlags::OVERLAP));
    assert_eq!(new | SdFlags::OVERLAP, old);
    assert_ne!(new, old);
}

#[test]
fn linux_7_3_prefers_siblings_below_different_capacities() {
    let machine = Machine::load("juno-r0").unwrap();
    let flag = SdFlags::PREFER_SIBLING;
    assert!(!domain(&topology(&machine), 0, 0).flags.contains(flag));
    assert!(domain(&topology_of(&machine, KernelStyle::new(7, 3)), 0, 0).flags.contains(flag));
    // and before misfit migration
    assert!(domain(&topology_of(&machine, KernelStyle::new(4, 19)), 0, 0).flags.contains(flag));
    assert!(!domain(&topology_of(&machine, KernelStyle::new(4, 20)), 0, 0).flags.contains(flag));
}

#[test]
fn without_sched_cluster_levels_have_lower_numbers() {
    let names = KernelStyle::default().without_sched_cluster();
    let machine = Machine::load("juno-r0").unwrap();
    assert_eq!(levels(&topology_of(&machine, names), 0), [("MC", 1), ("PKG", 2)]);
    let clusters = toml("shape = \"8c2t\"\ncluster_cores = 2");
    assert_eq!(levels(&topology_of(&clusters, names), 0), [("SMT", 0), ("MC", 1)]);
}

#[test]
fn clusters() {
    let machine = toml("shape = \"8c2t\"\ncluster_cores = 2");
    let topology = topology(&machine);
    assert_eq!(levels(&topology, 0), [("SMT", 0), ("CLS", 1), ("MC", 2)]);
    assert_eq!(spans(&topology, 0), ["0,8", "0-1,8-9", "0-15"]);
    assert!(domain(&topology, 0, 1).flags.contains(SdFlags::CLUSTER | SdFlags::SHARE_LLC));
    assert_eq!(groups(&topology, 0, 2), ["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"]);
    // A cluster as large as the LLC is none.
    let whole = toml("shape = \"8c2t\"\ncluster_cores = 8");
    assert_eq!(levels(&self::topology(&whole), 0), [("SMT", 0), ("MC", 2)]);
}

#[test]
fn beyond_the_reclaim_distance_no_fork_exec_or_affine_wakeup() {
    let machine = toml("shape = \"2n1l2c\"\ndistances = [[10, 31], [31, 10]]");
    let topology = topology(&machine);
    let far = SdFlags::BALANCE_EXEC | SdFlags::BALANCE_FORK | SdFlags::WAKE_AFFINE;
    assert!(!domain(&topology, 0, 1).flags.intersects(far));
    assert!(domain(&topology, 0, 1).flags.contains(SdFlags::BALANCE_NEWIDLE));
}

/// Constants that `sd_init` had before 5.10, and levels that came later.
#[test]
fn constants_of_old_kernels() {
    let rows = |kernel: (u32, u32)| {
        let machine = Machine::load("2n2l2c2t").unwrap();
        let topology = topology_of(&machine, KernelStyle::new(kernel.0, kernel.1));
        let row = |d: &Domain| (d.name, d.level, d.imbalance_pct, d.busy_factor, d.cache_nice_tries);
        topology.domains_of(0).map(row).collect::<Vec<_>>()
    };
    assert_eq!(
        rows((4, 8)),
        [("SMT", 0, 110, 32, 0), ("MC", 1, 117, 32, 1), ("DIE", 2, 125, 32, 1), ("NUMA", 3, 125, 32, 2)]
    );
    let with_node =
        [("SMT", 0, 110, 32, 0), ("MC", 1, 117, 32, 1), ("DIE", 2, 125, 32, 1), ("NUMA", 4, 125, 32, 2)];
    assert_eq!(rows((5, 5)), with_node);
    assert_eq!(rows((5, 9)), with_node);
    let halved =
        [("SMT", 0, 110, 16, 0), ("MC", 1, 117, 16, 1), ("DIE", 2, 117, 16, 1), ("NUMA", 4, 117, 16, 2)];
    assert_eq!(rows((5, 10)), halved);
    assert_eq!(rows((5, 15)), halved);
    assert_eq!(rows((5, 16))[1..], [("MC", 2, 117, 16, 1), ("DIE", 3, 117, 16, 1), ("NUMA", 5, 117, 16, 2)]);
}

#[test]
fn before_4_19_tasks_are_not_spread_over_last_level_caches() {
    let machine = Machine::load("2n2l2c2t").unwrap();
    let spreads = |minor| {
        let topology = topology_of(&machine, KernelStyle::new(4, minor));
        topology.domains_of(0).map(|d| d.flags.contains(SdFlags::PREFER_SIBLING)).collect::<Vec<_>>()
    };
    assert_eq!(spreads(8), [true, false, true, false]);
    assert_eq!(spreads(19), [true, true, true, false]);
}

/// Groups are linked anew for each CPU, so all of a domain see the order of its last one.
#[test]
fn ring_order_is_that_of_the_last_cpu() {
    let machine = toml("[[llc]]\ncores = [\"0,2\", \"1,5\", \"3,4\"]");
    let topology = topology(&machine);
    // From CPU 5: its own core, then that of CPU 0, then that of CPU 3.
    assert_eq!(groups(&topology, 5, 1), ["1,5", "0,2", "3-4"]);
    assert_eq!(groups(&topology, 0, 1), ["0,2", "3-4", "1,5"]);
}

/// A machine of nodes of two CPUs with the given distances.
fn mesh(distances: &[&[u32]]) -> Topology {
    let text = format!("shape = \"{}n1l2c\"\ndistances = {distances:?}", distances.len());
    topology(&toml(&text))
}

/// The nodes of each group of a CPU's domain.
fn node_groups(topology: &Topology, node: usize, index: usize) -> Vec<String> {
    let nodes = |set: &CpuSet| set.iter().map(|cpu| cpu / 2).collect::<CpuSet>().to_string();
    let cpu = node * 2;
    topology.groups_from(domain(topology, cpu, index), cpu).map(|group| nodes(&group.span)).collect()
}

/// Four nodes in a ring: the example in kernel/sched/topology.c.
#[test]
fn glueless_ring_of_four() {
    let topology = mesh(&[&[10, 20, 30, 20], &[20, 10, 20, 30], &[30, 20, 10, 20], &[20, 30, 20, 10]]);
    assert_eq!(levels(&topology, 0), [("MC", 2), ("NUMA", 5), ("NUMA", 6)]);
    assert_eq!(node_groups(&topology, 0, 1), ["0", "1", "3"]);
    assert_eq!(node_groups(&topology, 1, 1), ["1", "2", "0"]);
    assert_eq!(node_groups(&topology, 0, 2), ["0-1,3", "1-3"]);
    assert_eq!(node_groups(&topology, 1, 2), ["0-2", "0,2-3"]);
    assert_eq!(node_groups(&topology, 2, 2), ["1-3", "0-1,3"]);
    assert_eq!(node_groups(&topology, 3, 2), ["0,2-3", "0-2"]);
    // Only the CPUs of the node whose domain a group is balance for it.
    let top = domain(&topology, 0, 2);
    let masks: Vec<_> = topology.groups_from(top, 0).map(|group| group.balance_mask.to_string()).collect();
    assert_eq!(masks, ["0-1", "4-5"]);
}

/// Four nodes, two of them fully connected: domains of unequal number (kernel/sched/topology.c).
#[test]
fn asymmetric_mesh_of_four() {
    let topology = mesh(&[&[10, 20, 20, 30], &[20, 10, 20, 20], &[20, 20, 10, 20], &[30, 20, 20, 10]]);
    assert_eq!(node_groups(&topology, 0, 2), ["0-2", "1-3"]);
    assert_eq!(node_groups(&topology, 3, 2), ["1-3", "0-2"]);
    assert_eq!(levels(&topology, 2), [("MC", 2), ("NUMA", 5)]);
    assert_eq!(spans(&topology, 2)[1], "0-7");
    assert_eq!(levels(&topology, 0).len(), 3);
}

/// Four nodes in a line, three hops from end to end (kernel/sched/topology.c).
#[test]
fn line_of_four() {
    let topology = mesh(&[&[10, 20, 30, 40], &[20, 10, 20, 30], &[30, 20, 10, 20], &[40, 30, 20, 10]]);
    assert_eq!(node_groups(&topology, 0, 1), ["0", "1"]);
    assert_eq!(node_groups(&topology, 1, 1), ["1", "2", "0"]);
    // Node 2's next smaller domain (1-3) reaches out of 0-2: its own node stands in.
    assert_eq!(node_groups(&topology, 0, 2), ["0-1", "2"]);
    assert_eq!(node_groups(&topology, 1, 2), ["0-2", "2-3"]);
    assert_eq!(node_groups(&topology, 3, 2), ["2-3", "1"]);
    assert_eq!(node_groups(&topology, 0, 3), ["0-2", "1-3"]);
    assert_eq!(node_groups(&topology, 3, 3), ["1-3", "0-2"]);
}

/// Eight nodes in a ring.
#[test]
fn glueless_ring_of_eight() {
    let hops = |a: usize, b: usize| a.abs_diff(b).min(8 - a.abs_diff(b)) as u32;
    let rows: Vec<Vec<u32>> = (0..8).map(|a| (0..8).map(|b| 10 + 10 * hops(a, b)).collect()).collect();
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    let topology = mesh(&rows);
    for node in 0..8 {
        assert_eq!(levels(&topology, node * 2).len(), 5, "MC and one NUMA level a distance");
        for (index, domain) in topology.domains_of(node * 2).enumerate().skip(1) {
            assert_eq!(domain.span.len(), [0, 6, 10, 14, 16][index]);
            let covered = topology
                .groups_from(domain, node * 2)
                .fold(CpuSet::new(), |sum, group| sum.union(&group.span));
            assert_eq!(covered, domain.span);
            assert!(topology.groups_from(domain, node * 2).all(|g| !g.balance_mask.is_empty()));
        }
    }
    assert_eq!(node_groups(&topology, 0, 1), ["0", "1", "7"]);
    assert_eq!(node_groups(&topology, 0, 4), ["0-3,5-7", "1-7"]);
}

#[test]
fn json() {
    let value = serde_json::to_value(build("1c2t")).unwrap();
    assert_eq!(value["domains"][0]["span"], "0-1");
    assert_eq!(value["domains"][0]["flags"][0], "SD_BALANCE_NEWIDLE");
    assert_eq!(value["cpu_domains"], serde_json::json!([[0], [0]]));
    let value = serde_json::to_value(Machine::load("juno-r0").unwrap()).unwrap();
    assert_eq!(value["cpus"][1]["capacity"], 1024);
    assert_eq!(value["arch"], "arm64");
}
