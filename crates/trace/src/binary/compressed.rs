//! What trace-cmd compresses: sections, and chunks of pages.

use std::io::Read;

use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::bytes::{Bytes, Order};
use crate::ReadError;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Zlib,
    Zstd,
}

impl Codec {
    /// By the name in the file's header; `none` for a file that is not compressed.
    pub(crate) fn named(name: &str) -> Result<Option<Codec>, String> {
        match name {
            "none" => Ok(None),
            "zlib" => Ok(Some(Codec::Zlib)),
            "zstd" => Ok(Some(Codec::Zstd)),
            _ => Err(format!("it is compressed by {name:?} (allowed: zstd, zlib, none)")),
        }
    }

    /// Reads a chunk of at most `most` bytes, and passes over it: its length, the length of what it makes, and itself.
    pub(crate) fn chunk(
        self,
        bytes: &Bytes,
        order: Order,
        at: &mut u64,
        most: u64,
    ) -> Result<Vec<u8>, ReadError> {
        let wrong = |what: &str| ReadError::byte(*at, what);
        let mut lengths = [0; 8];
        bytes.read(*at, &mut lengths)?;
        let [packed, length] = [&lengths[..4], &lengths[4..]].map(|part| order.number(part));
        if length > most || packed > most {
            return Err(wrong(&format!(
                "a compressed part of {packed} bytes that makes {length} (allowed: up to {most})"
            )));
        }
        if at.saturating_add(8 + packed) > bytes.len() {
            return Err(ReadError::byte(bytes.len(), "the file ends before what its headers announce"));
        }
        let mut input = vec![0; packed as usize];
        bytes.read(*at + 8, &mut input)?;
        let mut output = vec![0; length as usize];
        let read = match self {
            Codec::Zlib => ZlibDecoder::new(&input[..]).read_exact(&mut output),
            Codec::Zstd => zstd(&input, &mut output),
        };
        read.map_err(|error| wrong(&format!("a part cannot be decompressed: {error}")))?;
        *at += 8 + packed;
        Ok(output)
    }
}

fn zstd(input: &[u8], output: &mut [u8]) -> std::io::Result<()> {
    let decoder = StreamingDecoder::new(input).map_err(std::io::Error::other);
    decoder?.read_exact(output)
}
