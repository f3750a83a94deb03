//! The flags of sched domains, in the kernel's order, with the kernel's properties of each.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

use serde::{Serialize, Serializer};

use super::KernelStyle;

/// A set of `SD_*` flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SdFlags(u32);

macro_rules! flags {
    ($($(#[doc = $doc:literal])+ $name:ident = $bit:literal;)+) => {
        impl SdFlags {
            $($(#[doc = $doc])+ pub const $name: Self = Self(1 << $bit);)+

            /// Name and flag, in the order in which the kernel numbers and prints them.
            const TABLE: &'static [(&'static str, Self)] =
                &[$((concat!("SD_", stringify!($name)), Self::$name),)+];
        }
    };
}

// Order and properties: include/linux/sched/sd_flags.h of Linux 6.12.
flags! {
    /// Balance when a CPU is about to go idle.
    BALANCE_NEWIDLE = 0;
    /// Balance on exec.
    BALANCE_EXEC = 1;
    /// Balance on fork.
    BALANCE_FORK = 2;
    /// Balance on wakeup; no mainline domain has it since 5.7.
    BALANCE_WAKE = 3;
    /// A wakeup may pull the task to the waking CPU.
    WAKE_AFFINE = 4;
    /// CPUs of the domain differ in capacity.
    ASYM_CPUCAPACITY = 5;
    /// The domain holds every capacity that the machine has.
    ASYM_CPUCAPACITY_FULL = 6;
    /// CPUs of the domain share capacity: SMT.
    SHARE_CPUCAPACITY = 7;
    /// CPUs of the domain share a cluster: a mid-level cache or the tags of the last one.
    CLUSTER = 8;
    /// CPUs of the domain share the last-level cache (`SD_SHARE_PKG_RESOURCES` before 6.10).
    SHARE_LLC = 9;
    /// One balancer at a time in the machine.
    SERIALIZE = 10;
    /// Busy tasks go to preferred CPUs first.
    ASYM_PACKING = 11;
    /// Spread tasks over the groups of the parent.
    PREFER_SIBLING = 12;
    /// Groups of the domain overlap; not in 7.3, where `SD_NUMA` means it too.
    OVERLAP = 13;
    /// The domain crosses NUMA nodes.
    NUMA = 14;
}

impl SdFlags {
    /// Flags that mean nothing in a domain of one group: all but `SD_WAKE_AFFINE`.
    pub(super) const NEEDS_GROUPS: Self = Self(((1 << 15) - 1) & !Self::WAKE_AFFINE.0);

    /// No flag.
    pub const fn empty() -> Self {
        Self(0)
    }

    /// Whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of these flags are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether any of these flags is set.
    pub const fn intersects(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }

    /// The flags as a bitmap; bit numbers are those of Linux 6.12.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The names of the flags as a kernel prints them.
    pub fn names(self, style: KernelStyle) -> impl Iterator<Item = &'static str> {
        let set = Self::TABLE.iter().filter(move |(_, flag)| self.contains(*flag));
        set.map(move |&(name, flag)| match flag {
            Self::SHARE_LLC if !style.has_share_llc() => "SD_SHARE_PKG_RESOURCES",
            _ => name,
        })
    }
}

impl BitOr for SdFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for SdFlags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for SdFlags {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for SdFlags {
    type Output = Self;
    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl fmt::Display for SdFlags {
    /// The names as Linux 6.12 has them, separated by blanks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.names(KernelStyle::default()).collect();
        f.write_str(&names.join(" "))
    }
}

impl Serialize for SdFlags {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names(KernelStyle::default()))
    }
}
