//! A line whose result lives through most of a run.

use super::{Teller, Words, code};
use gpumem_model::source_text;
use gpumem_model::units::Bytes;

pub(super) fn words(teller: &Teller<'_>, line: u32, (held, peak): (Bytes, Bytes)) -> Words {
    let units = teller.units;
    let text = teller.run().and_then(|run| teller.recording.text(run));
    let source = text.and_then(|text| source_text::line(text, line));
    let source = source.and_then(source_text::headline);
    let title = format!(
        "Line {line} of {} holds {} through most of the run and then gives it back{}",
        teller.cell(),
        units.size(held),
        teller.on_device()
    );
    let peak = format!("the run's peak is {}", units.size(peak));
    let detail = match source {
        Some(source) => format!("{} · {peak}", code(&source)),
        None => peak,
    };
    let mut words = Words::new(title, "").detail(detail);
    words.suggestions = vec![
        "`del` it as soon as it is no longer needed, or compute in smaller pieces".to_owned(),
        "a backward pass needs its inputs that long, unless `torch.utils.checkpoint` recomputes them"
            .to_owned(),
    ];
    words
}
