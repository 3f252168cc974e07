//! Locks whose content stays valid if a thread panics while it holds them.

use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

use pyo3::Python;
use pyo3::sync::MutexExt;

/// Locks, also where another thread panicked while it held the lock.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// Locks a mutex; the GIL is released while this thread waits.
pub fn lock_attached<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    unpoisoned(mutex.lock_py_attached(py))
}

/// What a poisoned lock protects, too.
pub fn unpoisoned<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}
