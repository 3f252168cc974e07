//! Memory that `IPython` or Python keeps after the user released it, and how to free it.

use gpumem_analyzer::{Finding, RetentionDetails};
use web_sys::Element;

use crate::dom::Maker;
use crate::model::ReportModel;
use gpumem_page_kit::bars::{BarInk, BarPart, bar, boxed};
use gpumem_wording::left_by;

/// How much of the device it is, since when, and the line to type.
pub(super) fn body(
    make: &Maker,
    model: &ReportModel,
    finding: &Finding,
    retained: &RetentionDetails,
) -> Element {
    let RetentionDetails { place, kept, .. } = retained;
    let units = model.units();
    let mut devices = model.analysis().devices.iter();
    let device = devices.find(|device| device.device == finding.device);
    let capacity = device.and_then(|device| device.capacity);
    let part = BarPart {
        words: place.description().unwrap_or("kept"),
        size: *kept,
        ink: BarInk::Over,
    };
    let label = match capacity {
        Some(capacity) => format!("kept, of {}", units.size(capacity)),
        None => "kept".to_owned(),
    };
    let mut content = vec![bar(
        make,
        &label,
        &[part],
        (capacity.unwrap_or(*kept), units),
    )];
    let words = left_by(model.recording(), retained);
    content.push(make.text("p", &[("dir", "auto")], &words));
    if let Some(command) = place.release().filter(|_| finding.withdrawn.is_none()) {
        let code = make.text("code", &[("dir", "ltr")], command);
        let copy = make.link("copy", command, "copy");
        content.push(make.group("p.command", &[], &[&code, &copy]));
    }
    boxed(make, "Kept", &content)
}
