//! Memory that ran out: what was there, what was wanted, and what would have been enough.

use gpumem_core::analyze::{Finding, Shortage, ShortagePart};
use gpumem_core::units::Bytes;
use web_sys::Element;

use super::bars::{Ink, Part, bar, boxed};
use super::segments;
use crate::dom::{Dom, Maker};
use crate::model::Model;

/// The device as it was, and the request on the same scale.
pub(super) fn body(make: &Maker, shortage: &Shortage) -> Dom<Element> {
    let parts: Vec<Part<'_>> = shortage
        .parts
        .iter()
        .map(|(part, size)| Part {
            words: part.words(),
            size: *size,
            ink: match part {
                ShortagePart::Tensors => Ink::Held,
                ShortagePart::Cache => Ink::Cache,
                ShortagePart::Free => Ink::Free,
                _ => Ink::Other,
            },
        })
        .collect();
    let told: Bytes = parts.iter().map(|part| part.size).sum();
    let whole = [shortage.room, shortage.wanted, Some(told)];
    let whole = whole.into_iter().flatten().max().unwrap_or_default();
    let mut content = Vec::new();
    if !parts.is_empty() {
        let label = match shortage.room {
            Some(room) => format!("there was, of {room}"),
            None => "there was".to_owned(),
        };
        content.push(bar(make, &label, &parts, whole)?);
    }
    if let Some(wanted) = shortage.wanted {
        let wanted = Part {
            words: "one request",
            size: wanted,
            ink: Ink::Over,
        };
        content.push(bar(make, "wanted", &[wanted], whole)?);
    }
    for (name, used) in &shortage.holders {
        let held = Part {
            words: name,
            size: *used,
            ink: Ink::Held,
        };
        content.push(bar(make, "held by", &[held], whole)?);
    }
    content.push(make.text("p", &[], &enough(shortage))?);
    boxed(make, "What was there, and what was wanted", &content)
}

/// Where the blocks lay at that moment, beside what was wanted; why nobody looked, where it is told.
pub(super) fn map(
    make: &Maker,
    model: &Model,
    finding: &Finding,
    shortage: &Shortage,
) -> Dom<Option<Element>> {
    let recording = model.recording();
    let mapped = shortage
        .mapped
        .and_then(|run| recording.mapped(run, finding.device));
    let content = match mapped.map(|mapped| &mapped.found) {
        None => return Ok(None),
        Some(Err(reason)) => {
            let words = format!("No map of the blocks: {reason}.");
            vec![make.prose("p", &[("class", "muted")], &words)?]
        }
        Some(Ok(found)) => {
            let wanted = shortage.wanted.map(|size| Part {
                words: "wanted in one piece",
                size,
                ink: Ink::Over,
            });
            let mut parts = shortage.parts.iter();
            let free = parts.find(|(part, _)| *part == ShortagePart::Free);
            let free = free.map(|(_, size)| Part {
                words: "free on the device, outside of segments",
                size: *size,
                ink: Ink::Free,
            });
            let beside: Vec<Part<'_>> = wanted.into_iter().chain(free).collect();
            segments::map(make, found, &beside)?
        }
    };
    boxed(make, "Where it lay then, to scale", &content).map(Some)
}

fn enough(shortage: &Shortage) -> String {
    let pieces = shortage.largest_free.zip(shortage.wanted);
    match (shortage.missing, pieces) {
        (Some(missing), _) if missing > Bytes::ZERO => {
            format!("{missing} more in one piece would have been enough.")
        }
        (Some(_), Some((largest, wanted))) if largest < wanted => {
            format!("There was enough, but not in one piece: the largest free piece was {largest}.")
        }
        (Some(_), _) => "There was enough, but not in one piece.".to_owned(),
        (None, _) => "What would have been enough is not known: the error does not say.".to_owned(),
    }
}
