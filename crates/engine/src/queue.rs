//! The event queue: the time of the next event of each slot (a CPU, or the timers),
//! and the earliest of all.
//!
//! A CPU has at most one pending event of each kind and moves its events often, so a
//! tournament tree over the slots is faster than a heap: changing a slot's time is a
//! walk up the tree, and no stale event is left behind. With four children to a node
//! the walk takes half as many steps as with two. Ties go to the lower slot, so
//! the order of events is a function of their times alone.

/// Low bits of a key that hold the slot: up to 2048 slots, 53 bits of time (104 days in ns).
const SLOT_BITS: u32 = 11;
/// No event pending.
pub const NEVER: u64 = u64::MAX >> SLOT_BITS;

/// The next event of every slot, and which of them is next.
pub struct EventQueue {
    /// A complete tree in one array, from the root on. Each of a node's four keys is the earliest of a child's, and those of
    /// the last level are the slots'.
    nodes: Vec<[u64; 4]>,
    /// The node of the first slot.
    leaves: usize,
    /// The earliest key.
    first: u64,
}

impl EventQueue {
    /// A queue of that many slots, at most 2048, with no event pending.
    pub fn new(slots: usize) -> Self {
        assert!(slots <= 1 << SLOT_BITS, "{slots} slots");
        let (mut leaves, mut width) = (0, 1);
        while 4 * width < slots {
            leaves += width;
            width *= 4;
        }
        EventQueue { nodes: vec![[u64::MAX; 4]; leaves + width], leaves, first: u64::MAX }
    }

    /// Sets the time of the slot's next event; [`NEVER`] for none.
    #[inline]
    pub fn set(&mut self, slot: usize, time: u64) {
        debug_assert!(time <= NEVER);
        let mut key = time << SLOT_BITS | slot as u64;
        let (mut node, mut child) = (self.leaves + slot / 4, slot % 4);
        loop {
            let keys = &mut self.nodes[node];
            keys[child] = key;
            key = (keys[0].min(keys[1])).min(keys[2].min(keys[3]));
            if node == 0 {
                break;
            }
            (node, child) = ((node - 1) / 4, (node - 1) % 4);
        }
        self.first = key;
    }

    /// The earliest event: its time ([`NEVER`] if none is pending) and its slot.
    #[inline]
    pub fn next(&self) -> (u64, usize) {
        (self.first >> SLOT_BITS, (self.first & ((1 << SLOT_BITS) - 1)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_queue_has_no_event() {
        assert_eq!(EventQueue::new(5).next().0, NEVER);
    }

    #[test]
    fn ties_go_to_the_lower_slot() {
        let mut q = EventQueue::new(8);
        q.set(6, 10);
        q.set(2, 10);
        q.set(7, 11);
        assert_eq!(q.next(), (10, 2));
        q.set(2, NEVER);
        assert_eq!(q.next(), (10, 6));
    }

    proptest! {
        #[test]
        fn next_is_the_minimum(slots in 1usize..70, sets in prop::collection::vec((0usize..70, 0u64..50), 1..200)) {
            let mut q = EventQueue::new(slots);
            let mut times = vec![NEVER; slots];
            for (slot, time) in sets {
                let slot = slot % slots;
                let time = if time == 49 { NEVER } else { time };
                q.set(slot, time);
                times[slot] = time;
                let (t, s) = q.next();
                let min = *times.iter().min().unwrap();
                prop_assert_eq!(t, min);
                if min != NEVER {
                    prop_assert_eq!(s, times.iter().position(|x| *x == min).unwrap());
                }
            }
        }
    }
}
