//! The machine that the programs run on, with the kernel's CPU numbers.

use anyhow::{Context, Result};
use coreward_machine::{Cpu, CpuSet, DomainOptions, Machine, Partition, PartitionError, Topology};

/// A machine, some of whose CPUs may be offline. sysfs does not show where those are in the
/// topology, and the kernel's own domains leave them out.
#[derive(Clone)]
pub(crate) struct LiveMachine {
    pub(crate) machine: Machine,
    pub(crate) online: CpuSet,
}

impl LiveMachine {
    /// This machine, as it is now.
    ///
    /// # Errors
    /// sysfs does not describe it.
    pub(crate) fn load() -> Result<Self> {
        const ONLINE: &str = "/sys/devices/system/cpu/online";
        let list = std::fs::read_to_string(ONLINE).context(ONLINE)?;
        let online = CpuSet::parse_list(list.trim()).map_err(anyhow::Error::msg).context(ONLINE)?;
        Ok(Self { machine: numbered(Machine::load("sysfs")?, &online), online })
    }

    /// Its sched domains; those of the online CPUs are the same as the kernel's.
    ///
    /// # Errors
    /// The kernel refuses the `relax_domain_level`.
    pub(crate) fn topology(&self, options: &DomainOptions) -> Result<Topology, PartitionError> {
        let online = Partition { cpus: self.online, relax_domain_level: None };
        Topology::partitioned(&self.machine, options, &[online])
    }
}

/// Gives the CPUs of `machine`, which are the online ones in order, their own numbers. Each offline
/// CPU between them is a core of its own beside the first one.
fn numbered(mut machine: Machine, online: &CpuSet) -> Machine {
    let mut places = std::mem::take(&mut machine.cpus).into_iter();
    let mut core = places.as_slice().iter().map(|cpu| cpu.core + 1).max().unwrap_or(0);
    let beside = places.as_slice().first().copied();
    for number in 0..online.last().map_or(0, |last| last + 1) {
        let place = if online.contains(number) { places.next() } else { None };
        machine.cpus.extend(place.or_else(|| {
            core += 1;
            beside.map(|cpu| Cpu { core: core - 1, cluster: None, ..cpu })
        }));
    }
    machine
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_offline(machine: &str, online: &str) -> LiveMachine {
        let (machine, online) = (Machine::load(machine).unwrap(), CpuSet::parse_list(online).unwrap());
        assert_eq!(machine.nr_cpus(), online.len());
        LiveMachine { machine: numbered(machine, &online), online }
    }

    fn domains(live: &LiveMachine, cpu: usize) -> Vec<String> {
        let topology = live.topology(&DomainOptions::default()).unwrap();
        topology.domains_of(cpu).map(|domain| format!("{} {}", domain.name, domain.span)).collect()
    }

    #[test]
    fn without_offline_cpus_it_is_the_machine() {
        let live = with_offline("2n2l2c2t", "0-15");
        let machine = Machine::load("2n2l2c2t").unwrap();
        assert_eq!(live.machine, machine);
        let topology = live.topology(&DomainOptions::default()).unwrap();
        assert_eq!(topology, Topology::build(&machine, &DomainOptions::default()).unwrap());
    }

    #[test]
    fn offline_cpus_are_in_no_domain_of_the_others() {
        // 1n1l2c2t: cores are 0,2 and 1,3; here CPUs 1 and 4 are offline, and 5 is the last
        let live = with_offline("1n1l2c2t", "0,2-3,5");
        assert_eq!(live.machine.nr_cpus(), 6);
        assert_eq!(domains(&live, 0), ["SMT 0,3", "MC 0,2-3,5"]);
        assert_eq!(domains(&live, 5), ["SMT 2,5", "MC 0,2-3,5"]);
        let cores: Vec<_> = live.machine.cpus.iter().map(|cpu| cpu.core).collect();
        assert_eq!(cores, [0, 2, 1, 0, 3, 1], "cores of their own");
    }
}
