//! The conclusion as Markdown, for an issue.

use super::counts;
use crate::analyze::{Analysis, RunRow, cell_label};
use crate::collect::{CollectVec, ExtendVec};
use crate::recording::{CellIdx, DeviceIdx, Recording};
use crate::units::{ByteDelta, Units};
use crate::wording::{capitalised, fix_reason, healthy, icon, sentence, verdict_words};

/// So many cells are in the table.
const N_CELLS: usize = 20;

/// The findings, the worst one with its fix, and what each cell kept on a device.
///
/// ```
/// use gpumem_core::analyze::{Rules, analyze};
/// use gpumem_core::recording::DeviceIdx;
/// use gpumem_core::report::markdown;
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
/// # use example::leaking;
///
/// let recording = leaking();
/// let analysis = analyze(&recording, &Rules::default());
/// let text = markdown(&recording, &analysis, DeviceIdx(0));
/// assert!(text.starts_with("### ▲ `losses.append(step(batch))` leaks 2 MiB a run\n"));
/// assert!(text.contains("| `losses.append(step(batch))` | [12] | 12 | +24 MiB |"));
/// ```
pub fn markdown(recording: &Recording, analysis: &Analysis, device: DeviceIdx) -> String {
    let mut lines = Vec::new();
    let verdicts = analysis.verdicts();
    if verdicts.is_empty() {
        let words = healthy(recording, analysis, device, Units::Binary);
        lines.push(format!("### ✓ {}\n\n{}\n", words.title, words.outlook));
    }
    for (idx, verdict) in verdicts.iter().enumerate() {
        let words = verdict_words(recording, verdict, Units::Binary);
        let finding = verdict.first();
        if idx > 0 {
            lines.push(format!("- {} {}", icon(finding), words.row));
            continue;
        }
        let outlook = capitalised(&words.outlook);
        lines.push(format!(
            "### {} {}\n\n{outlook}\n",
            icon(finding),
            words.title
        ));
        if let Some(fix) = &finding.fix {
            let side = |mark: char, code: &str| {
                let lines = code.lines().map(|line| format!("{mark} {line}\n"));
                lines.collect::<String>()
            };
            let before = fix.before.as_ref().map(|code| side('-', code));
            let (before, after) = (before.unwrap_or_default(), side('+', &fix.after));
            let why = sentence(&fix_reason(fix));
            lines.push(format!("```diff\n{before}{after}```\n{why}\n"));
        }
    }
    lines.push("\n| cell | In | runs | kept |\n|---|---|---:|---:|".to_owned());
    lines.extend_vec(cells(recording, analysis, device));
    let label = recording.devices().get(device.get());
    let label = label.map_or_else(String::new, |it| format!(" · {} {}", it.label, it.name));
    lines.push(format!("\ngpumem · {}{label}", counts(recording)));
    lines.join("\n")
}

/// A line for each cell, those that kept most first.
fn cells(recording: &Recording, analysis: &Analysis, device: DeviceIdx) -> Vec<String> {
    let mut cells: Vec<(CellIdx, usize, ByteDelta, &RunRow)> = Vec::new();
    for row in analysis.rows.iter().filter(|row| row.device == device) {
        let run = recording.run(row.run);
        if run.parent.is_some() {
            continue;
        }
        let kept = row.kept.unwrap_or_default();
        match cells.iter_mut().find(|(cell, ..)| *cell == run.cell) {
            Some((_, n, total, last)) => {
                (*n, *total, *last) = (*n + 1, *total + kept, row);
            }
            None => cells.push((run.cell, 1, kept, row)),
        }
    }
    crate::sort::sort_by_key(&mut cells, |(_, _, kept, _)| std::cmp::Reverse(*kept));
    let lines = cells.into_iter().take(N_CELLS).map(|(_, n, kept, last)| {
        let run = recording.run(last.run);
        let label = cell_label(recording, run)
            .replace('`', "'")
            .replace('|', "\\|");
        let number = run
            .execution_count
            .map_or(String::new(), |n| format!("[{n}]"));
        format!("| `{label}` | {number} | {n} | {kept} |")
    });
    lines.collect_vec()
}
