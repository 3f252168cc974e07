//! Bytes and texts of Python's own types, which the garbage collector does not follow.

use std::cell::RefCell;
use std::collections::HashMap;

use gpumem_model::units::Bytes;
use pyo3::ffi;

use super::arrays::{self, ArrayMemory};
use super::{Adapter, QualifiedName, Sink, Unread};
use crate::still::{Method, Object};

/// Smaller ones come from Python's allocator for small objects, of which no single one matters, and
/// which are too many to be looked at.
pub(crate) const SMALLEST: Bytes = Bytes::new(512);

/// Shorter texts, in characters, are usually documentation rather than collected data.
pub(crate) const SHORTEST_TEXT: Bytes = Bytes::new(4096);

/// What `sys.getsizeof` calls, by the class's address; none where that is the user's code.
#[derive(Default)]
pub(super) struct SizeMethods(RefCell<HashMap<usize, Option<Method>>>);

impl SizeMethods {
    /// The bytes of an object without its referents.
    pub(super) fn size_of(&self, object: &Object<'_>) -> Option<u64> {
        let class = object.class();
        let mut methods = self.0.borrow_mut();
        let method = methods.entry(class.address());
        let method = method.or_insert_with(|| class.method("__sizeof__"));
        method.as_ref()?.call(object)?.number()
    }
}

/// Looks at objects of these types and their subclasses.
#[derive(Default)]
pub(super) struct Buffers(SizeMethods);

impl Adapter for Buffers {
    fn claims(&self, class: &QualifiedName) -> bool {
        matches!(
            (class.module.as_str(), class.name.as_str()),
            ("builtins", "bytes" | "bytearray" | "str") | ("array", "array")
        )
    }

    fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        let n_bytes = self.0.size_of(object).map(Bytes::new);
        if let Some(n_bytes) = n_bytes.filter(|n_bytes| *n_bytes >= SMALLEST) {
            let data = data(object);
            let block = ArrayMemory {
                device: "host".to_owned(),
                address: data.unwrap_or(object.address()),
                n_bytes,
                owner: object.address(),
                is_data: data.is_some(),
            };
            arrays::hold(&block, sink);
        }
        Ok(())
    }
}

/// Where the bytes lie: in the object itself, if it cannot grow.
#[expect(unsafe_code, reason = "the bytes of an object of a known type")]
fn data(object: &Object<'_>) -> Option<usize> {
    let pointer = object.as_ptr();
    // SAFETY: a live object whose type is checked first.
    unsafe {
        if ffi::PyByteArray_Check(pointer) != 0 {
            return Some(ffi::PyByteArray_AsString(pointer) as usize);
        }
        let is_one = ffi::PyBytes_Check(pointer) != 0 || ffi::PyUnicode_Check(pointer) != 0;
        is_one.then_some(pointer as usize)
    }
}
