//! Does this kernel have what is needed?

use std::path::Path;

use anyhow::{Result, bail};

/// # Errors
/// The kernel has no BTF, or the user is not root.
pub(crate) fn has_bpf() -> Result<()> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        bail!(
            "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), without which BPF programs do not know its structures"
        );
    }
    // SAFETY: it has no preconditions
    if unsafe { libc::geteuid() } != 0 {
        bail!("only root may load BPF programs: run this as root");
    }
    Ok(())
}

/// # Errors
/// The kernel has no sched_ext.
pub(crate) fn has_sched_ext() -> Result<()> {
    if !Path::new("/sys/kernel/sched_ext").exists() {
        bail!("this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT): Linux 6.12 and later can have it");
    }
    Ok(())
}
