//! Memory that ran out: what would have been enough, and where it lay.

use gpumem_analyzer::{Cure, Finding, FindingDetails, OomBreakdown};
use gpumem_model::units::{Bytes, Units};
use web_sys::{Element, HtmlElement};

use crate::dom::{Maker, add, flag, set_style, share};
use crate::model::ReportModel;
use gpumem_page_kit::bars::boxed;
use gpumem_page_kit::segments;
use gpumem_wording::{CURES, CureRow, Sign, no_map};

/// The scale of a bar, in multiples of the missing bytes.
const TIMES_MISSING: u64 = 3;

/// What to do, each with how much it frees, drawn against what was missing, and whether that suffices.
pub(crate) fn cures(
    make: &Maker,
    finding: &Finding,
    rows: &[CureRow],
    units: Units,
) -> Option<Element> {
    let FindingDetails::OutOfMemory(breakdown) = &finding.details else {
        return None;
    };
    let list: HtmlElement = make.typed("ol", &[("class", "cures")]);
    set_style(&list, "--times-missing", &TIMES_MISSING.to_string());
    for (cure, row) in breakdown.cures.iter().zip(rows) {
        let action = make.prose("p", &[("dir", "auto")], &row.action);
        if let Some(command) = &cure.command {
            add(&action, &make.link("copy", command, "copy"));
        }
        let what = make.group("div", &[], &[&action]);
        if !row.remark.is_empty() {
            let remark = row.remark.clone().capitalised();
            add(&what, &make.prose("p.muted", &[("dir", "auto")], &remark));
        }
        let bar = bar(make, cure, breakdown.missing, units);
        let frees = make.text("b", &[], &row.frees);
        let sign = if row.is_enough {
            Sign::Fine.glyph()
        } else {
            ""
        };
        let sign = make.text("span", &[("aria-hidden", "true")], sign);
        let fit = make.text("span", &[], &row.fit);
        let fit = make.group("span.fit", &[], &[&sign, &fit]);
        let item = make.group("li", &[], &[&what, &bar, &frees, &fit]);
        flag(&item, "data-enough", row.is_enough);
        add(&list, &item);
    }
    let title = make.text("h4", &[], CURES);
    (!rows.is_empty()).then(|| make.group("div", &[], &[&title, &list]))
}

/// What it frees, after what those above it do, up to a mark at what was missing.
fn bar(make: &Maker, cure: &Cure, missing: Option<Bytes>, units: Units) -> Element {
    let missing = missing.filter(|it| *it > Bytes::ZERO);
    let (Some(missing), Some(frees)) = (missing, cure.frees) else {
        return make.empty("div", &[]);
    };
    let whole = missing.as_f64() * TIMES_MISSING as f64;
    let track = make.empty("div.reach", &[]);
    let above = cure.above.as_f64() / whole;
    let (own, room) = (frees.as_f64() / whole, 1.0 - above);
    for (class, part) in [("above", above), ("own", own.min(room))] {
        let fill: HtmlElement = make.typed("i", &[("class", class)]);
        share(&fill, part);
        add(&track, &fill);
    }
    if own > room {
        add(&track, &make.text("b", &[], "»"));
    }
    let mark = format!("{} missing", units.size(missing));
    let mark = make.text("span", &[], &mark);
    // The figures beside it say the same.
    make.group("div", &[("aria-hidden", "true")], &[&track, &mark])
}

/// The map of blocks at that moment, or the recorded reason why there is none.
pub(super) fn map(
    make: &Maker,
    model: &ReportModel,
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
