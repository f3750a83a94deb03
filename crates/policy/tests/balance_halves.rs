//! The two halves of the search for a source give what the whole gives.

use coreward_policy::MIGRATION_TYPES;
use coreward_policy::layout::{CPU_NEWLY_IDLE, NONE};
use coreward_policy::{Balance, CpuMask, CpuSd, Decision, Domain, Group, System};

fn mask(bits: u64) -> CpuMask {
    let mut mask = CpuMask::default();
    mask.bits[0] = bits;
    mask
}

/// Two CPUs below one domain: CPU 0 is idle, CPU 1 has two tasks.
fn two_cpus() -> System {
    let mut sys = System::default();
    sys.nr_cpus = 2;
    sys.mask_words = 1;
    sys.domain[0] =
        Domain { span: mask(3), weight: 2, imbalance_pct: 117, nr_groups: 2, llc: NONE, ..Domain::default() };
    for cpu in 0..2 {
        let span = mask(1 << cpu);
        let group =
            Group { span, balance_mask: span, weight: 1, cores: 1, capacity: 1024, ..Group::default() };
        sys.group[cpu] = Group { min_capacity: 1024, max_capacity: 1024, ..group };
        sys.cpu_sd[cpu][0] = CpuSd { local_group: cpu as u32, ..CpuSd::default() };
        sys.smt_mask[cpu] = span;
        let rq = &mut sys.cpu[cpu];
        rq.nr_sd = 1;
        rq.asym_sd = NONE;
        (rq.capacity, rq.capacity_orig) = (1024, 1024);
        rq.curr_is_idle = u8::from(cpu == 0);
    }
    sys.cpu[1].nr_running = 2;
    sys.cpu[1].cfs_nr_running = 2;
    sys
}

fn begin() -> Balance {
    let mut env = Balance::default();
    System::default().balance_begin(&mut env, 0, 0, CPU_NEWLY_IDLE, 1_000_000_000);
    env
}

#[test]
fn halves_make_the_whole() {
    let (mut whole, mut halves) = (begin(), begin());
    let (src, d) = two_cpus().sched_balance_find_src(&mut whole);
    assert_eq!(src, Some(1));

    let mut sys = two_cpus();
    let (group, by_groups) = sys.sched_balance_find_src_group(&mut halves);
    assert_eq!(group, Some(1));
    assert_eq!((halves.imbalance, MIGRATION_TYPES[halves.migration_type as usize]), (1, "task"));
    assert_eq!(halves.sds, whole.sds);
    let (cpu, by_queues) = sys.sched_balance_find_src_rq(&halves, 1);
    assert_eq!(cpu, Some(1));
    let scanned = |d: &Decision| d.cpus_scanned;
    // a newly idle CPU asks nobody who is to balance
    assert_eq!(scanned(&by_groups) + scanned(&by_queues), scanned(&d));
}

#[test]
fn nothing_to_pull_is_no_group_and_no_queue() {
    let mut sys = two_cpus();
    sys.cpu[1].cfs_nr_running = 0; // both are of another class
    let mut env = begin();
    assert_eq!(sys.sched_balance_find_src_group(&mut env).0, None);
    assert_eq!(env.imbalance, 0);
    assert_eq!(sys.sched_balance_find_src_rq(&env, 1).0, None);
}
