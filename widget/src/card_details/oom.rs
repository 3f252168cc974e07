//! Memory that ran out: what was there, what was wanted, and what would have been enough.

use gpumem_core::analyze::{Finding, OomBreakdown, OomPart};
use gpumem_core::units::{Bytes, Units};
use gpumem_core::wording;
use web_sys::Element;

use super::bars::{Ink, Part, bar, boxed};
use super::segments;
use crate::dom::{Dom, Maker};
use crate::model::Model;

/// So many holders are shown.
const N_NAMES: usize = 4;

/// The device as it was, and the request on the same scale.
pub(super) fn body(make: &Maker, breakdown: &OomBreakdown, units: Units) -> Dom<Element> {
    let parts: Vec<Part<'_>> = breakdown
        .parts
        .iter()
        .map(|(part, size)| Part {
            words: wording::oom_part(*part),
            size: *size,
            ink: match part {
                OomPart::Tensors => Ink::Held,
                OomPart::Cache => Ink::Cache,
                OomPart::Free => Ink::Free,
                _ => Ink::Other,
            },
        })
        .collect();
    let told: Bytes = parts.iter().map(|part| part.size).sum();
    let whole = [breakdown.room, breakdown.wanted, Some(told)];
    let whole = (whole.into_iter().flatten().max().unwrap_or_default(), units);
    let mut content = Vec::new();
    if !parts.is_empty() {
        let label = match breakdown.room {
            Some(room) => format!("there was, of {}", units.size(room)),
            None => "there was".to_owned(),
        };
        content.push(bar(make, &label, &parts, whole)?);
    }
    if let Some(wanted) = breakdown.wanted {
        let wanted = Part {
            words: "one request",
            size: wanted,
            ink: Ink::Over,
        };
        content.push(bar(make, "wanted", &[wanted], whole)?);
    }
    for holder in breakdown.holders.iter().take(N_NAMES) {
        let held = Part {
            words: &wording::oom_holder(holder),
            size: holder.used,
            ink: Ink::Held,
        };
        content.push(bar(make, "held by", &[held], whole)?);
    }
    content.push(make.text("p", &[], &enough(breakdown, units))?);
    boxed(make, "What was there, and what was wanted", &content)
}

/// Where the blocks lay at that moment, beside what was wanted; why nobody looked, where it is told.
pub(super) fn map(
    make: &Maker,
    model: &Model,
    finding: &Finding,
    breakdown: &OomBreakdown,
) -> Dom<Option<Element>> {
    let recording = model.recording();
    let mapped = breakdown
        .mapped
        .and_then(|run| recording.mapped(run, finding.device));
    let content = match mapped.map(|mapped| &mapped.found) {
        None => return Ok(None),
        Some(Err(reason)) => {
            let words = format!("No map of the blocks: {reason}.");
            vec![make.prose("p", &[("class", "muted")], &words)?]
        }
        Some(Ok(found)) => {
            let wanted = breakdown.wanted.map(|size| Part {
                words: "wanted in one piece",
                size,
                ink: Ink::Over,
            });
            let mut parts = breakdown.parts.iter();
            let free = parts.find(|(part, _)| *part == OomPart::Free);
            let free = free.map(|(_, size)| Part {
                words: "free on the device, outside of segments",
                size: *size,
                ink: Ink::Free,
            });
            let beside: Vec<Part<'_>> = wanted.into_iter().chain(free).collect();
            segments::map(make, found, &beside, model.units())?
        }
    };
    boxed(make, "Where it lay then, to scale", &content).map(Some)
}

fn enough(breakdown: &OomBreakdown, units: Units) -> String {
    let pieces = breakdown.largest_free.zip(breakdown.wanted);
    match (breakdown.missing, pieces) {
        (Some(missing), _) if missing > Bytes::ZERO => {
            format!(
                "{} more in one piece would have been enough.",
                units.size(missing)
            )
        }
        (Some(_), Some((largest, wanted))) if largest < wanted => {
            format!(
                "There was enough, but not in one piece: the largest free piece was {}.",
                units.size(largest)
            )
        }
        (Some(_), _) => "There was enough, but not in one piece.".to_owned(),
        (None, _) => "What would have been enough is not known: the error does not say.".to_owned(),
    }
}
