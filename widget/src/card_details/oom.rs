//! Memory that ran out: where it lay.

use gpumem_analyzer::{Finding, OomBreakdown};
use web_sys::Element;

use crate::dom::Maker;
use crate::model::Model;
use gpumem_page_kit::bars::boxed;
use gpumem_page_kit::segments;
use gpumem_wording::no_map;

/// Where the blocks lay at that moment; why nobody looked, where it is told.
pub(super) fn map(
    make: &Maker,
    model: &Model,
    finding: &Finding,
    breakdown: &OomBreakdown,
) -> Option<Element> {
    let recording = model.recording();
    let mapped = breakdown
        .mapped
        .and_then(|run| recording.mapped(run, finding.device));
    let content = match &mapped?.found {
        Err(reason) => {
            vec![make.text("p.muted", &[], &no_map(Some(reason)))]
        }
        Ok(found) => segments::map(make, found, model.units()),
    };
    Some(boxed(make, "Where it lay then", &content))
}
