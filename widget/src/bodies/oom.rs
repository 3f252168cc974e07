//! Memory that ran out: what was there, what was wanted, and what would have been enough.

use gpumem_core::analyze::{Shortage, ShortagePart};
use gpumem_core::units::Bytes;
use web_sys::Element;

use super::bars::{Ink, Part, bar, boxed};
use crate::dom::{Dom, Maker};

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
