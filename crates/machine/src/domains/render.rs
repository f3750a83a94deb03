//! Domains printed as the kernel prints them.

use std::fmt::Write;

use super::{KernelStyle, SdFlags, Topology};

/// Prints what `grep . cpuN/*/{name,level,flags,groups_flags}` prints in
/// `/sys/kernel/debug/sched/domains`. Kernels before 6.10 have no `level` file. As there, a
/// blank follows every flag, and the empty `groups_flags` of a lowest domain are not shown.
pub fn render_domains(topology: &Topology, cpu: usize, style: KernelStyle) -> String {
    let domains: Vec<_> = topology.domains_of(cpu).collect();
    let flags = |flags: SdFlags| flags.names(style).map(|name| format!("{name} ")).collect();
    let mut text = String::new();
    let mut file = |name: &str, contents: Vec<String>| {
        for (index, content) in contents.iter().enumerate().filter(|(_, c)| !c.is_empty()) {
            let _ = writeln!(text, "cpu{cpu}/domain{index}/{name}:{content}");
        }
    };
    file("name", domains.iter().map(|domain| domain.name.to_owned()).collect());
    if style.shows_level() {
        file("level", domains.iter().map(|domain| domain.level.to_string()).collect());
    }
    file("flags", domains.iter().map(|domain| flags(domain.flags)).collect());
    let local = |domain| topology.groups_from(domain, cpu).next();
    let local_flags = |domain| local(domain).map_or(String::new(), |group| flags(group.flags));
    file("groups_flags", domains.iter().map(|domain| local_flags(domain)).collect());
    text
}

/// Prints the masks of a CPU's domains as `/proc/schedstat` does (`domain0 0000,01000001`).
pub fn render_schedstat_masks(topology: &Topology, cpu: usize) -> String {
    let nr_cpus = topology.cpu_domains.len();
    let line = |(index, domain): (usize, &super::Domain)| {
        format!("domain{index} {}\n", domain.span.to_mask(nr_cpus))
    };
    topology.domains_of(cpu).enumerate().map(line).collect()
}
