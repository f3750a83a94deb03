//! Checks that this kernel has what is needed.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// The capabilities that loading the scheduler and tracing programs takes, by the numbers of capability(7).
const CAPABILITIES: [(&str, u32); 2] = [("CAP_PERFMON", 38), ("CAP_BPF", 39)];

/// # Errors
/// The kernel has no BTF, or the user may not load programs.
pub(crate) fn has_bpf() -> Result<()> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        bail!(
            "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), without which BPF programs do not know its structures"
        );
    }
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let held = effective(&status).context("/proc/self/status tells no capabilities")?;
    let missing: Vec<_> =
        CAPABILITIES.iter().filter(|(_, bit)| held >> bit & 1 == 0).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        bail!("only root may load BPF programs: run this as root ({} missing)", missing.join(", "));
    }
    Ok(())
}

/// The effective capabilities, from a process's status.
fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// The name of the sched_ext scheduler that runs, if one does.
pub(crate) fn scheduler() -> Option<String> {
    std::fs::read_to_string("/sys/kernel/sched_ext/root/ops").ok().map(|name| name.trim().to_owned())
}

/// # Errors
/// The kernel has no sched_ext, or does not show its configuration, or another scheduler runs.
pub(crate) fn has_sched_ext() -> Result<()> {
    let sched_ext = Path::new("/sys/kernel/sched_ext");
    if !sched_ext.exists() {
        bail!("this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT): Linux 6.12 and later can have it");
    }
    let state = std::fs::read_to_string(sched_ext.join("state")).context("/sys/kernel/sched_ext/state")?;
    if state.trim() != "disabled" {
        // it may be gone by now
        let name = scheduler().unwrap_or_default();
        bail!("the sched_ext scheduler {name} runs already: end it first");
    }
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").context("the kernel's release")?;
    let config = format!("/boot/config-{}", release.trim());
    if !Path::new(&config).exists() && !Path::new("/proc/config.gz").exists() {
        bail!("how this kernel was configured is neither in {config} nor in /proc/config.gz");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_the_effective_ones() {
        let status = "Name:\tx\nCapPrm:\t0000000000000001\nCapEff:\t000000c000200000\nCapBnd:\t0\n";
        let held = effective(status).unwrap();
        assert!(CAPABILITIES.iter().all(|(_, bit)| held >> bit & 1 == 1), "{held:x}");
        assert_eq!(effective("Name:\tx\n"), None);
    }
}
