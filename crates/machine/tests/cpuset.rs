//! CPU sets: lists, masks, order.

use coreward_machine::{CpuSet, MAX_CPUS};
use proptest::prelude::*;

fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

#[test]
fn lists() {
    assert_eq!(set("0-11,24-35\n").to_string(), "0-11,24-35");
    assert_eq!(set("3,1,2,64").to_string(), "1-3,64");
    assert_eq!(set("").to_string(), "");
    assert_eq!(set("1023").last(), Some(1023));
    assert_eq!(set("5,63-64").iter().collect::<Vec<_>>(), [5, 63, 64]);
}

#[test]
fn wrong_lists() {
    let message = |text| CpuSet::parse_list(text).unwrap_err();
    assert_eq!(message("0-"), "`0-` is not a CPU number or a range like 0-3");
    assert_eq!(message("1,,2"), "`` is not a CPU number or a range like 0-3");
    assert_eq!(message("+1"), "`+1` is not a CPU number or a range like 0-3");
    assert_eq!(message("3-1"), "CPU range `3-1` runs backwards");
    assert_eq!(message("0-1024"), "CPU 1024 is above the limit of 1023");
}

#[test]
fn masks_are_as_wide_as_the_machine() {
    assert_eq!(set("0,24").to_mask(48), "0000,01000001");
    assert_eq!(set("0-11,24-35").to_mask(48), "000f,ff000fff");
    assert_eq!(set("0-2").to_mask(3), "7");
    assert_eq!(set("0,32").to_mask(33), "1,00000001");
    assert_eq!(set("31").to_mask(64), "00000000,80000000");
}

#[test]
fn wrong_masks() {
    let message = |text| CpuSet::parse_mask(text).unwrap_err();
    assert_eq!(message("0x1g"), "`0x1g` is not a group of up to 8 hexadecimal digits");
    assert_eq!(message("123456789"), "`123456789` is not a group of up to 8 hexadecimal digits");
    assert_eq!(message(&format!("1{}", ",0".repeat(32))), "CPU mask has a CPU above 1023");
}

#[test]
fn wraps_round_from_a_cpu() {
    let cpus = set("1,3,5");
    assert_eq!(cpus.iter_wrap(3).collect::<Vec<_>>(), [3, 5, 1]);
    assert_eq!(cpus.iter_wrap(4).collect::<Vec<_>>(), [5, 1, 3]);
    assert_eq!(cpus.iter_wrap(9).collect::<Vec<_>>(), [1, 3, 5]);
}

proptest! {
    #[test]
    fn print_and_read_back(cpus in proptest::collection::btree_set(0..MAX_CPUS, 0..80)) {
        let set: CpuSet = cpus.iter().copied().collect();
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), cpus.iter().copied().collect::<Vec<_>>());
        prop_assert_eq!(set.len(), cpus.len());
        prop_assert_eq!(set.first(), cpus.first().copied());
        prop_assert_eq!(set.last(), cpus.last().copied());
        prop_assert_eq!(CpuSet::parse_list(&set.to_string()).unwrap(), set);
        prop_assert_eq!(CpuSet::parse_mask(&set.to_mask(MAX_CPUS)).unwrap(), set);
    }

    #[test]
    fn never_panics(text in ".{0,40}") {
        let _ = CpuSet::parse_list(&text);
        let _ = CpuSet::parse_mask(&text);
    }
}
