//! Files of trace-cmd, versions 6 and 7 (`trace-cmd.dat.v6(5)`, `trace-cmd.dat.v7(5)`).
//!
//! Both begin with a magic, the version and the kernel's order of bytes. Version 6 has everything in a fixed order, and
//! version 7 in sections that options point to. What is not needed (symbols, formats of other events) is passed over.

use std::collections::HashMap;

use super::bytes::{Bytes, Cursor, Order};
use super::compressed::Codec;
use super::formats::{Formats, MAX_FORMAT};
use super::merge::{Buffer, Merged};
use super::ring::PageLayout;
use crate::event::Comm;
use crate::{Format, ReadError};

/// What a file begins with.
pub(crate) const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// The largest section that is decompressed, in bytes: formats have a few MiB.
const MAX_SECTION: u64 = 32 << 20;
/// What all sections together may have, so that none is read again and again. A small one counts as much as one of 64 KiB.
const MAX_SECTIONS: u64 = 64 << 20;
const LEAST_SECTION: u64 = 64 << 10;
/// The largest list of names of tasks that is read, in bytes.
const MAX_NAMES: u64 = 16 << 20;
/// The most CPUs of a file.
const MAX_CPUS: u64 = 4096;
/// The most sections of options.
const MAX_OPTIONS: usize = 100_000;

/// What a file says before its events.
struct Head {
    layout: PageLayout,
    formats: Formats,
    names: HashMap<i32, Comm>,
}

/// Opens a file that begins with the magic.
pub(crate) fn open(bytes: &Bytes) -> Result<Merged, ReadError> {
    let start = Cursor::new(bytes, Order::Little, MAGIC.len() as u64);
    let (version, mut cursor, layout) = preamble(start)?;
    let (head, buffers) = match version.as_str() {
        "6" => version_6(bytes, &mut cursor, layout)?,
        "7" => version_7(bytes, &mut cursor, layout)?,
        _ => return Err(cursor.refuse(&format!("it has version {version:?} of the format (allowed: 6, 7)"))),
    };
    if head.formats.is_empty() {
        return Err(ReadError::Empty);
    }
    Merged::new(Format::TraceDat, head.layout, head.formats, head.names, buffers)
}

/// The descriptions of events that a file of perf has behind the magic, in the form of version 6.
pub(super) fn described(start: Cursor) -> Result<Formats, ReadError> {
    let (_, mut cursor, layout) = preamble(start)?;
    header_info(&mut cursor, layout)?;
    let mut formats = Formats::new(cursor.order);
    ftrace_formats(&mut cursor)?;
    event_formats(&mut cursor, &mut formats)?;
    Ok(formats)
}

/// What stands behind the magic in both versions, and in perf's files.
fn preamble(mut cursor: Cursor) -> Result<(String, Cursor, PageLayout), ReadError> {
    let version = cursor.string()?;
    cursor.order = match cursor.number(1)? {
        0 => Order::Little,
        1 => Order::Big,
        other => return Err(cursor.refuse(&format!("its order of bytes is {other} (allowed: 0, 1)"))),
    };
    // the length of a `long` in user space is of no use
    cursor.skip(1)?;
    let size = cursor.u32()? as usize;
    let layout = PageLayout::new(cursor.order, size).check().map_err(|what| cursor.refuse(what))?;
    Ok((version, cursor, layout))
}

fn version_6(
    bytes: &Bytes,
    cursor: &mut Cursor,
    layout: PageLayout,
) -> Result<(Head, Vec<Buffer>), ReadError> {
    let layout = header_info(cursor, layout)?;
    let mut formats = Formats::new(cursor.order);
    ftrace_formats(cursor)?;
    event_formats(cursor, &mut formats)?;
    for _ in ["symbols", "formats of trace_printk"] {
        let length = cursor.u32()?;
        cursor.skip(length.into())?;
    }
    let names = names(cursor)?;
    let head = Head { layout, formats, names };
    let cpus = cursor.u32()?;
    if u64::from(cpus) > MAX_CPUS {
        return Err(cursor.refuse(&format!("it has {cpus} CPUs (allowed: up to {MAX_CPUS})")));
    }
    match &cursor.take(10, 10)?[..] {
        b"options  \0" => {
            while let id @ 1.. = cursor.u16()? {
                let length = cursor.u32()?;
                let next = cursor.at + u64::from(length);
                if id == TRACECLOCK {
                    let clocks = text(cursor, length)?;
                    clock(cursor, &selected(&clocks))?;
                }
                cursor.skip(next - cursor.at)?;
            }
            tail(bytes, cursor, head, cpus)
        }
        // files of old versions of trace-cmd have no options
        _ => {
            cursor.at -= 10;
            tail(bytes, cursor, head, cpus)
        }
    }
}

