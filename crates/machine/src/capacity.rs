//! How fast the CPUs of a machine are relative to each other, where it reports no capacities.

use std::collections::BTreeMap;

use crate::cpuset::CpuSet;
use crate::machine::CAPACITY_SCALE;

/// Maximum frequencies that differ by less than this part are of equal CPUs: turbo bins and preferred cores.
/// hwloc tolerates as much (`HWLOC_CPUKINDS_MAXFREQ`).
const TOLERATED_PCT: u64 = 10;

/// What a description says about the speed of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Speed {
    /// The kind of core on a hybrid processor.
    pub(crate) core: Option<Core>,
    /// Maximum frequency in kHz.
    pub(crate) max_khz: Option<u64>,
}

/// Kinds of cores of hybrid x86 processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Core {
    IntelPerformance,
    IntelEfficient,
    IntelLowPower,
    AmdPerformance,
    AmdEfficient,
}

impl Core {
    /// Its name in `CoreType` of hwloc.
    pub(crate) fn named(name: &str) -> Option<Core> {
        match name {
            "IntelCore" => Some(Core::IntelPerformance),
            "IntelAtom" => Some(Core::IntelEfficient),
            "IntelLowPower" => Some(Core::IntelLowPower),
            "AMDPerformance" => Some(Core::AmdPerformance),
            "AMDEfficiency" => Some(Core::AmdEfficient),
            _ => None,
        }
    }

    /// Frequency of a unit of performance, in kHz: by these units the kernel scales the capacities of Intel's
    /// cores (drivers/cpufreq/intel_pstate.c: 100 MHz, and HYBRID_SCALING_FACTOR_ADL for P-cores). AMD's cores
    /// of both kinds do the same in a cycle.
    fn unit_khz(self) -> u64 {
        match self {
            Core::IntelPerformance => 78_741,
            _ => 100_000,
        }
    }

    /// Maximum frequency where the description has none, in kHz.
    /// assumption: those of Core i9-12900K, Core Ultra 7 165H (its low-power cores) and Ryzen AI 9 HX 370.
    fn usual_khz(self) -> u64 {
        match self {
            Core::IntelPerformance => 5_200_000,
            Core::IntelEfficient => 3_900_000,
            Core::IntelLowPower => 2_500_000,
            Core::AmdPerformance => 5_100_000,
            Core::AmdEfficient => 3_300_000,
        }
    }
}

/// Capacities of CPUs whose speeds are known, and how they were found; nothing if the CPUs are equal
/// or nothing tells them apart.
pub(crate) fn infer(speeds: &BTreeMap<usize, Speed>) -> Option<(BTreeMap<usize, u32>, String)> {
    let clocked = speeds.values().all(|speed| speed.max_khz.is_some());
    let first = speeds.values().next().and_then(|speed| speed.core);
    let hybrid =
        speeds.values().all(|speed| speed.core.is_some()) && speeds.values().any(|speed| speed.core != first);
    // in thousandths of a unit
    let performance = |speed: &Speed| match speed.core.filter(|_| hybrid) {
        Some(core) => {
            let khz = speed.max_khz.filter(|_| clocked).unwrap_or(core.usual_khz());
            khz.saturating_mul(1000) / core.unit_khz()
        }
        None => speed.max_khz.unwrap_or_default(),
    };
    let how = match (hybrid, clocked) {
        (true, true) => "from the kinds of cores and their maximum frequencies, as by intel_pstate",
        (true, false) => "from the kinds of cores, with the maximum frequencies of common models",
        (false, true) => "from the maximum frequencies",
        (false, false) => return None,
    };
    let most = speeds.values().map(performance).max().filter(|most| *most > 0)?;
    let least = speeds.values().map(performance).min().unwrap_or(most);
    if least.saturating_mul(100 + TOLERATED_PCT) > most.saturating_mul(100) {
        return None;
    }
    let scaled = |speed: &Speed| {
        let own = performance(speed);
        if own.saturating_mul(100 + TOLERATED_PCT) > most.saturating_mul(100) {
            return CAPACITY_SCALE;
        }
        let capacity = u128::from(own) * u128::from(CAPACITY_SCALE) / u128::from(most);
        (capacity as u32).max(1)
    };
    let capacities: BTreeMap<usize, u32> = speeds.iter().map(|(cpu, speed)| (*cpu, scaled(speed))).collect();
    let note = format!("capacities are inferred {how}: {}", list(&capacities));
    Some((capacities, note))
}

/// Capacities with their CPUs, as `1024 of CPUs 0-3, 605 of CPUs 4-7`.
fn list(capacities: &BTreeMap<usize, u32>) -> String {
    let mut sets: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for (cpu, capacity) in capacities {
        sets.entry(*capacity).or_default().insert(*cpu);
    }
    let parts = sets.iter().rev().map(|(capacity, cpus)| format!("{capacity} of CPUs {cpus}"));
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speeds(of: &[(Option<Core>, Option<u64>)]) -> BTreeMap<usize, Speed> {
        of.iter().map(|(core, max_khz)| Speed { core: *core, max_khz: *max_khz }).enumerate().collect()
    }

    fn capacities(of: &[(Option<Core>, Option<u64>)]) -> Option<Vec<u32>> {
        infer(&speeds(of)).map(|(capacities, _)| capacities.into_values().collect())
    }

    #[test]
    fn hybrid_cores_are_scaled_as_intel_pstate_does() {
        let (p, e) = (Some(Core::IntelPerformance), Some(Core::IntelEfficient));
        // 66.04 against 39 units of performance
        assert_eq!(capacities(&[(p, Some(5_200_000)), (e, Some(3_900_000))]), Some(vec![1024, 604]));
        assert_eq!(capacities(&[(p, None), (e, None)]), Some(vec![1024, 604]));
        assert_eq!(capacities(&[(p, Some(4_000_000)), (p, Some(4_100_000))]), None);
        let low = Core::named("IntelLowPower");
        assert_eq!(capacities(&[(p, None), (e, None), (low, None)]), Some(vec![1024, 604, 387]));
        let [fast, dense] = ["AMDPerformance", "AMDEfficiency"].map(Core::named);
        assert_eq!(capacities(&[(fast, None), (dense, None)]), Some(vec![1024, 662]));
    }

    #[test]
    fn frequencies_count_if_they_differ_by_more_than_turbo_bins() {
        assert_eq!(capacities(&[(None, Some(2_000_000)), (None, Some(1_000_000))]), Some(vec![1024, 512]));
        assert_eq!(capacities(&[(None, Some(5_400_000)), (None, Some(5_200_000))]), None);
        assert_eq!(capacities(&[(None, Some(2_000_000)), (None, None)]), None);
        assert_eq!(capacities(&[]), None);
    }

    #[test]
    fn a_note_lists_the_cpus() {
        let (_, note) = infer(&speeds(&[(None, Some(8)), (None, Some(8)), (None, Some(4))])).unwrap();
        assert_eq!(
            note,
            "capacities are inferred from the maximum frequencies: 1024 of CPUs 0-1, 512 of CPUs 2"
        );
    }
}
