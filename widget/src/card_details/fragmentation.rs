//! Memory that is free in pieces: where it lies, or else what the allocator holds, taken apart.

use gpumem_analyzer::Finding;
use gpumem_model::recording::SegmentSnapshot;
use gpumem_model::units::Bytes;
use gpumem_wording::no_map;
use web_sys::Element;

use super::numbered;
use crate::dom::Maker;
use crate::model::ReportModel;
use gpumem_page_kit::bars::{BarInk, BarPart, bar, boxed};
use gpumem_page_kit::segments;

/// The map if the segments were read, else the sums if they are known.
pub(super) fn body(make: &Maker, model: &ReportModel, finding: &Finding) -> Option<Element> {
    let mapped = model.recording().latest_mapped(finding.device);
    if let Some(SegmentSnapshot {
        run,
        found: Ok(found),
        ..
    }) = mapped
    {
        let number = numbered(" after ", model.recording().run(*run));
        let label = format!("Where it lies{number}");
        let content = segments::map(make, found, model.units());
        return Some(boxed(make, &label, &content));
    }
    let mut content = sums(make, model, finding)?;
    let reason = mapped.and_then(|mapped| mapped.found.as_ref().err());
    let words = no_map(reason.map(String::as_str));
    content.push(make.text("p.muted", &[], &words));
    Some(boxed(make, "In pieces", &content))
}

/// What is reserved, by what becomes of it.
fn sums(make: &Maker, model: &ReportModel, finding: &Finding) -> Option<Vec<Element>> {
    let mut devices = model.analysis().devices.iter();
    let device = devices.find(|device| device.device == finding.device);
    let levels = device.and_then(|device| Some((device, device.reserved?, device.allocated?)));
    let (device, reserved, allocated) = levels?;
    let free = reserved.saturating_sub(allocated);
    let pieces = device.inactive_split.unwrap_or_default().min(free);
    let part = |words, size, ink| BarPart { words, size, ink };
    let mut parts = vec![
        part("held by tensors", allocated, BarInk::Held),
        part("free between them", pieces, BarInk::Hole),
        part(
            "in segments that are all free",
            free.saturating_sub(pieces),
            BarInk::Unused,
        ),
    ];
    parts.retain(|part| part.size > Bytes::ZERO);
    let units = model.units();
    let label = format!("reserved, {}", units.size(reserved));
    let mut content = vec![bar(make, &label, &parts, (reserved, units))];
    if let Some(largest) = device.largest_free {
        let part = part("what one request can have", largest, BarInk::Hole);
        content.push(bar(make, "largest free piece", &[part], (reserved, units)));
    }
    Some(content)
}
