//! The compact protocol of Thrift, which Parquet's metadata is written in.

/// The types of fields and elements.
const I8: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
const TRUE: u8 = 1;
const FALSE: u8 = 2;

/// A struct that is being written. Fields are given in rising order of their numbers.
#[derive(Default)]
pub(crate) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    /// The type of a field is in the lower half of its first byte, the distance from the last field in the upper one.
    fn field(mut self, number: u8, kind: u8) -> Struct {
        debug_assert!(number > self.last && number - self.last < 16);
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
        self
    }

    pub(crate) fn i8(self, number: u8, value: u8) -> Struct {
        let mut out = self.field(number, I8);
        out.bytes.push(value);
        out
    }

    pub(crate) fn i32(self, number: u8, value: i32) -> Struct {
        let mut out = self.field(number, I32);
        varint(&mut out.bytes, zigzag(value.into()));
        out
    }

    pub(crate) fn i64(self, number: u8, value: i64) -> Struct {
        let mut out = self.field(number, I64);
        varint(&mut out.bytes, zigzag(value));
        out
    }

    pub(crate) fn bool(self, number: u8, value: bool) -> Struct {
        self.field(number, if value { TRUE } else { FALSE })
    }

    pub(crate) fn text(self, number: u8, value: &str) -> Struct {
        let mut out = self.field(number, BINARY);
        text(&mut out.bytes, value);
        out
    }

    pub(crate) fn inner(self, number: u8, value: Struct) -> Struct {
        let mut out = self.field(number, STRUCT);
        out.bytes.extend(value.end());
        out
    }

    pub(crate) fn structs(self, number: u8, values: impl ExactSizeIterator<Item = Struct>) -> Struct {
        let mut out = self.list(number, values.len(), STRUCT);
        values.for_each(|value| out.bytes.extend(value.end()));
        out
    }

    pub(crate) fn i32s(self, number: u8, values: &[i32]) -> Struct {
        let mut out = self.list(number, values.len(), I32);
        values.iter().for_each(|value| varint(&mut out.bytes, zigzag((*value).into())));
        out
    }

    pub(crate) fn texts(self, number: u8, values: &[&str]) -> Struct {
        let mut out = self.list(number, values.len(), BINARY);
        values.iter().for_each(|value| text(&mut out.bytes, value));
        out
    }

    /// The head of a list.
    fn list(self, number: u8, len: usize, kind: u8) -> Struct {
        let mut out = self.field(number, LIST);
        if len < 15 {
            out.bytes.push((len as u8) << 4 | kind);
        } else {
            out.bytes.push(0xf0 | kind);
            varint(&mut out.bytes, len as u64);
        }
        out
    }

    /// The whole struct.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn text(out: &mut Vec<u8>, value: &str) {
    varint(out, value.len() as u64);
    out.extend(value.as_bytes());
}

/// Small numbers of either sign as small ones without.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Seven bits a byte, the lowest first; the eighth says that another byte follows.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_the_protocol_has_them() {
        let bytes = |value| {
            let mut out = Vec::new();
            varint(&mut out, value);
            out
        };
        assert_eq!((bytes(0), bytes(127), bytes(300)), (vec![0], vec![0x7f], vec![0xac, 2]));
        assert_eq!([0, -1, 1, -2, i64::MIN].map(zigzag), [0, 1, 2, 3, u64::MAX]);
    }

    #[test]
    fn fields_are_known_by_their_distance() {
        let inner = Struct::default().bool(1, true).bool(3, false);
        let written = Struct::default().i32(1, -1).text(4, "ab").inner(5, inner).i32s(6, &[1; 15]).end();
        let mut expected = vec![0x15, 1, 0x38, 2, b'a', b'b', 0x1c, 0x11, 0x22, 0, 0x19, 0xf5, 15];
        expected.extend([2; 15]);
        expected.push(0);
        assert_eq!(written, expected);
    }
}
