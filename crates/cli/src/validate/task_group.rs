//! In how many task groups this process is.

use std::fs;

/// The depth of the task group of this process. In the root group, a session has a group of its own if the kernel
/// makes one for each (`sched_autogroup_enabled`).
pub(crate) fn depth() -> u32 {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cgroups = cgroup_depth(&read("/proc/self/cgroup"));
    let autogroup = read("/proc/sys/kernel/sched_autogroup_enabled").trim() == "1";
    if cgroups == 0 && autogroup { 1 } else { cgroups }
}

/// The depth of the group of the `cpu` controller, or of the unified hierarchy if no other one has it.
fn cgroup_depth(text: &str) -> u32 {
    let groups = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let of_cpu = groups().find(|(controllers, _)| controllers.split(',').any(|name| name == "cpu"));
    let group = of_cpu.or_else(|| groups().find(|(controllers, _)| controllers.is_empty()));
    group.map_or(0, |(_, path)| path.split('/').filter(|name| !name.is_empty()).count() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_cpu_controller_counts() {
        assert_eq!(cgroup_depth("0::/user.slice/user-0.slice/session-1.scope\n"), 3);
        assert_eq!(cgroup_depth("4:memory:/a/b\n1:cpu,cpuacct:/a\n0::/x/y/z\n"), 1);
        assert_eq!(cgroup_depth("4:memory:/a/b\n1:cpu:/\n0::/\n"), 0);
        assert_eq!(cgroup_depth(""), 0);
    }
}
