//! A line whose result lives through most of a run.

use super::{Presentation, Prose, Teller, code, prose};
use gpumem_model::source_text;
use gpumem_model::units::Bytes;

pub(super) fn present(
    teller: &Teller<'_>,
    line: u32,
    (held, peak): (Bytes, Bytes),
) -> Presentation {
    let units = teller.units;
    let text = teller.run().and_then(|run| teller.recording.text(run));
    let source = text.and_then(|text| source_text::line(text, line));
    let source = source.and_then(source_text::headline);
    let (who, fact): (Prose, Option<Prose>) = match source {
        Some(source) => (code(&source).into(), Some(format!("line {line}").into())),
        None => (prose![format!("Line {line} of "), teller.cell()], None),
    };
    let title = prose![
        who,
        format!(
            " holds {} through most of the run and then gives it back",
            units.size(held)
        ),
        teller.on_device()
    ];
    let peak = format!("the run's peak is {}", units.size(peak));
    let mut own = Presentation::new(title, "");
    if let Some(fact) = fact {
        own = own.fact(fact);
    }
    own.fact(peak)
        .advice(prose![
            code("del"),
            " it as soon as it is no longer needed, or compute in smaller pieces"
        ])
        .advice(prose![
            "a backward pass needs its inputs that long, unless ",
            code("torch.utils.checkpoint"),
            " recomputes them"
        ])
}
