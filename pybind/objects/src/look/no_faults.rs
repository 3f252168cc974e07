//! No failures are ordered of a look's process where there is none.

use std::os::raw::c_int;

use super::FaultPoint;

/// As where looks have a process.
pub(super) struct Ordered;

/// Likewise.
pub(super) fn for_one_look() -> Ordered {
    Ordered
}

/// Likewise.
#[expect(dead_code, reason = "no child is made")]
pub(super) fn begin(_line: c_int) {}

/// Likewise.
pub fn at(_point: FaultPoint) {}

#[expect(dead_code, reason = "no copy is made")]
pub(super) fn pause_in_copy() {}
