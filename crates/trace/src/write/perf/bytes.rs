//! Bytes as perf has them in its files.

use crate::event::Comm;

/// Bytes of what is written, little-endian.
#[derive(Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Bytes {
    pub(super) fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn int(&mut self, value: i32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    /// A name of 16 bytes.
    pub(super) fn comm(&mut self, comm: Comm) {
        let mut bytes = [0; 16];
        bytes[..comm.bytes().len()].copy_from_slice(comm.bytes());
        self.0.extend(bytes);
    }

    /// A text that ends with a zero byte.
    pub(super) fn zero_ended(&mut self, text: &str) {
        self.0.extend(text.bytes());
        self.0.push(0);
    }

    /// A text after its length in 64 bits.
    pub(super) fn counted(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.0.extend(text.bytes());
    }

    /// A text of perf's headers: padded with zero bytes after its length.
    pub(super) fn padded(&mut self, text: &str) {
        let length = (text.len() + 1).next_multiple_of(8);
        self.u32(length as u32);
        self.0.extend(text.bytes());
        self.0.resize(self.0.len() + length - text.len(), 0);
    }

    pub(super) fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }
}
