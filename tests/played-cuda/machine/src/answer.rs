//! What a C caller gives: places to write to, and texts.

#![expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "each of some 300 calls would repeat that the place is its caller's"
)]

use std::ffi::{CStr, c_char};

/// The caller gave no place, or no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault;

/// Writes a figure to the caller's place.
pub fn put<T>(place: *mut T, figure: T) -> Result<(), Fault> {
    if place.is_null() {
        return Err(Fault);
    }
    // SAFETY: the caller gives a place of that type, as the library's interface demands.
    unsafe { place.write_unaligned(figure) };
    Ok(())
}

/// Writes a text and its end to the caller's `n_places` bytes, cut if it is longer.
pub fn put_text(place: *mut c_char, n_places: usize, text: &str) -> Result<(), Fault> {
    for (idx, byte) in text.bytes().chain([0]).take(n_places).enumerate() {
        let byte = if idx + 1 == n_places { 0 } else { byte };
        put(place.wrapping_add(idx), c_char::from_ne_bytes([byte]))?;
    }
    Ok(())
}

/// The figure at a place of the caller's.
pub fn read<T: Copy>(place: *const T) -> Result<T, Fault> {
    if place.is_null() {
        return Err(Fault);
    }
    // SAFETY: the caller gives a place of that type, as the library's interface demands.
    Ok(unsafe { place.read_unaligned() })
}

/// A text of the caller's.
pub fn read_text(text: *const c_char) -> Result<String, Fault> {
    if text.is_null() {
        return Err(Fault);
    }
    // SAFETY: the caller gives a text that ends with 0, as the library's interface demands.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(text.to_string_lossy().into_owned())
}
