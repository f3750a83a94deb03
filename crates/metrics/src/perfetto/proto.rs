//! Messages in the wire format of Protocol Buffers, <https://protobuf.dev/programming-guides/encoding/>.

/// The fields of a message, encoded one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// An unsigned integer.
    pub(super) fn uint(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field) << 3);
        self.varint(value);
        self
    }

    /// An integer with a sign (`int32`, `int64`): a negative one is one of 64 bits.
    pub(super) fn int(self, field: u32, value: i64) -> Message {
        self.uint(field, value as u64)
    }

    /// A number of eight bytes.
    pub(super) fn fixed64(mut self, field: u32, value: u64) -> Message {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A text.
    pub(super) fn text(self, field: u32, text: &str) -> Message {
        self.delimited(field, text.as_bytes())
    }

    /// A message within this one.
    pub(super) fn message(self, field: u32, inner: &Message) -> Message {
        self.delimited(field, inner.bytes())
    }

    fn delimited(mut self, field: u32, bytes: &[u8]) -> Message {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    /// Seven bits a byte, the lowest first; the highest bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the encoding's documentation.
    #[test]
    fn worked_by_hand() {
        assert_eq!(Message::default().uint(1, 150).bytes(), [0x08, 0x96, 0x01]);
        let text = Message::default().text(2, "testing");
        assert_eq!(text.bytes(), [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let inner = Message::default().uint(1, 150);
        assert_eq!(Message::default().message(3, &inner).bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let minus_two = [0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Message::default().int(1, -2).bytes(), minus_two);
        let fixed = Message::default().fixed64(1, 0x0102);
        assert_eq!(fixed.bytes(), [0x09, 0x02, 0x01, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Message::default().uint(491, 0).bytes(), [0xd8, 0x1e, 0x00], "a field above 15");
    }
}
