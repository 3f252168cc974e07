//! The conclusion as Markdown, for an issue.

use super::counts;
use crate::analyze::Analysis;
use crate::chart::cells;
use crate::recording::{DeviceIdx, Recording};
use crate::units::Units;
use crate::wording::{calm_sign, capitalised, fix_reason, healthy, icon, sentence, verdict_words};

/// So many cells are in the table.
const N_CELLS: usize = 20;

/// The findings, the worst one with its fix, and what each cell kept on a device.
pub fn markdown(recording: &Recording, analysis: &Analysis, device: DeviceIdx) -> String {
    let mut lines = Vec::new();
    let verdicts = analysis.verdicts();
    if verdicts.is_empty() {
        let words = healthy(recording, analysis, device, Units::Binary);
        lines.push(format!(
            "### {} {}\n\n{}\n",
            calm_sign(recording),
            words.title,
            words.outlook
        ));
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
    lines.push("\n| | cell | In | kept | state |\n|---|---|---|---:|---|".to_owned());
    lines.extend(rows(recording, analysis, device));
    let label = recording.devices().get(device.get());
    let label = label.map_or_else(String::new, |it| format!(" · {} {}", it.label, it.name));
    lines.push(format!("\ngpumem · {}{label}", counts(recording)));
    lines.join("\n")
}

/// A line for each cell, in the order of the page.
fn rows(recording: &Recording, analysis: &Analysis, device: DeviceIdx) -> Vec<String> {
    let rows = cells(recording, analysis, device).rows.into_iter();
    let lines = rows.take(N_CELLS).map(|row| {
        let name = row.name.replace('`', "'").replace('|', "\\|");
        let number = row.execution_count;
        let number = number.map_or(String::new(), |n| format!("[{n}]"));
        let sign = row.sign.map_or("", |(sign, _)| sign);
        format!(
            "| {sign} | `{name}` | {number} | {} | {} |",
            row.total, row.state
        )
    });
    lines.collect()
}
