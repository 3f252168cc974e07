//! Memory that ran out: what was there, what was wanted, and what would have been enough.

use gpumem_core::analyze::{Finding, OomBreakdown, OomPart};
use gpumem_core::collect::{CollectVec, ExtendVec};
use gpumem_core::decimal::rounded;
use gpumem_core::units::{Bytes, Units};
use gpumem_core::wording;
use web_sys::Element;

use super::bars::{Ink, Part, after, bar, boxed};
use super::segments;
use crate::dom::{Dom, Maker};
use crate::model::Model;

/// So many holders are shown.
const N_NAMES: usize = 6;
/// The end is shown by itself if that makes it so many times as large.
const WORTH_ENLARGING: f64 = 2.0;

/// Who held the device, then its end by itself, and what was wanted beyond it on the same scale.
pub(super) fn body(make: &Maker, breakdown: &OomBreakdown, units: Units) -> Dom<Element> {
    let names: Vec<String> = breakdown
        .holders
        .iter()
        .map(wording::oom_holder)
        .collect_vec();
    let tensors = breakdown.part(OomPart::Tensors).unwrap_or_default();
    let mut parts: Vec<Part<'_>> = Vec::new();
    for (name, holder) in names.iter().zip(&breakdown.holders).take(N_NAMES) {
        parts.push(part(name, holder.used, Ink::Held));
    }
    let named: Bytes = parts.iter().map(|part| part.size).sum();
    let rest = tensors.saturating_sub(named);
    let words = if names.is_empty() {
        "in tensors"
    } else {
        "other tensors"
    };
    if rest > Bytes::ZERO {
        parts.push(part(words, rest, Ink::Other));
    }
    let tail: Vec<Part<'_>> = breakdown
        .parts
        .iter()
        .filter(|(part, _)| *part != OomPart::Tensors)
        .map(|(what, size)| {
            let ink = match what {
                OomPart::Cache => Ink::Cache,
                OomPart::Free => Ink::Free,
                _ => Ink::Other,
            };
            part(wording::oom_part(*what), *size, ink)
        })
        .collect_vec();
    let total = |parts: &[Part<'_>]| -> Bytes { parts.iter().map(|part| part.size).sum() };
    let end = total(&tail);
    parts.extend_vec(tail.iter().map(|it| part(it.words, it.size, it.ink)));
    let (free, wanted) = (
        breakdown.free.unwrap_or_default(),
        breakdown.wanted.unwrap_or_default(),
    );
    let beyond = wanted.saturating_sub(free);
    let held = total(&parts);
    let all = (held + beyond, units);
    let mut content = Vec::new();
    if !parts.is_empty() {
        let label = match breakdown.room {
            Some(room) => format!("there was, of {}", units.size(room)),
            None => "there was".to_owned(),
        };
        content.push(bar(make, &label, &parts, all)?);
    }
    let window = end + Bytes::new(end.get() / 4) + beyond;
    let times = all.0.as_f64() / window.as_f64().max(1.0);
    let is_enlarged = times >= WORTH_ENLARGING && end > Bytes::ZERO;
    let (whole, before) = if is_enlarged {
        let before = window.saturating_sub(end).saturating_sub(beyond);
        let mut parts = vec![part("in tensors", before, Ink::Held)];
        parts.extend_vec(tail);
        let label = format!("its end, {} times as large", rounded(times, 0));
        content.push(bar(make, &label, &parts, (window, units))?);
        (window, window)
    } else {
        (all.0, all.0)
    };
    if wanted > Bytes::ZERO {
        let gap = before.saturating_sub(beyond).saturating_sub(free);
        let request = part("in one piece", wanted, Ink::Over);
        content.push(after(make, "wanted", gap, (&request, (whole, units)))?);
    }
    content.push(make.text("p", &[], &enough(breakdown, units))?);
    boxed(make, "Who held it when it ran out", &content)
}

fn part(words: &str, size: Bytes, ink: Ink) -> Part<'_> {
    Part { words, size, ink }
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
            vec![make.prose("p.muted", &[], &words)?]
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
            let beside: Vec<Part<'_>> = wanted.into_iter().chain(free).collect_vec();
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
