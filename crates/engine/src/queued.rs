//! How much memory messages have gone through that are queued on sockets.

/// The memory of all messages on sockets, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queued {
    now: u64,
    /// The most since the oldest of them was written.
    most: u64,
    /// What was read since there were the most.
    read: u64,
}

impl Queued {
    /// A channel that held `before` bytes holds `after`.
    pub(crate) fn change(&mut self, before: u64, after: u64) {
        self.now = self.now + after - before;
        self.read += before.saturating_sub(after);
        // the messages that were there then have been read, and new ones may reuse the memory of these
        if self.now >= self.most || self.read >= self.most {
            self.most = self.now;
            self.read = 0;
        }
    }

    /// The most that was queued since a message was written that is read now: so much memory was used in between. Memory that a
    /// read gives back is the first to be used again, so a queue that stays as long as it is uses no more than its length.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::Queued;

    #[test]
    fn the_last_message_of_a_queue_has_seen_all_of_it() {
        let mut q = Queued::default();
        for _ in 0..10 {
            q.change(0, 100);
        }
        for _ in 0..10 {
            assert_eq!(q.most(), 1000);
            q.change(100, 0);
        }
        assert_eq!(q.most(), 0, "all are read");
    }

    #[test]
    fn a_queue_that_stays_short_is_short() {
        let mut q = Queued::default();
        for _ in 0..100 {
            q.change(0, 100);
            q.change(0, 100);
            q.change(200, 0);
        }
        q.change(0, 100);
        assert!(q.most() <= 200, "{q:?}");
    }
}
