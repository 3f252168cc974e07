//! Which line of the cell it was, where a run was traced: bytes beside the source.

use gpumem_analyzer::{Finding, FindingKind};
use gpumem_model::recording::{AllocationTally, Trace};
use gpumem_model::units::{Bytes, Units};
use web_sys::{Element, HtmlElement};

use super::numbered;
use crate::dom::{Maker, add, share};
use crate::model::ReportModel;
use gpumem_page_kit::bars::boxed;

/// How many lines are shown, the largest ones.
const N_SHOWN: usize = 8;

/// The lines of the latest traced run of the finding; nothing where none was traced.
pub(super) fn body(make: &Maker, model: &ReportModel, finding: &Finding) -> Option<Element> {
    let recording = model.recording();
    let traced = finding.runs.iter().rev().find_map(|run| {
        let run = recording.run(recording.outermost(*run));
        Some((run, recording.trace(run.idx, finding.device)?))
    });
    let (run, trace) = traced?;
    let (counted, what): (fn(&AllocationTally) -> Bytes, _) = match finding.kind {
        FindingKind::LongLived => (|tally| tally.long_lived, "Lived through most of the run"),
        FindingKind::Spike | FindingKind::OutOfMemory | FindingKind::Doubling => {
            (|tally| tally.at_peak, "At the peak")
        }
        _ => (|tally| tally.retained, "Kept"),
    };
    let lines = lines(trace, counted);
    if lines.is_empty() {
        return None;
    }
    let source = recording.text(run).unwrap_or_default();
    let most = lines
        .iter()
        .map(|(_, size)| *size)
        .max()
        .unwrap_or_default();
    let table = make.empty("div.source", &[("dir", "ltr")]);
    let text = |line: Option<u32>| source.lines().nth((line? as usize).checked_sub(1)?);
    let shown = lines.iter().filter_map(|(line, _)| text(*line));
    let margin = shown.map(indent).min().unwrap_or_default();
    for (line, size) in lines {
        // What all lines are indented by says nothing here, and takes room.
        let text = text(line).map(|text| text.get(margin..).unwrap_or_default());
        for element in row(make, line, text, (size, most, model.units())) {
            add(&table, &element);
        }
    }
    let label = format!("{what}, by line{}", numbered(" of ", run));
    Some(boxed(make, &label, &[table]))
}

/// The number of a line, its text, a bar, and the size that the bar shows of the largest.
fn row(
    make: &Maker,
    line: Option<u32>,
    text: Option<&str>,
    (size, most, units): (Bytes, Bytes, Units),
) -> [Element; 4] {
    let number = line.map_or_else(String::new, |line| line.to_string());
    let words = text.unwrap_or(match line {
        Some(_) => "(its text is not kept)",
        None => "(in no line of the cell: a backward pass, a thread)",
    });
    let fill: HtmlElement = make.typed("i", &[]);
    share(&fill, size.as_f64() / most.as_f64().max(1.0));
    [
        make.text("span.number", &[], &number),
        make.text("code", &[], words.trim_end()),
        make.group("span.share", &[("aria-hidden", "true")], &[&fill]),
        make.text("b.number", &[], &units.size(size)),
    ]
}

/// How many bytes of white space a line begins with.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The lines that count most, in the order of the cell.
fn lines(trace: &Trace, counted: fn(&AllocationTally) -> Bytes) -> Vec<(Option<u32>, Bytes)> {
    let lines = trace.lines.iter();
    let mut lines: Vec<(Option<u32>, Bytes)> = lines
        .map(|line| (line.line, counted(&line.tally)))
        .filter(|(_, size)| *size > Bytes::ZERO)
        .collect();
    lines.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    lines.truncate(N_SHOWN);
    lines.sort_by_key(|(line, _)| line.unwrap_or(u32::MAX));
    lines
}
