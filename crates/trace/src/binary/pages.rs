//! A directory of raw pages, as `trace_pipe_raw` gives them, with the descriptions of the events.
//!
//! ```text
//!   formats/header_page              events/header_page
//!   formats/sched/sched_switch/format, …
//!   traces/cpu0, traces/cpu1, …      per_cpu/cpu0/trace_pipe_raw, …
//! ```

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;

use super::bytes::{Bytes, Order};
use super::formats::{Formats, MAX_FORMAT, needed};
use super::merge::{Buffer, Merged};
use super::ring::{PageLayout, Position};
use crate::event::Comm;
use crate::{Format, ReadError};

/// The size of a page, if nothing says it.
const PAGE: usize = 4096;

/// Opens a directory.
pub(crate) fn open(directory: &Path) -> Result<Merged, ReadError> {
    let formats =
        ["formats", "events"].map(|name| directory.join(name)).into_iter().find(|path| path.is_dir());
    let buffers = buffers(directory)?;
    let (Some(descriptions), false) = (formats, buffers.is_empty()) else { return Err(ReadError::Directory) };
    let mut layout = PageLayout::new(Order::Little, PAGE);
    if let Some(text) = read(&descriptions.join("header_page"))? {
        layout =
            layout.described(&text).map_err(|what| ReadError::Part("header_page".into(), what.into()))?;
    }
    layout.order = order(&buffers, &layout)?;
    let mut formats = Formats::new(layout.order);
    for (system, event) in needed() {
        if let Some(text) = read(&descriptions.join(system).join(event).join("format"))? {
            let wrong = |what| ReadError::Part(format!("{system}/{event}/format"), what);
            formats.add(system, &text).map_err(wrong)?;
        }
    }
    if formats.is_empty() {
        return Err(ReadError::Empty);
    }
    let names = read(&directory.join("saved_cmdlines"))?.unwrap_or_default();
    let named = |line: &str| {
        let (pid, name) = line.split_once(' ')?;
        Some((pid.parse().ok()?, Comm::new(name.as_bytes())))
    };
    let names: HashMap<_, _> = names.lines().filter_map(named).collect();
    Merged::new(Format::Pages, layout, formats, names, buffers)
}

/// The files of the CPUs, in their order.
fn buffers(directory: &Path) -> Result<Vec<Buffer>, ReadError> {
    let mut buffers = Vec::new();
    for (name, within) in [("traces", ""), ("per_cpu", "trace_pipe_raw")] {
        let entries = match directory.join(name).read_dir() {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let cpu = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            if let Some(cpu) = cpu {
                let path = if within.is_empty() { entry.path() } else { entry.path().join(within) };
                let bytes = Bytes::of(coreward_input::open(&path)?)?;
                buffers.push(Buffer { cpu, at: 0, end: bytes.len(), bytes, codec: None });
            }
        }
    }
    buffers.sort_by_key(|buffer| buffer.cpu);
    Ok(buffers)
}

/// The order of bytes, which nothing says: only in the right one a page has fewer bytes in use than it is long.
fn order(buffers: &[Buffer], layout: &PageLayout) -> Result<Order, ReadError> {
    let whole = buffers.iter().find(|buffer| buffer.end >= layout.size as u64);
    let Some(buffer) = whole else { return Ok(Order::Little) };
    let mut page = vec![0; layout.size];
    buffer.bytes.read(0, &mut page)?;
    let fits = |order| Position::begin(&page, &PageLayout { order, ..*layout }).is_ok();
    Ok(if fits(Order::Big) && !fits(Order::Little) { Order::Big } else { Order::Little })
}

/// A file, if it is there.
fn read(path: &Path) -> Result<Option<String>, ReadError> {
    match coreward_input::read_text(path, MAX_FORMAT >> 10) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
