//! The kernel's ring buffer: pages of events, each with the time since the one before.
//!
//! A page has the time of its beginning, how many of its bytes are in use, and events. The lowest five bits of an event's
//! first word are its length in words, or its kind; the others are the time since the event before. `header_page` says
//! where these parts are; `header_event` says the kinds, which have not changed since 2.6.32.

use std::ops::Range;

use super::bytes::Order;

/// Of `commit`: the bytes in use.
const COMMIT_MASK: u64 = (1 << 27) - 1;
/// Of `commit`: events were lost before this page (`RB_MISSED_EVENTS`).
const MISSED_EVENTS: u64 = 1 << 31;
/// Of `commit`: their number stands behind the last event (`RB_MISSED_STORED`).
const MISSED_STORED: u64 = 1 << 30;
/// Bits of the time that an event's first word has.
const TIME_BITS: u32 = 27;
/// An absolute time has 59 bits; the others are those of the time before.
const TIME_STAMP_BITS: u32 = 59;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// The largest page that is read, in bytes: `buffer_subbuf_size_kb` allows no more.
pub(crate) const MAX_PAGE: usize = 512 << 10;

/// Where the parts of a page are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageLayout {
    pub(crate) order: Order,
    /// Of the whole page.
    pub(crate) size: usize,
    /// Place and length of the number of bytes in use, which is a `long` of the kernel.
    pub(crate) commit: (usize, usize),
    /// Where events begin.
    pub(crate) data: usize,
}

impl PageLayout {
    /// As a kernel of 64 bits has it.
    pub(crate) fn new(order: Order, size: usize) -> PageLayout {
        PageLayout { order, size, commit: (8, 8), data: 16 }
    }

    /// As `header_page` says it.
    pub(crate) fn described(mut self, header_page: &str) -> Result<PageLayout, &'static str> {
        for line in header_page.lines() {
            let Some(field) = super::formats::field(line) else { continue };
            match field.name.as_str() {
                "commit" => self.commit = (field.offset, field.size),
                "data" => {
                    self.data = field.offset;
                    self.size = field.offset + field.size;
                }
                _ => {}
            }
        }
        self.check()
    }

    pub(crate) fn check(self) -> Result<PageLayout, &'static str> {
        let (commit, length) = self.commit;
        let good = matches!(length, 4 | 8) && commit + length <= self.data;
        if !good || self.data + 8 > self.size || self.data < 8 || self.size > MAX_PAGE {
            return Err("its header_page does not describe pages of the ring buffer");
        }
        Ok(self)
    }
}

/// What stands in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// An event at a time in the clock's units, and where in the page it is.
    Event(u64, Range<usize>),
    /// Events were lost before this page; 0 if it does not say how many.
    Lost(u64),
}

/// A place in a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position {
    at: usize,
    end: usize,
    time: u64,
    lost: Option<u64>,
}

