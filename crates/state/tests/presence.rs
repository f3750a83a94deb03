//! What is only there on some machines: rules ask for it in addition to their feature. Expected is what the static keys of
//! Debian's 7.3.4 said in guests of these machines (docs/results/presence.md).

use coreward_machine::{Machine, Partition, Topology};
use coreward_policy::{PolicySettings, Profile};
use coreward_state::{domain_options, policy_system};

/// `sched_cache_present`, `sched_cluster_active`, `sched_asym_cpucapacity`: are they there on a machine that is divided so?
/// What is offline is a partition of its own.
fn present(machine: &str, partitions: &[&str]) -> (bool, bool, bool) {
    let machine = Machine::load(machine).unwrap();
    let profile = Profile::by_name("linux-7.3").unwrap();
    let settings = PolicySettings::new(profile);
    let options = domain_options(profile, &settings);
    let partitions: Vec<Partition> = partitions.iter().map(|cpus| cpus.parse().unwrap()).collect();
    let topology = Topology::partitioned(&machine, &options, &partitions).unwrap();
    let sys = policy_system(&machine, &topology, &settings, 0).unwrap();
    (sys.sched_cache_present != 0, sys.cluster_present != 0, sys.asym_present != 0)
}

fn cache(partitions: &[&str]) -> bool {
    let (cache, cluster, asym) = present("2n2l2c2t", partitions);
    assert!(!cluster && !asym);
    cache
}

#[test]
fn sched_cache_needs_a_partition_with_several_llcs() {
    assert!(cache(&[]));
    // the siblings are offline
    assert!(cache(&["0-7", "8", "9", "10", "11", "12", "13", "14", "15"]));
    // one CPU of each LLC is left
    assert!(!cache(&["0,2,4,6", "1", "3", "5", "7", "8", "9", "10", "11", "12", "13", "14", "15"]));
    // one LLC is left
    assert!(!cache(&["0-1,8-9", "2", "3", "4", "5", "6", "7", "10", "11", "12", "13", "14", "15"]));
    // the remaining CPUs are a partition of three LLCs, or of one
    assert!(cache(&["0-1,8-9"]));
    assert!(!cache(&["0-1,8-9", "2-3,10-11", "4-5,12-13"]));
    assert!(cache(&["0-3,8-11"]));
}

#[test]
fn clusters_need_one_of_several_cpus() {
    let clusters = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vm/machines/clusters.toml");
    assert_eq!(present(clusters, &[]), (false, true, false));
    assert_eq!(present(clusters, &["2-3"]), (false, true, false));
    assert_eq!(present(clusters, &["1-2"]), (false, false, false));
}

#[test]
fn unequal_cpus_need_a_partition_that_has_some() {
    assert_eq!(present("juno-r0", &[]), (true, false, true));
    assert_eq!(present("juno-r0", &["1-2"]), (false, false, false));
}
