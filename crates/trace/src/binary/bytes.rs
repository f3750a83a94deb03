//! A file whose parts are read as they are needed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use crate::ReadError;

/// Bytes that a [`Cursor`] of a file reads at once.
const AHEAD: usize = 4096;

/// A file, or a part of one that was compressed.
#[derive(Clone, Debug)]
pub(crate) enum Bytes {
    File(Rc<File>, u64),
    Memory(Rc<[u8]>),
}

impl Bytes {
    pub(crate) fn of(file: File) -> io::Result<Bytes> {
        let length = file.metadata()?.len();
        Ok(Bytes::File(Rc::new(file), length))
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Bytes::File(_, length) => *length,
            Bytes::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Fills the buffer with what stands at `at`.
    pub(crate) fn read(&self, at: u64, buffer: &mut [u8]) -> Result<(), ReadError> {
        let end = at.checked_add(buffer.len() as u64).filter(|end| *end <= self.len());
        if end.is_none() {
            return Err(ReadError::byte(self.len(), "the file ends before what its headers announce"));
        }
        match self {
            Bytes::File(file, _) => Ok(file.read_exact_at(buffer, at)?),
            Bytes::Memory(bytes) => {
                buffer.copy_from_slice(&bytes[at as usize..][..buffer.len()]);
                Ok(())
            }
        }
    }
}

/// The order of bytes in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    /// An unsigned number of up to 8 bytes.
    pub(crate) fn number(self, bytes: &[u8]) -> u64 {
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        match self {
            Order::Little => bytes.iter().rev().fold(0, add),
            Order::Big => bytes.iter().fold(0, add),
        }
    }

    pub(crate) fn u32(self, bytes: &[u8]) -> Option<u32> {
        let bytes = bytes.first_chunk()?;
        Some(match self {
            Order::Little => u32::from_le_bytes(*bytes),
            Order::Big => u32::from_be_bytes(*bytes),
        })
    }
}

/// Reads one thing after another.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    bytes: Bytes,
    pub(crate) order: Order,
    /// Where the next thing stands.
    pub(crate) at: u64,
    /// What was read ahead, and where it stands.
    ahead: (u64, Vec<u8>),
}

impl Cursor {
    pub(crate) fn new(bytes: &Bytes, order: Order, at: u64) -> Cursor {
        Cursor { bytes: bytes.clone(), order, at, ahead: (0, Vec::new()) }
    }

    /// What is wrong here.
    pub(crate) fn refuse(&self, what: &str) -> ReadError {
        ReadError::byte(self.at, what)
    }

    pub(crate) fn number(&mut self, length: usize) -> Result<u64, ReadError> {
        let mut buffer = [0; 8];
        self.fill(&mut buffer[..length])?;
        Ok(self.order.number(&buffer[..length]))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ReadError> {
        Ok(self.number(2)? as u16)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ReadError> {
        Ok(self.number(4)? as u32)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ReadError> {
        self.number(8)
    }

    /// So many bytes, of which there may be at most `most`.
    pub(crate) fn take(&mut self, length: u64, most: u64) -> Result<Vec<u8>, ReadError> {
        if length > most {
            return Err(self.refuse(&format!("a part of {length} bytes (allowed: up to {most})")));
        }
        if self.at.saturating_add(length) > self.bytes.len() {
            return Err(self.refuse("the file ends before what its headers announce"));
        }
        let mut buffer = vec![0; length as usize];
        self.fill(&mut buffer)?;
        Ok(buffer)
    }

    pub(crate) fn skip(&mut self, length: u64) -> Result<(), ReadError> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        self.at = end.ok_or_else(|| self.refuse("the file ends before what its headers announce"))?;
        Ok(())
    }

    /// Text up to a zero.
    pub(crate) fn string(&mut self) -> Result<String, ReadError> {
        let mut text = Vec::new();
        loop {
            match self.number(1)? as u8 {
                0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                _ if text.len() >= 256 => return Err(self.refuse("a name of more than 256 bytes")),
                byte => text.push(byte),
            }
        }
    }

    /// Reads as many bytes as the buffer has.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> Result<(), ReadError> {
        let (start, ahead) = &mut self.ahead;
        let skip = self.at.checked_sub(*start);
        let held = skip.filter(|skip| skip.saturating_add(buffer.len() as u64) <= ahead.len() as u64);
        match held {
            Some(skip) => buffer.copy_from_slice(&ahead[skip as usize..][..buffer.len()]),
            None if buffer.len() < AHEAD && self.at < self.bytes.len() => {
                let length = (self.bytes.len() - self.at).min(AHEAD as u64) as usize;
                ahead.resize(length, 0);
                *start = self.at;
                self.bytes.read(self.at, ahead)?;
                let held = ahead.get(..buffer.len());
                let held =
                    held.ok_or_else(|| ReadError::byte(self.at, "the file ends within its headers"))?;
                buffer.copy_from_slice(held);
            }
            None => self.bytes.read(self.at, buffer)?,
        }
        self.at += buffer.len() as u64;
        Ok(())
    }
}