/// Where version 6 has the CPUs' pages.
fn tail(bytes: &Bytes, cursor: &mut Cursor, head: Head, cpus: u32) -> Result<(Head, Vec<Buffer>), ReadError> {
    match &cursor.take(10, 10)?[..] {
        b"flyrecord\0" => {}
        b"latency  \0" => {
            return Err(ReadError::Unsupported {
                what: "a file of trace-cmd with a latency tracer's text",
                instead: "record events, without a tracer (-p)",
            });
        }
        _ => return Err(cursor.refuse("where the CPUs' data should begin, something else stands")),
    }
    let mut buffers = Vec::new();
    for cpu in 0..cpus {
        let (at, length) = (cursor.u64()?, cursor.u64()?);
        buffers.push(buffer(bytes, cursor, cpu, at, length, None)?);
    }
    Ok((head, buffers))
}

fn buffer(
    bytes: &Bytes,
    cursor: &Cursor,
    cpu: u32,
    at: u64,
    length: u64,
    codec: Option<Codec>,
) -> Result<Buffer, ReadError> {
    let end = at.checked_add(length).filter(|end| *end <= bytes.len());
    let end =
        end.ok_or_else(|| cursor.refuse(&format!("the data of CPU {cpu} would be behind the file's end")))?;
    Ok(Buffer { cpu, bytes: bytes.clone(), at, end, codec })
}

/// Numbers of options and sections that are read, the same in both.
const TRACECLOCK: u16 = 4;
const BUFFER: u16 = 3;
const HEADER_INFO: u16 = 16;
const EVENT_FORMATS: u16 = 18;
const CMDLINES: u16 = 21;

fn version_7(
    bytes: &Bytes,
    cursor: &mut Cursor,
    mut layout: PageLayout,
) -> Result<(Head, Vec<Buffer>), ReadError> {
    let name = cursor.string()?;
    cursor.string()?;
    let codec = Codec::named(&name).map_err(|what| cursor.refuse(&what))?;
    let mut formats = Formats::new(cursor.order);
    let mut named = HashMap::new();
    let mut instances = Vec::new();
    let mut at = cursor.u64()?;
    let mut seen = 0;
    let mut left = MAX_SECTIONS;
    while at != 0 {
        let mut options = section(bytes, cursor.order, codec, at, &mut left)?;
        at = loop {
            seen += 1;
            if seen > MAX_OPTIONS {
                return Err(options.refuse("it has too many options"));
            }
            let (id, length) = (options.u16()?, options.u32()?);
            let next = options.at + u64::from(length);
            match id {
                0 => break options.u64()?,
                HEADER_INFO => {
                    layout = header_info(&mut pointed(bytes, &mut options, codec, &mut left)?, layout)?
                }
                EVENT_FORMATS => {
                    event_formats(&mut pointed(bytes, &mut options, codec, &mut left)?, &mut formats)?
                }
                CMDLINES => named = names(&mut pointed(bytes, &mut options, codec, &mut left)?)?,
                TRACECLOCK => {
                    let clocks = text(&mut options, length)?;
                    clock(&options, &selected(&clocks))?;
                }
                BUFFER => instances.push(instance(bytes, &mut options, codec)?),
                _ => {}
            }
            options.skip(next.saturating_sub(options.at))?;
        };
    }
    // another instance than the top one is read if nothing else was recorded
    let held = |instance: &Instance| instance.buffers.iter().any(|buffer| buffer.at < buffer.end);
    let top = instances.iter().position(|instance| instance.name.is_empty() && held(instance));
    let chosen = top.or_else(|| instances.iter().position(held));
    let buffers = match chosen {
        Some(index) => {
            let Instance { page, clock: of, buffers, .. } = instances.swap_remove(index);
            clock(cursor, &of)?;
            layout.size = page as usize;
            layout = layout.check().map_err(|what| cursor.refuse(what))?;
            buffers
        }
        None => Vec::new(),
    };
    Ok((Head { layout, formats, names: named }, buffers))
}

/// The section that stands somewhere, decompressed. It is taken from what all of them may have.
fn section(
    bytes: &Bytes,
    order: Order,
    codec: Option<Codec>,
    at: u64,
    left: &mut u64,
) -> Result<Cursor, ReadError> {
    let mut cursor = Cursor::new(bytes, order, at);
    let compressed = section_is_compressed(&mut cursor)?;
    let mut length = LEAST_SECTION;
    if compressed {
        let none = || ReadError::byte(at, "a section is compressed, but the file says that it is not");
        let part = codec.ok_or_else(none)?.chunk(bytes, order, &mut cursor.at, MAX_SECTION)?;
        length = length.max(part.len() as u64);
        cursor = Cursor::new(&Bytes::Memory(part.into()), order, 0);
    }
    *left = left
        .checked_sub(length)
        .ok_or_else(|| ReadError::byte(at, "its sections are too many or too long"))?;
    Ok(cursor)
}

