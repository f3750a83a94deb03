//! Every table of seed 002 (relax_domain_level on two E5-2680 v3, Linux 6.8), before and after.

use coreward_machine::{
    DomainOptions, KernelStyle, Machine, RelaxError, RelaxSemantics, Topology, render_domains,
    render_schedstat_masks,
};

const LINUX_6_8: KernelStyle = KernelStyle::new(6, 8);

fn build(request: i32, semantics: RelaxSemantics) -> Result<Topology, RelaxError> {
    let machine = Machine::load("e5-2680v3-2s").unwrap();
    let options =
        DomainOptions { relax_domain_level: Some(request), relax_semantics: semantics, names: LINUX_6_8 };
    Topology::build(&machine, &options)
}

/// What the kernel prints, without the blank that it puts at the end of flag lines.
fn printed(topology: &Topology, style: KernelStyle) -> Vec<String> {
    let text = render_domains(topology, 0, style);
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

const NEWIDLE: &str = "SD_BALANCE_NEWIDLE ";
const NONE: &str = "";

/// The flag lines of the seed, where each argument says whether newidle balance is on in
/// SMT, MC and NUMA.
fn flag_lines(smt: &str, mc: &str, numa: &str) -> Vec<String> {
    vec![
        format!(
            "cpu0/domain0/flags:{smt}SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_CPUCAPACITY SD_SHARE_PKG_RESOURCES SD_PREFER_SIBLING"
        ),
        format!(
            "cpu0/domain1/flags:{mc}SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_PKG_RESOURCES SD_PREFER_SIBLING"
        ),
        format!(
            "cpu0/domain2/flags:{numa}SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SERIALIZE SD_OVERLAP SD_NUMA"
        ),
        format!(
            "cpu0/domain1/groups_flags:{smt}SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_CPUCAPACITY SD_SHARE_PKG_RESOURCES SD_PREFER_SIBLING"
        ),
        format!(
            "cpu0/domain2/groups_flags:{mc}SD_BALANCE_EXEC SD_BALANCE_FORK SD_WAKE_AFFINE SD_SHARE_PKG_RESOURCES SD_PREFER_SIBLING"
        ),
    ]
}

fn check(request: i32, semantics: RelaxSemantics, newidle: [&str; 3]) {
    let topology = build(request, semantics).unwrap();
    let lines = printed(&topology, LINUX_6_8);
    let names = ["cpu0/domain0/name:SMT", "cpu0/domain1/name:MC", "cpu0/domain2/name:NUMA"];
    assert_eq!(lines[..3], names, "request {request} {semantics:?}");
    let [smt, mc, numa] = newidle;
    assert_eq!(lines[3..], flag_lines(smt, mc, numa), "request {request} {semantics:?}");
}

#[test]
fn before_the_patch() {
    let semantics = RelaxSemantics::Before;
    check(-1, semantics, [NEWIDLE, NEWIDLE, NEWIDLE]);
    check(0, semantics, [NEWIDLE, NONE, NONE]);
    check(1, semantics, [NEWIDLE, NONE, NONE]);
    check(2, semantics, [NEWIDLE, NEWIDLE, NONE]);
    check(3, semantics, [NEWIDLE, NEWIDLE, NONE]);
    check(4, semantics, [NEWIDLE, NEWIDLE, NONE]);
}

#[test]
fn after_the_patch() {
    let semantics = RelaxSemantics::After;
    check(-1, semantics, [NEWIDLE, NEWIDLE, NEWIDLE]);
    check(0, semantics, [NONE, NONE, NONE]);
    check(1, semantics, [NEWIDLE, NONE, NONE]);
    check(2, semantics, [NEWIDLE, NONE, NONE]);
    check(3, semantics, [NEWIDLE, NEWIDLE, NONE]);
    check(4, semantics, [NEWIDLE, NEWIDLE, NONE]);
    check(5, semantics, [NEWIDLE, NEWIDLE, NONE]);
    check(6, semantics, [NEWIDLE, NEWIDLE, NEWIDLE]);
}

#[test]
fn refused_values() {
    let message = |request, semantics| build(request, semantics).unwrap_err().to_string();
    for request in [5, 6, i32::MAX] {
        assert_eq!(
            message(request, RelaxSemantics::Before),
            format!(
                "relax_domain_level is {request}, allowed are -1 (no request) to 4 on this machine, whose top level is 5"
            )
        );
    }
    for request in [7, i32::MAX, -2, i32::MIN] {
        assert_eq!(
            message(request, RelaxSemantics::After),
            format!(
                "relax_domain_level is {request}, allowed are -1 (no request) to 6 on this machine, whose top level is 5"
            )
        );
    }
}

#[test]
fn no_request_is_the_boot_default() {
    let machine = Machine::load("e5-2680v3-2s").unwrap();
    let options = DomainOptions { names: LINUX_6_8, ..DomainOptions::default() };
    let topology = Topology::build(&machine, &options).unwrap();
    assert_eq!(topology, build(-1, RelaxSemantics::After).unwrap());
    assert_eq!(topology, build(-1, RelaxSemantics::Before).unwrap());
}

#[test]
fn the_second_patch_shows_levels() {
    let topology = build(-1, RelaxSemantics::After).unwrap();
    let lines = printed(&topology, KernelStyle::new(6, 10));
    assert_eq!(
        lines[..6],
        [
            "cpu0/domain0/name:SMT",
            "cpu0/domain1/name:MC",
            "cpu0/domain2/name:NUMA",
            "cpu0/domain0/level:0",
            "cpu0/domain1/level:2",
            "cpu0/domain2/level:5",
        ]
    );
    let renamed = lines[6..].join("\n");
    let old = flag_lines(NEWIDLE, NEWIDLE, NEWIDLE).join("\n");
    assert_eq!(renamed, old.replace("SD_SHARE_PKG_RESOURCES", "SD_SHARE_LLC"));
}

#[test]
fn flag_lines_end_in_a_blank_as_in_the_kernel() {
    let topology = build(-1, RelaxSemantics::After).unwrap();
    let text = render_domains(&topology, 0, LINUX_6_8);
    assert_eq!(text.lines().filter(|line| line.ends_with(' ')).count(), 5);
    assert!(text.ends_with(" \n"));
}

#[test]
fn schedstat_masks() {
    let topology = build(-1, RelaxSemantics::After).unwrap();
    assert_eq!(
        render_schedstat_masks(&topology, 0),
        "domain0 0000,01000001\ndomain1 000f,ff000fff\ndomain2 ffff,ffffffff\n"
    );
}

#[test]
fn numactl_shows_the_nodes() {
    let machine = Machine::load("e5-2680v3-2s").unwrap();
    assert_eq!(machine.node_mask(0).to_string(), "0-11,24-35");
    assert_eq!(machine.node_mask(1).to_string(), "12-23,36-47");
    assert_eq!(machine.distances, [[10, 21], [21, 10]]);
}

/// Values that a write to `cpuset.sched_relax_domain_level` takes: the seed's tables end with
/// the first one that is refused.
#[test]
fn every_level_both_ways() {
    for request in -1..=6 {
        assert_eq!(build(request, RelaxSemantics::Before).is_ok(), request < 5, "{request} before");
        assert!(build(request, RelaxSemantics::After).is_ok(), "{request} after");
    }
    assert!(build(7, RelaxSemantics::After).is_err());
}
