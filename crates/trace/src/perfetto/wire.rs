//! Messages in the wire format of Protocol Buffers, <https://protobuf.dev/programming-guides/encoding/>.

use std::collections::VecDeque;

const CUT: &str = "a message is cut off";

/// What a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    /// A text, a message, or several numbers.
    Bytes(&'a [u8]),
}

/// The fields of a message, one after the other.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CUT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, &'static str> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number has more than 64 bits")
    }

    fn field(&mut self) -> Result<(u32, Value<'a>), &'static str> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| "a field has no number")?;
        let little = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Number(little(self.take(8)?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| CUT)?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Number(little(self.take(4)?)),
            _ => return Err("a field is of an unknown kind"),
        };
        Ok((number, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

/// The numbers of a packed field.
pub(super) fn packed(bytes: &[u8], numbers: &mut VecDeque<u64>) -> Result<(), &'static str> {
    let mut rest = Fields(bytes);
    while !rest.0.is_empty() {
        numbers.push_back(rest.varint()?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_documentation_are_read() {
        let all = |bytes| Fields(bytes).collect::<Result<Vec<_>, _>>();
        assert_eq!(all(&[0x08, 0x96, 0x01]), Ok(vec![(1, Value::Number(150))]));
        assert_eq!(
            all(&[0x12, 0x02, 0x74, 0x65, 0x0d, 1, 0, 0, 0]),
            Ok(vec![(2, Value::Bytes(b"te")), (1, Value::Number(1))])
        );
        assert_eq!(all(&[0x09, 2, 0, 0, 0, 0, 0, 0, 0]), Ok(vec![(1, Value::Number(2))]));
        for wrong in [&[0x12, 0x03, 0x74][..], &[0x08], &[0x0b], &[0xff; 11]] {
            assert!(all(wrong).is_err(), "{wrong:?}");
        }
        let mut numbers = VecDeque::new();
        packed(&[0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05], &mut numbers).unwrap();
        assert_eq!(numbers, [3, 270, 86942]);
    }
}