impl Position {
    /// The beginning of a page, which has the length that the layout says.
    pub(crate) fn begin(page: &[u8], layout: &PageLayout) -> Result<Position, &'static str> {
        let commit = layout.order.number(&page[layout.commit.0..][..layout.commit.1]);
        let used = (commit & COMMIT_MASK) as usize;
        let end = layout.data + used;
        if end > page.len() || commit & !(COMMIT_MASK | MISSED_EVENTS | MISSED_STORED) != 0 {
            return Err("a page has more bytes in use than it is long");
        }
        let stored = || page.get(end..end + layout.commit.1).map(|bytes| layout.order.number(bytes));
        let lost = match commit & (MISSED_EVENTS | MISSED_STORED) {
            both if both == MISSED_EVENTS | MISSED_STORED => Some(stored().unwrap_or(0)),
            MISSED_EVENTS => Some(0),
            _ => None,
        };
        Ok(Position { at: layout.data, end, time: layout.order.number(&page[..8]), lost })
    }

    /// The next entry; `None` at the page's end.
    pub(crate) fn next(&mut self, page: &[u8], order: Order) -> Result<Option<Entry>, &'static str> {
        const SHORT: &str = "an event of a page is longer than what is left of it";
        if let Some(lost) = self.lost.take() {
            return Ok(Some(Entry::Lost(lost)));
        }
        while self.at < self.end {
            let rest = &page[self.at..self.end];
            let word = order.u32(rest).ok_or(SHORT)?;
            // the parts of a word are in the order of its bytes
            let (kind, delta) = match order {
                Order::Little => (word & 31, u64::from(word >> 5)),
                Order::Big => (word >> TIME_BITS, u64::from(word & ((1 << TIME_BITS) - 1))),
            };
            if kind == PADDING && delta == 0 {
                self.at = self.end;
                break;
            }
            let second = || rest.get(4..).and_then(|rest| order.u32(rest)).ok_or(SHORT);
            let extended = |high: u32| u64::from(high) << TIME_BITS | delta;
            match kind {
                PADDING => {
                    self.time = self.time.wrapping_add(delta);
                    self.pass(4 + second()? as usize).ok_or(SHORT)?;
                }
                TIME_EXTEND => {
                    self.time = self.time.wrapping_add(extended(second()?));
                    self.pass(8).ok_or(SHORT)?;
                }
                TIME_STAMP => {
                    let low = (1 << TIME_STAMP_BITS) - 1;
                    self.time = self.time & !low | extended(second()?) & low;
                    self.pass(8).ok_or(SHORT)?;
                }
                _ => {
                    self.time = self.time.wrapping_add(delta);
                    let (skip, length) = match kind {
                        // the length counts the word that it stands in
                        0 => (8, (second()? as usize).checked_sub(4).ok_or(SHORT)?),
                        words => (4, words as usize * 4),
                    };
                    let start = self.at + skip;
                    self.pass(skip + length.next_multiple_of(4)).ok_or(SHORT)?;
                    return Ok(Some(Entry::Event(self.time, start..start + length)));
                }
            }
        }
        Ok(None)
    }

    /// The time of what was read last.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    fn pass(&mut self, length: usize) -> Option<()> {
        let at = self.at.checked_add(length).filter(|at| *at <= self.end)?;
        self.at = at;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page whose words are these, in the order of bytes; little-endian words have kind and time as given.
    fn page(order: Order, time: u64, flags: u64, words: &[(u32, u32)]) -> (Vec<u8>, PageLayout) {
        let layout = PageLayout::new(order, 128);
        let number = |value: u64, length: usize| match order {
            Order::Little => value.to_le_bytes()[..length].to_vec(),
            Order::Big => value.to_be_bytes()[8 - length..].to_vec(),
        };
        let used = words.len() as u64 * 4;
        let mut page = [number(time, 8), number(used | flags, 8)].concat();
        for (kind, rest) in words {
            let word = match order {
                _ if *kind == u32::MAX => *rest,
                Order::Little => rest << 5 | kind,
                Order::Big => kind << 27 | rest,
            };
            page.extend(number(word.into(), 4));
        }
        page.extend(number(17, 8));
        page.resize(128, 0);
        (page, layout)
    }

    fn entries(
        order: Order,
        time: u64,
        flags: u64,
        words: &[(u32, u32)],
    ) -> Result<Vec<Entry>, &'static str> {
        let (page, layout) = page(order, time, flags, words);
        let mut position = Position::begin(&page, &layout)?;
        let mut entries = Vec::new();
        while let Some(entry) = position.next(&page, order)? {
            entries.push(entry);
        }
        Ok(entries)
    }

    /// A word that is no first word of an event.
    const PLAIN: u32 = u32::MAX;

    #[test]
    fn every_kind_of_event_is_read_in_both_orders_of_bytes() {
        for order in [Order::Little, Order::Big] {
            let words = [
                (2, 10),
                (PLAIN, 0),
                (PLAIN, 0),
                (TIME_EXTEND, 5),
                (PLAIN, 1),
                (1, 1),
                (PLAIN, 0),
                // discarded, 8 bytes behind its first word
                (PADDING, 3),
                (PLAIN, 8),
                (PLAIN, 0),
                (TIME_STAMP, 7),
                (PLAIN, 2),
                // 6 bytes and the word of the length
                (0, 1),
                (PLAIN, 10),
                (PLAIN, 0),
                (PLAIN, 0),
                (PADDING, 0),
                (PLAIN, 99),
            ];
            let high = 3 << 60;
            let after = high + 1000 + 10 + (1 << 27) + 5 + 1;
            let stamp = high + (2 << 27) + 7;
            let wanted = [
                Entry::Event(high + 1010, 20..28),
                Entry::Event(after, 40..44),
                Entry::Event(stamp + 1, 72..78),
            ];
            assert_eq!(entries(order, high + 1000, 0, &words).unwrap(), wanted);
        }
    }

    #[test]
    fn lost_events_stand_before_the_page() {
        for (flags, lost) in [(MISSED_EVENTS, 0), (MISSED_EVENTS | MISSED_STORED, 17)] {
            let found = entries(Order::Little, 5, flags, &[(1, 1), (PLAIN, 0)]).unwrap();
            assert_eq!(found, [Entry::Lost(lost), Entry::Event(6, 20..24)]);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for words in [
            &[(5, 1), (PLAIN, 0)][..],
            &[(TIME_EXTEND, 1)],
            &[(0, 1)],
            &[(0, 1), (PLAIN, 3)],
            &[(0, 1), (PLAIN, u32::MAX)],
            &[(PADDING, 1), (PLAIN, u32::MAX)],
        ] {
            assert!(entries(Order::Little, 0, 0, words).unwrap_err().contains("longer than"), "{words:?}");
        }
        assert!(entries(Order::Little, 0, 4096, &[]).unwrap_err().contains("more bytes in use"));
    }

    #[test]
    fn the_description_says_where_the_parts_are() {
        let described = |text| PageLayout::new(Order::Little, 4096).described(text);
        let of_32_bits = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:12;\tsize:4084;\tsigned:0;\n";
        let wanted = PageLayout { order: Order::Little, size: 4096, commit: (8, 4), data: 12 };
        assert_eq!(described(of_32_bits), Ok(wanted));
        for wrong in ["field: local_t commit; offset:8; size:3;", "field: char data; offset:2; size:4084;"] {
            assert!(described(wrong).unwrap_err().contains("header_page"), "{wrong}");
        }
    }
}