/// Passes over a section's header: its number, its flags, its name and its length.
fn section_is_compressed(cursor: &mut Cursor) -> Result<bool, ReadError> {
    cursor.skip(2)?;
    let flags = cursor.u16()?;
    cursor.skip(4 + 8)?;
    Ok(flags & 1 != 0)
}

/// The section that an option points to.
fn pointed(
    bytes: &Bytes,
    options: &mut Cursor,
    codec: Option<Codec>,
    left: &mut u64,
) -> Result<Cursor, ReadError> {
    let at = options.u64()?;
    section(bytes, options.order, codec, at, left)
}

/// An instance of tracing.
struct Instance {
    name: String,
    clock: String,
    page: u32,
    buffers: Vec<Buffer>,
}

fn instance(bytes: &Bytes, options: &mut Cursor, codec: Option<Codec>) -> Result<Instance, ReadError> {
    let at = options.u64()?;
    let mut head = Cursor::new(bytes, options.order, at);
    let codec = codec.filter(|_| section_is_compressed(&mut head).unwrap_or(false));
    let (name, clock, page) = (options.string()?, options.string()?, options.u32()?);
    let cpus = options.u32()?;
    if u64::from(cpus) > MAX_CPUS {
        return Err(options.refuse(&format!("it has {cpus} CPUs (allowed: up to {MAX_CPUS})")));
    }
    let mut buffers = Vec::new();
    for _ in 0..cpus {
        let (cpu, at, length) = (options.u32()?, options.u64()?, options.u64()?);
        buffers.push(buffer(bytes, options, cpu, at, length, codec)?);
    }
    Ok(Instance { name, clock, page, buffers })
}

fn header_info(cursor: &mut Cursor, layout: PageLayout) -> Result<PageLayout, ReadError> {
    let mut described = layout;
    for name in ["header_page", "header_event"] {
        if cursor.string()? != name {
            return Err(cursor.refuse(&format!("{name} should stand here")));
        }
        let length = cursor.u64()?;
        let text = cursor.take(length, MAX_FORMAT)?;
        if name == "header_page" {
            described =
                layout.described(&String::from_utf8_lossy(&text)).map_err(|what| cursor.refuse(what))?;
        }
    }
    Ok(described)
}

/// Those of ftrace's own events are not needed.
fn ftrace_formats(cursor: &mut Cursor) -> Result<(), ReadError> {
    for _ in 0..cursor.u32()? {
        let length = cursor.u64()?;
        cursor.skip(length)?;
    }
    Ok(())
}

fn event_formats(cursor: &mut Cursor, formats: &mut Formats) -> Result<(), ReadError> {
    for _ in 0..cursor.u32()? {
        let system = cursor.string()?;
        for _ in 0..cursor.u32()? {
            let length = cursor.u64()?;
            if !matches!(system.as_str(), "sched" | "irq" | "timer") {
                cursor.skip(length)?;
                continue;
            }
            let text = cursor.take(length, MAX_FORMAT)?;
            formats.add(&system, &String::from_utf8_lossy(&text)).map_err(|what| cursor.refuse(&what))?;
        }
    }
    Ok(())
}

/// Names of threads: a line for each, with its number and its name.
fn names(cursor: &mut Cursor) -> Result<HashMap<i32, Comm>, ReadError> {
    let length = cursor.u64()?;
    let text = cursor.take(length, MAX_NAMES)?;
    let pair = |line: &[u8]| {
        let blank = line.iter().position(|byte| *byte == b' ')?;
        Some((crate::payload::number(line)?, Comm::new(&line[blank + 1..])))
    };
    Ok(text.split(|byte| matches!(byte, b'\n' | 0)).filter_map(pair).collect())
}

fn text(cursor: &mut Cursor, length: u32) -> Result<String, ReadError> {
    let text = cursor.take(length.into(), MAX_FORMAT)?;
    Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned())
}

/// Of a list of clocks, the one in brackets.
fn selected(clocks: &str) -> String {
    let chosen = clocks.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(clocks, |(clock, _)| clock).to_owned()
}

/// Refuses clocks that do not count ns.
fn clock(cursor: &Cursor, name: &str) -> Result<(), ReadError> {
    match name {
        "" | "local" | "global" | "perf" | "mono" | "mono_raw" | "boot" | "tai" => Ok(()),
        _ => Err(cursor.refuse(&format!(
            "its clock {name:?} does not count ns (record with one that does, like `-C mono`)"
        ))),
    }
}
