//! Recordings whose lengths and checksums fit whatever was changed.

use super::messagepack::length;

/// Bytes of a frame before its payload: its length and its checksum.
const PREFIX: usize = 8;

/// The frames with the lengths and checksums of their payloads, so that changed bytes reach what is behind them. A payload is
/// two values: its kind and its fields. Where they are damaged the length stays, or becomes that of the rest.
pub(crate) fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut rest = &mut bytes[..];
    while let Some((prefix, payloads)) = rest.split_first_chunk_mut::<PREFIX>() {
        let [a, b, c, d, ..] = *prefix;
        let stated = (u32::from_le_bytes([a, b, c, d]) as usize).min(payloads.len());
        let n_bytes = length(payloads, 2).unwrap_or(stated);
        let (payload, more) = payloads.split_at_mut(n_bytes);
        let length = u32::try_from(n_bytes).unwrap_or(u32::MAX);
        prefix[..4].copy_from_slice(&length.to_le_bytes());
        prefix[4..].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        rest = more;
    }
    bytes
}

/// The frames of a sealed recording, each with its prefix.
pub(crate) fn frames(bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    let mut rest = bytes;
    while let Some((length, _)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (frame, more) = rest.split_at(length.saturating_add(PREFIX).min(rest.len()));
        frames.push(frame);
        rest = more;
    }
    frames
}
