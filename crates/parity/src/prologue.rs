//! The frames before the first decision: host, CPUs, domains, in this order. Domains come CPU by CPU, from the lowest
//! up.

use coreward_machine::CpuSet;

use crate::error::Wrong;
use crate::format::{DomainHead, Field, GroupHead, MAX_GROUPS, MAX_LEVELS, StaticCpu};
use crate::host::Host;
use crate::record::{Parts, RecordedCpu, RecordedDomain, RecordedGroup, RecordedMachine, put_set};

/// The allowed range of a capacity: the kernel's scale.
const CAPACITY: std::ops::RangeInclusive<u32> = 1..=1024;

impl RecordedMachine {
    /// A machine of which only the host frame has been read.
    pub(crate) fn new(host: Host) -> RecordedMachine {
        RecordedMachine { domains: vec![Vec::new(); host.nr_cpus], cpus: Vec::new(), host }
    }

    /// Adds the contents of a CPU frame.
    pub(crate) fn add_cpu(&mut self, payload: &[u8]) -> Result<(), Wrong> {
        let mut parts = Parts::new(payload, self.host.nr_cpus);
        let head: StaticCpu = parts.take()?;
        let core = parts.set("the core")?;
        parts.end()?;
        let expected = self.cpus.len();
        if expected == self.host.nr_cpus {
            return Err(format!("it is of CPU {}, but all {expected} CPUs are known", head.cpu));
        }
        if head.cpu as usize != expected {
            return Err(format!("it is of CPU {}, the next is CPU {expected}", head.cpu));
        }
        if !CAPACITY.contains(&head.capacity_orig) {
            return Err(format!("the capacity is {}, allowed are 1 to 1024", head.capacity_orig));
        }
        if !core.contains(expected) {
            return Err(format!("CPU {expected} is not in its own core"));
        }
        self.cpus.push(RecordedCpu { head, core });
        Ok(())
    }

    /// Adds the contents of a domain frame.
    pub(crate) fn add_domain(&mut self, payload: &[u8]) -> Result<(), Wrong> {
        self.all_cpus_known()?;
        let mut parts = Parts::new(payload, self.host.nr_cpus);
        let head: DomainHead = parts.take()?;
        if head.nr_groups == 0 || head.nr_groups as usize > MAX_GROUPS {
            return Err(format!("it has {} groups, allowed are 1 to {MAX_GROUPS}", head.nr_groups));
        }
        let cpu = head.cpu as usize;
        let domains = self.domains.get(cpu).ok_or_else(|| {
            format!("it is of CPU {}, allowed are 0 to {}", head.cpu, self.host.nr_cpus - 1)
        })?;
        if self.domains[cpu + 1..].iter().any(|later| !later.is_empty()) {
            return Err(format!("it is of CPU {cpu}, but a domain of a later CPU stands before it"));
        }
        if head.index as usize != domains.len() || domains.len() == MAX_LEVELS {
            let expected = domains.len();
            return Err(format!("it is domain {} of CPU {cpu}, the next is {expected}", head.index));
        }
        let span = parts.set("the span")?;
        let groups = (0..head.nr_groups).map(|_| take_group(&mut parts)).collect::<Result<Vec<_>, _>>()?;
        parts.end()?;
        let domain = RecordedDomain { head, span, groups };
        check_spans(&domain, domains.last())?;
        self.domains[cpu].push(domain);
        Ok(())
    }

    fn all_cpus_known(&self) -> Result<(), Wrong> {
        match self.cpus.len() {
            known if known == self.host.nr_cpus => Ok(()),
            known => Err(format!("the frame of CPU {known} is missing before it")),
        }
    }

    /// Is everything there that is needed to read decisions? Domains contain only CPUs that have domains.
    pub(crate) fn check_complete(&self) -> Result<(), Wrong> {
        self.all_cpus_known()?;
        for cpu in self.domains.iter().flatten().flat_map(|domain| domain.span.iter()) {
            if self.domains[cpu].is_empty() {
                return Err(format!("CPU {cpu} is in domains of others, but its domain frames are missing"));
            }
        }
        Ok(())
    }
}

fn take_group(parts: &mut Parts<'_>) -> Result<RecordedGroup, Wrong> {
    let head: GroupHead = parts.take()?;
    let span = parts.set("a group")?;
    let balance_mask = parts.set("a balance mask")?;
    if head.weight as usize != span.len() || span.is_empty() {
        return Err(format!("the group of CPUs {span} has weight {}", head.weight));
    }
    if !balance_mask.is_subset(&span) || balance_mask.is_empty() {
        return Err(format!("the balance mask {balance_mask} is not part of the group of CPUs {span}"));
    }
    Ok(RecordedGroup { head, span, balance_mask })
}

/// Every domain contains its CPU and the domain below. Its groups cover it, and the first one is the CPU's own.
fn check_spans(domain: &RecordedDomain, below: Option<&RecordedDomain>) -> Result<(), Wrong> {
    let cpu = domain.head.cpu as usize;
    let span = &domain.span;
    if !domain.groups[0].span.contains(cpu) {
        return Err(format!("the first group, of CPUs {}, is not that of CPU {cpu}", domain.groups[0].span));
    }
    let covered = domain.groups.iter().fold(CpuSet::new(), |set, group| set.union(&group.span));
    if covered != *span {
        return Err(format!("the groups cover CPUs {covered}, the domain's span is {span}"));
    }
    match below {
        Some(below) if !below.span.is_subset(span) || below.span == *span => {
            Err(format!("the span {span} is not around that of the domain below, {}", below.span))
        }
        _ => Ok(()),
    }
}

impl RecordedCpu {
    /// The payload of its frame.
    pub fn encode(&self, nr_cpus: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.head.put(&mut bytes);
        put_set(&mut bytes, &self.core, nr_cpus);
        bytes
    }
}

impl RecordedDomain {
    /// The payload of its frame; the number of groups in the head is set to what there is.
    pub fn encode(&self, nr_cpus: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        DomainHead { nr_groups: self.groups.len() as u32, ..self.head }.put(&mut bytes);
        put_set(&mut bytes, &self.span, nr_cpus);
        for group in &self.groups {
            group.head.put(&mut bytes);
            put_set(&mut bytes, &group.span, nr_cpus);
            put_set(&mut bytes, &group.balance_mask, nr_cpus);
        }
        bytes
    }
}
