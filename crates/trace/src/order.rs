//! Events in the order of their times.
//!
//! Recorders keep a buffer for each CPU and merge them, so neighbouring events may stand the wrong way round.

use std::collections::VecDeque;

use crate::event::{Event, What};

/// How many events are held back for one that is late.
const WINDOW: usize = 4096;

/// Puts events into order.
#[derive(Default)]
pub struct Reorder {
    /// In order. Nearly all events belong to the end.
    waiting: VecDeque<Event>,
    newest: u64,
    released: u64,
    /// How many events came after a later one.
    pub late: u64,
}

impl Reorder {
    /// Takes an event, and gives back one that none can precede any more. An event without a time of its own, that
    /// events were lost, keeps its place.
    ///
    /// # Errors
    /// How much too late it comes, in ns, if a later one has been given back already.
    pub fn push(&mut self, mut event: Event) -> Result<Option<Event>, u64> {
        if matches!(event.what, What::Lost { .. }) {
            event.at = self.newest;
        }
        if event.at < self.released {
            return Err(self.released - event.at);
        }
        if event.at >= self.newest {
            self.newest = event.at;
            self.waiting.push_back(event);
        } else {
            self.late += 1;
            // behind those of the same time
            let place = self.waiting.partition_point(|other| other.at <= event.at);
            self.waiting.insert(place, event);
        }
        Ok(if self.waiting.len() > WINDOW { self.pop() } else { None })
    }

    /// The earliest event that is left.
    pub fn pop(&mut self) -> Option<Event> {
        let event = self.waiting.pop_front()?;
        self.released = event.at;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Comm;
    use proptest::prelude::*;

    fn event(at: u64, cpu: u32) -> Event {
        let comm = Comm::default();
        Event { at, cpu, pid: 0, tgid: None, comm, in_interrupt: None, what: What::Other }
    }

    fn ordered(events: &[Event]) -> (Vec<Event>, u64) {
        let mut order = Reorder::default();
        let mut out: Vec<Event> = events.iter().filter_map(|event| order.push(*event).unwrap()).collect();
        out.extend(std::iter::from_fn(|| order.pop()));
        (out, order.late)
    }

    proptest! {
        #[test]
        fn events_come_out_in_order(times in prop::collection::vec(0u64..1000, 0..200)) {
            let events: Vec<_> = times.iter().enumerate().map(|(i, at)| event(*at, i as u32)).collect();
            let mut sorted = events.clone();
            // those of the same time stay as they were
            sorted.sort_by_key(|event| event.at);
            prop_assert_eq!(ordered(&events).0, sorted);
        }
    }

    #[test]
    fn a_late_event_is_counted_and_one_that_is_too_late_refused() {
        assert_eq!(ordered(&[event(5, 0), event(3, 1), event(7, 2)]).1, 1);
        let mut order = Reorder::default();
        for at in 0..=WINDOW as u64 {
            order.push(event(1000 + at, 0)).unwrap();
        }
        assert_eq!(order.push(event(900, 0)), Err(100));
    }
}
