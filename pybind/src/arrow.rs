//! Tables for data frames, through Arrow's C stream interface.
//!
//! The structures and their rules are those of Arrow's C data interface and C stream interface: who
//! fills a structure owns what it points to until the reader calls `release`. A table is one batch.

#![expect(unsafe_code, reason = "structures that are shared with C")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use gpumem_core::table::{self, Values};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// Rows with one type for each column, which libraries for data frames read.
#[pyclass(frozen, module = "gpumem")]
pub(crate) struct Table {
    inner: table::Table,
}

impl Table {
    pub(crate) fn new(inner: table::Table) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Table {
    /// The table as a stream of one batch; the columns keep their types.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Another schema is a wish, which need not be met.
        let _ = requested_schema;
        let stream = Stream::of(self.inner.clone());
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Each column's values by its name.
    fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, values) in &self.inner.columns {
            match values {
                Values::Integers(values) => columns.set_item(name, values)?,
                Values::Texts(values) => columns.set_item(name, values)?,
                Values::Flags(values) => columns.set_item(name, values)?,
            }
        }
        Ok(columns)
    }

    fn __len__(&self) -> usize {
        self.inner.n_rows
    }

    fn __repr__(&self) -> String {
        let (n_rows, n_columns) = (self.inner.n_rows, self.inner.columns.len());
        format!("<gpumem.Table: {n_rows} rows of {n_columns} columns>")
    }
}

/// Fills what its second argument points to; an error is not zero.
// SAFETY: the reader passes a stream that was not released, and room for what it wants.
type Get<T> = unsafe extern "C" fn(*mut Stream, *mut T) -> c_int;

/// Says what the last error was.
// SAFETY: the reader passes a stream that was not released.
type LastError = unsafe extern "C" fn(*mut Stream) -> *const c_char;

/// Frees what a structure points to, and marks it as released.
// SAFETY: called once for each structure.
type Release<T> = unsafe extern "C" fn(*mut T);

/// `ArrowArrayStream`.
#[repr(C)]
struct Stream {
    get_schema: Get<Schema>,
    get_next: Get<Array>,
    get_last_error: LastError,
    release: Option<Release<Self>>,
    /// A `Box<Pending>`.
    private: *mut c_void,
}

/// What a stream has still to give.
struct Pending {
    /// The names of the columns and their formats.
    fields: Vec<(&'static str, &'static CStr)>,
    batch: Option<table::Table>,
}

// SAFETY: the box in `private` holds plain values, and only its owner touches it.
unsafe impl Send for Stream {}

impl Stream {
    fn of(table: table::Table) -> Self {
        let fields = table.columns.iter();
        let pending = Pending {
            fields: fields.map(|(name, it)| (*name, format_of(it))).collect(),
            batch: Some(table),
        };
        Self {
            get_schema,
            get_next,
            get_last_error,
            release: Some(release_stream),
            private: Box::into_raw(Box::new(pending)).cast(),
        }
    }
}

impl Drop for Stream {
    /// A reader that took the stream over has set `release` to null.
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it is the stream's own, which was not released yet.
            unsafe { release(self) };
        }
    }
}

fn format_of(values: &Values) -> &'static CStr {
    match values {
        Values::Integers(_) => c"l",
        Values::Texts(_) => c"U",
        Values::Flags(_) => c"b",
    }
}

// SAFETY: the reader passes a stream of ours that was not released, and room for a schema.
unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    // SAFETY: as above.
    let pending = unsafe { &*(*stream).private.cast::<Pending>() };
    let fields = pending.fields.iter();
    let children = fields.map(|(name, format)| Schema::new(name, format, NULLABLE, Vec::new()));
    let schema = Schema::new("", c"+s", 0, children.collect());
    // SAFETY: as above; what was there is not ours to drop.
    unsafe { out.write(schema) };
    0
}

// SAFETY: the reader passes a stream of ours that was not released, and room for an array.
unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut Array) -> c_int {
    // SAFETY: as above.
    let pending = unsafe { &mut *(*stream).private.cast::<Pending>() };
    let array = match pending.batch.take() {
        Some(table) => Array::of_table(&table),
        None => Array::RELEASED,
    };
    // SAFETY: as above; what was there is not ours to drop.
    unsafe { out.write(array) };
    0
}

// SAFETY: nothing is read.
unsafe extern "C" fn get_last_error(_: *mut Stream) -> *const c_char {
    ptr::null()
}

// SAFETY: called once, with a stream of ours.
unsafe extern "C" fn release_stream(stream: *mut Stream) {
    // SAFETY: as above; `private` is the box that `Stream::of` made.
    unsafe {
        drop(Box::from_raw((*stream).private.cast::<Pending>()));
        (*stream).private = ptr::null_mut();
        (*stream).release = None;
    }
}

/// `ARROW_FLAG_NULLABLE`.
const NULLABLE: i64 = 2;

/// `ArrowSchema`.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<Release<Self>>,
    /// A `Box<SchemaParts>`.
    private: *mut c_void,
}

/// What a schema points to.
struct SchemaParts {
    name: CString,
    /// Each a box of its own: readers move them.
    children: Vec<*mut Schema>,
}

impl Schema {
    fn new(name: &str, format: &'static CStr, flags: i64, children: Vec<Self>) -> Self {
        let mut parts = Box::new(SchemaParts {
            name: CString::new(name).unwrap_or_default(),
            children: boxed(children),
        });
        Self {
            format: format.as_ptr(),
            name: parts.name.as_ptr(),
            metadata: ptr::null(),
            flags,
            n_children: n_of(&parts.children),
            children: parts.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_schema),
            private: Box::into_raw(parts).cast(),
        }
    }
}

