//! No failures are ordered of a look's process: that is for tests.

use std::os::raw::c_int;

use super::FaultPoint;

/// As in the build for tests.
pub(super) struct Ordered;

/// Likewise.
pub(super) fn for_one_look() -> Ordered {
    Ordered
}

/// Likewise.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "no child is made")
)]
pub(super) fn begin(_line: c_int) {}

/// Likewise.
pub(crate) fn at(_point: FaultPoint) {}

#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "no copy is made")
)]
pub(super) fn pause_in_copy() {}
