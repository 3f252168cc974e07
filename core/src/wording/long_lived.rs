//! A line whose result lives through most of a run.

use super::{Teller, Words};
use crate::source_text;
use crate::units::Bytes;

pub(super) fn words(teller: &Teller<'_>, line: u32, (held, peak): (Bytes, Bytes)) -> Words {
    let units = teller.units;
    let text = teller.run().and_then(|run| teller.recording.text(run));
    let source = text.and_then(|text| text.lines().nth((line as usize).checked_sub(1)?));
    let place = match source.and_then(source_text::headline) {
        Some(source) => format!("line {line} ({source})"),
        None => format!("line {line}"),
    };
    Words {
        title: format!(
            "{}: {place} holds {} through most of the run",
            teller.cell(),
            units.size(held)
        ),
        detail: format!(
            "at its peak of {}, and gives it back before the end",
            units.size(peak)
        ),
        suggestions: vec![
            "`del` it as soon as it is no longer needed, or compute in smaller pieces".to_owned(),
            "a backward pass needs its inputs that long, unless `torch.utils.checkpoint` recomputes them"
                .to_owned(),
        ],
    }
}
