//! The objects that a process made, by handle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::code::Code;

/// A number that the caller takes for a pointer.
pub(crate) type Handle = usize;

/// A handle that nothing had before. Small numbers have a meaning of their own for streams.
pub(crate) fn fresh() -> Handle {
    static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
    NEXT.fetch_add(0x10, Ordering::Relaxed)
}

/// Objects of one kind.
#[derive(Debug)]
pub(crate) struct Handles<T>(HashMap<Handle, T>);

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Handles<T> {
    pub(crate) fn add(&mut self, object: T) -> Handle {
        let handle = fresh();
        self.0.insert(handle, object);
        handle
    }

    pub(crate) fn put(&mut self, handle: Handle, object: T) {
        self.0.insert(handle, object);
    }

    pub(crate) fn get(&self, handle: Handle) -> Result<&T, Code> {
        self.0.get(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> Result<&mut T, Code> {
        self.0.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Result<T, Code> {
        self.0.remove(&handle).ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut()
    }
}
