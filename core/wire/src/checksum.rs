//! CRC-32 (IEEE 802.3) of a payload.

pub(super) use crc32fast::hash as crc32;

use super::WireFault;

/// Refuses a payload that is not as it was written.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn compare(payload: &[u8], written: u32) -> Result<(), WireFault> {
    match crc32(payload) {
        found if found == written => Ok(()),
        found => Err(WireFault::Checksum { found, written }),
    }
}

/// The page has compared already: it unpacks a recording whole, with gzip's checksum of all of it,
/// and what follows is sent by the kernel that wrote it.
#[cfg(target_arch = "wasm32")]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it refuses")]
pub(super) fn compare(_: &[u8], _: u32) -> Result<(), WireFault> {
    Ok(())
}

/// Refuses a length of which a bit was flipped: the checksum is then that of fewer bytes.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn compare_length(rest: &[u8], length: usize, written: u32) -> Result<(), WireFault> {
    let others = (0..u32::BITS).map(|bit| length ^ (1 << bit));
    let mut others = others.filter(|other| *other > 0);
    let is_of = |other: &usize| {
        rest.get(..*other)
            .is_some_and(|payload| crc32(payload) == written)
    };
    match others.find(is_of) {
        None => Ok(()),
        Some(other) => Err(WireFault::Length {
            found: length,
            written: other,
        }),
    }
}

/// As [`compare`]: no page meets what was changed on its way.
#[cfg(target_arch = "wasm32")]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it refuses")]
pub(super) fn compare_length(_: &[u8], _: usize, _: u32) -> Result<(), WireFault> {
    Ok(())
}
