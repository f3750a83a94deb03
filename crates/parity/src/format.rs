//! The structures of a capture file. `make bindings` generates them from `bpf/record/capture.h`, which gives their
//! meaning and units.
//!
//! All integers are little-endian, and structures have no holes.

/// The length of an end frame where there are no steps: it does not count them.
pub const END_WITHOUT_STEPS: usize = End::SIZE - 8;

/// A value of the file: what it takes in bytes, and both directions.
pub trait Field: Sized {
    /// Bytes in the file.
    const SIZE: usize;
    /// Takes the value off the front of `bytes`; `None` if they are too few.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
    /// Adds the value to the end of `bytes`.
    fn put(&self, bytes: &mut Vec<u8>);
}

macro_rules! integers {
    ($($type:ty)+) => { $(
        impl Field for $type {
            const SIZE: usize = size_of::<$type>();
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (first, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(<$type>::from_le_bytes(*first))
            }
            fn put(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }
    )+ };
}

integers! { u32 i32 u64 i64 }

impl Field for [u8; 16] {
    const SIZE: usize = 16;
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*first)
    }
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

macro_rules! structures {
    ($($(#[doc = $doc:literal])+ $name:ident { $($field:ident: $type:ty),+ $(,)? })+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $(pub $field: $type),+ }

        impl Field for $name {
            const SIZE: usize = 0 $(+ <$type as Field>::SIZE)+;
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                Some($name { $($field: Field::take(bytes)?),+ })
            }
            fn put(&self, bytes: &mut Vec<u8>) {
                $(self.$field.put(bytes);)+
            }
        }
    )+ };
}

macro_rules! numbered {
    ($($(#[doc = $doc:literal])+ $name:ident { $($member:ident = $number:literal $text:literal),+ $(,)? })+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($member = $number),+ }

        impl $name {
            /// All, in the order of their numbers.
            pub const ALL: &[$name] = &[$($name::$member),+];

            /// The one of that number.
            pub fn from_number(number: u32) -> Option<$name> {
                match number {
                    $($number => Some($name::$member),)+
                    _ => None,
                }
            }

            /// Its name, in lower case.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$member => $text),+
                }
            }
        }
    )+ };
}

#[allow(missing_docs)] // one description is enough: the header's
mod generated;
pub use generated::*;