// SAFETY: called once, with a schema of ours.
unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: as above; `private` and the children are the boxes that `Schema::new` made. A child
    // that a reader moved away is marked as released.
    unsafe {
        let parts = Box::from_raw((*schema).private.cast::<SchemaParts>());
        for child in parts.children {
            let mut child = Box::from_raw(child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
        (*schema).release = None;
    }
}

/// `ArrowArray`.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<Release<Self>>,
    /// A `Box<ArrayParts>`.
    private: *mut c_void,
}

/// What an array points to.
struct ArrayParts {
    buffers: Vec<*const c_void>,
    /// Each a box of its own: readers move them.
    children: Vec<*mut Array>,
    /// What the buffers are.
    _content: Content,
}

/// The memory of one column. Words of 64 bits, so that every buffer is aligned.
enum Content {
    /// Of the rows as a whole.
    None,
    /// Bits of what is known; 64-bit integers.
    Integers(Vec<u64>, Vec<i64>),
    /// Bits of what is known; bits.
    Flags(Vec<u64>, Vec<u64>),
    /// Bits of what is known; where each text begins, and the end; UTF-8.
    Texts(Vec<u64>, Vec<i64>, Vec<u64>),
}

impl Content {
    fn of(values: &Values) -> Self {
        match values {
            Values::Integers(values) => {
                let known = bits(values.iter().map(Option::is_some));
                Self::Integers(
                    known,
                    values.iter().map(|n| n.unwrap_or_default()).collect(),
                )
            }
            Values::Flags(values) => {
                let known = bits(values.iter().map(Option::is_some));
                Self::Flags(known, bits(values.iter().map(|it| it.unwrap_or_default())))
            }
            Values::Texts(values) => {
                let known = bits(values.iter().map(Option::is_some));
                let texts = values
                    .iter()
                    .map(|text| text.as_deref().unwrap_or_default());
                let mut ends = vec![0];
                let mut bytes = Vec::new();
                for text in texts {
                    bytes.extend_from_slice(text.as_bytes());
                    ends.push(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
                }
                Self::Texts(known, ends, words(&bytes))
            }
        }
    }

    fn buffers(&self) -> Vec<*const c_void> {
        match self {
            // Every row is there.
            Self::None => vec![ptr::null()],
            Self::Integers(known, values) => vec![pointer(known), pointer(values)],
            Self::Flags(known, values) => vec![pointer(known), pointer(values)],
            Self::Texts(known, ends, bytes) => vec![pointer(known), pointer(ends), pointer(bytes)],
        }
    }
}

fn pointer<T>(buffer: &[T]) -> *const c_void {
    buffer.as_ptr().cast()
}

/// One bit for each value, the lowest first, in at least one word.
fn bits(values: impl ExactSizeIterator<Item = bool>) -> Vec<u64> {
    let mut words = vec![0_u64; values.len() / 64 + 1];
    for (idx, is_set) in values.enumerate() {
        words[idx / 64] |= u64::from(is_set) << (idx % 64);
    }
    // The first value is in the lowest byte.
    words.iter().map(|word| word.to_le()).collect()
}

/// Bytes in at least one word.
fn words(bytes: &[u8]) -> Vec<u64> {
    let mut words: Vec<u64> = bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        })
        .collect();
    words.push(0);
    words
}

impl Array {
    /// The mark of a stream's end.
    const RELEASED: Self = Self {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: ptr::null_mut(),
        children: ptr::null_mut(),
        dictionary: ptr::null_mut(),
        release: None,
        private: ptr::null_mut(),
    };

    fn of_table(table: &table::Table) -> Self {
        let n_rows = table.n_rows;
        let columns = table.columns.iter();
        let children =
            columns.map(|(_, it)| Self::new(n_rows, n_unknown(it), Content::of(it), Vec::new()));
        Self::new(n_rows, 0, Content::None, children.collect())
    }

    fn new(n_rows: usize, n_unknown: usize, content: Content, children: Vec<Self>) -> Self {
        let mut parts = Box::new(ArrayParts {
            buffers: content.buffers(),
            children: boxed(children),
            _content: content,
        });
        Self {
            length: i64::try_from(n_rows).unwrap_or(i64::MAX),
            null_count: i64::try_from(n_unknown).unwrap_or(i64::MAX),
            offset: 0,
            n_buffers: n_of(&parts.buffers),
            n_children: n_of(&parts.children),
            buffers: parts.buffers.as_mut_ptr(),
            children: parts.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release_array),
            private: Box::into_raw(parts).cast(),
        }
    }
}

fn n_unknown(values: &Values) -> usize {
    match values {
        Values::Integers(values) => values.iter().filter(|it| it.is_none()).count(),
        Values::Texts(values) => values.iter().filter(|it| it.is_none()).count(),
        Values::Flags(values) => values.iter().filter(|it| it.is_none()).count(),
    }
}

// SAFETY: called once, with an array of ours.
unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: as above; `private` and the children are the boxes that `Array::new` made. A child
    // that a reader moved away is marked as released.
    unsafe {
        let parts = Box::from_raw((*array).private.cast::<ArrayParts>());
        for child in parts.children {
            let mut child = Box::from_raw(child);
            if let Some(release) = child.release {
                release(&raw mut *child);
            }
        }
        (*array).release = None;
    }
}

fn boxed<T>(items: Vec<T>) -> Vec<*mut T> {
    let items = items.into_iter();
    items.map(|item| Box::into_raw(Box::new(item))).collect()
}

fn n_of<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}
