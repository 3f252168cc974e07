//! Memory that is free in pieces: what the allocator holds, taken apart.

use gpumem_core::analyze::Finding;
use gpumem_core::units::Bytes;
use web_sys::Element;

use super::bars::{Ink, Part, bar, boxed};
use crate::dom::{Dom, Maker};
use crate::model::Model;

/// What is reserved, by what becomes of it; nothing where the levels are not known.
pub(super) fn body(make: &Maker, model: &Model, finding: &Finding) -> Dom<Option<Element>> {
    let mut devices = model.analysis().devices.iter();
    let device = devices.find(|device| device.device == finding.device);
    let levels = device.and_then(|device| Some((device, device.reserved?, device.allocated?)));
    let Some((device, reserved, allocated)) = levels else {
        return Ok(None);
    };
    let free = reserved.saturating_sub(allocated);
    let pieces = device.inactive_split.unwrap_or_default().min(free);
    let part = |words, size, ink| Part { words, size, ink };
    let mut parts = vec![
        part("held by tensors", allocated, Ink::Held),
        part("free between them", pieces, Ink::Over),
        part(
            "free in segments of its own",
            free.saturating_sub(pieces),
            Ink::Cache,
        ),
    ];
    parts.retain(|part| part.size > Bytes::ZERO);
    let label = format!("reserved, {reserved}");
    let mut content = vec![bar(make, &label, &parts, reserved)?];
    if let Some(largest) = device.largest_free {
        let part = part("what one request can have", largest, Ink::Cache);
        content.push(bar(make, "largest free piece", &[part], reserved)?);
    }
    let words = if device.largest_free.is_some() {
        "Where each block lies is not in this recording, only their sums."
    } else {
        "Neither the largest free piece nor where each block lies is in this recording."
    };
    content.push(make.text("p", &[("class", "muted")], words)?);
    boxed(make, "In pieces", &content).map(Some)
}
