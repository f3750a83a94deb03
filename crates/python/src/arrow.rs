//! Tables for pandas, polars, DuckDB and others, through the Arrow C data interface and its capsules.
//!
//! The interface is three small structs that the Arrow project invites others to copy, so that nothing has to be linked.
//! All libraries for Rust that have them (arrow, arrow2, minarrow, nanoarrow) are under Apache-2.0 alone, which a program
//! under GPL-2.0-only cannot take.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// Values may be missing.
const NULLABLE: i64 = 2;

/// The type of a column or table.
#[repr(C)]
pub(crate) struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private: *mut c_void,
}

/// The values of a column or table.
#[repr(C)]
pub(crate) struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private: *mut c_void,
}

/// A table in parts; here it has one.
#[repr(C)]
pub(crate) struct Stream {
    get_schema: unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int,
    get_next: unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut Stream) -> *const c_char,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private: *mut c_void,
}

// they are handed from thread to thread, and used by one at a time
unsafe impl Send for Schema {}
unsafe impl Send for Array {}
unsafe impl Send for Stream {}

/// What is exported: a column, or a table of columns. Each export shares it.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) name: CString,
    /// The type, as the interface writes it.
    pub(crate) format: &'static CStr,
    pub(crate) length: usize,
    pub(crate) missing: usize,
    pub(crate) buffers: Vec<Option<Buffer>>,
    pub(crate) children: Vec<Arc<Data>>,
    /// The texts that the values are the numbers of.
    pub(crate) dictionary: Option<Arc<Data>>,
}

/// Values one after the other.
#[derive(Debug)]
pub(crate) enum Buffer {
    Bytes(Vec<u8>),
    Int32(Vec<i32>),
    Uint64(Vec<u64>),
    Float64(Vec<f64>),
}

impl Buffer {
    fn start(&self) -> *const c_void {
        match self {
            Buffer::Bytes(values) => values.as_ptr().cast(),
            Buffer::Int32(values) => values.as_ptr().cast(),
            Buffer::Uint64(values) => values.as_ptr().cast(),
            Buffer::Float64(values) => values.as_ptr().cast(),
        }
    }
}

/// What a schema points to.
struct SchemaOwner {
    _data: Arc<Data>,
    children: Vec<*mut Schema>,
}

/// What an array points to.
struct ArrayOwner {
    _data: Arc<Data>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

impl Schema {
    pub(crate) fn of(data: &Arc<Data>) -> Schema {
        let child = |child| Box::into_raw(Box::new(Schema::of(child)));
        let mut owner = Box::new(SchemaOwner {
            _data: Arc::clone(data),
            children: data.children.iter().map(child).collect(),
        });
        Schema {
            format: data.format.as_ptr(),
            name: data.name.as_ptr(),
            metadata: null(),
            flags: NULLABLE,
            n_children: owner.children.len() as i64,
            children: owner.children.as_mut_ptr(),
            dictionary: data.dictionary.as_ref().map_or(null_mut(), child),
            release: Some(release_schema),
            private: Box::into_raw(owner).cast(),
        }
    }
}

impl Array {
    pub(crate) fn of(data: &Arc<Data>) -> Array {
        let child = |child| Box::into_raw(Box::new(Array::of(child)));
        let start = |buffer: &Option<Buffer>| buffer.as_ref().map_or(null(), Buffer::start);
        let mut owner = Box::new(ArrayOwner {
            _data: Arc::clone(data),
            buffers: data.buffers.iter().map(start).collect(),
            children: data.children.iter().map(child).collect(),
        });
        Array {
            length: data.length as i64,
            null_count: data.missing as i64,
            offset: 0,
            n_buffers: owner.buffers.len() as i64,
            n_children: owner.children.len() as i64,
            buffers: owner.buffers.as_mut_ptr(),
            children: owner.children.as_mut_ptr(),
            dictionary: data.dictionary.as_ref().map_or(null_mut(), child),
            release: Some(release_array),
            private: Box::into_raw(owner).cast(),
        }
    }

    /// The end of a stream.
    fn none() -> Array {
        Array {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: null_mut(),
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private: null_mut(),
        }
    }
}

/// A stream's table, until it has been read.
struct StreamOwner {
    data: Arc<Data>,
    is_read: bool,
}

impl Stream {
    pub(crate) fn of(data: &Arc<Data>) -> Stream {
        let owner = StreamOwner { data: Arc::clone(data), is_read: false };
        Stream {
            get_schema,
            get_next,
            get_last_error,
            release: Some(release_stream),
            private: Box::into_raw(Box::new(owner)).cast(),
        }
    }
}

/// # Safety
/// The interface has the caller pass a stream that was not released, and a place for a schema.
unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    unsafe {
        let owner = &*(*stream).private.cast::<StreamOwner>();
        out.write(Schema::of(&owner.data));
    }
    0
}

/// # Safety
/// The interface has the caller pass a stream that was not released, and a place for an array.
unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut Array) -> c_int {
    unsafe {
        let owner = &mut *(*stream).private.cast::<StreamOwner>();
        let next = if owner.is_read { Array::none() } else { Array::of(&owner.data) };
        owner.is_read = true;
        out.write(next);
    }
    0
}

/// Nothing of a stream fails.
unsafe extern "C" fn get_last_error(_: *mut Stream) -> *const c_char {
    null()
}

/// # Safety
/// The interface has the caller pass a schema that was not released.
unsafe extern "C" fn release_schema(schema: *mut Schema) {
    unsafe {
        let owner = Box::from_raw((*schema).private.cast::<SchemaOwner>());
        let parts = owner.children.iter().copied().chain([(*schema).dictionary]);
        // those that were moved elsewhere have been marked as released
        parts.filter(|part| !part.is_null()).for_each(|part| drop(Box::from_raw(part)));
        (*schema).release = None;
    }
}

/// # Safety
/// The interface has the caller pass an array that was not released.
unsafe extern "C" fn release_array(array: *mut Array) {
    unsafe {
        let owner = Box::from_raw((*array).private.cast::<ArrayOwner>());
        let parts = owner.children.iter().copied().chain([(*array).dictionary]);
        parts.filter(|part| !part.is_null()).for_each(|part| drop(Box::from_raw(part)));
        (*array).release = None;
    }
}

/// # Safety
/// The interface has the caller pass a stream that was not released.
unsafe extern "C" fn release_stream(stream: *mut Stream) {
    unsafe {
        drop(Box::from_raw((*stream).private.cast::<StreamOwner>()));
        (*stream).release = None;
    }
}

/// Releases what is dropped, unless whoever took it over has done that.
macro_rules! release_when_dropped {
    ($($name:ty),+) => {$(
        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    unsafe { release(self) }
                }
            }
        }
    )+};
}

release_when_dropped!(Schema, Array, Stream);
