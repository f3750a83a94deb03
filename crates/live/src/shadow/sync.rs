//! Which functions of the kernel wake with `WF_SYNC`, and where they are.

use std::fs;

/// They end in the same wait queue code, which passes the flag on (kernel/sched/wait.c).
const FUNCTIONS: [&str; 3] = ["__wake_up_sync_key", "__wake_up_sync", "__wake_up_locked_sync_key"];
/// Bits of an address that the programs compare (`ADDRESS_MASK` of `bpf/shadow/shadow.bpf.c`).
const ADDRESS_MASK: u64 = (1 << 48) - 1;

/// Start and size of each, as far as the kernel shows them.
pub(super) fn ranges() -> Vec<(u64, u64)> {
    fs::read_to_string("/proc/kallsyms").map(|text| parse(&text)).unwrap_or_default()
}

fn parse(text: &str) -> Vec<(u64, u64)> {
    let mut addresses = Vec::new();
    let mut starts = Vec::new();
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(address), Some(_kind), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        if address == 0 {
            continue;
        }
        addresses.push(address);
        // modules have functions of their own
        if FUNCTIONS.contains(&name) && fields.next().is_none() {
            starts.push(address);
        }
    }
    addresses.sort_unstable();
    let range = |start: u64| {
        let next = addresses[addresses.partition_point(|a| *a <= start)..].first()?;
        Some((start & ADDRESS_MASK, next - start))
    };
    starts.into_iter().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_ends_where_the_next_begins() {
        let text = "ffffffff813d49f0 T __wake_up_sync\n\
                    ffffffff813d4970 T __wake_up_sync_key\n\
                    ffffffff813d49e0 T __pfx___wake_up_sync\n\
                    ffffffff813d4a50 t other\n\
                    ffffffffc0000010 t __wake_up_sync\t[module]\n";
        assert_eq!(parse(text), [(0xffff_813d_49f0, 0x60), (0xffff_813d_4970, 0x70)]);
    }

    #[test]
    fn hidden_addresses_are_none() {
        assert!(parse("0000000000000000 T __wake_up_sync_key\n0000000000000000 T other\n").is_empty());
    }
}
