//! The findings as text: the worst one with its fix, then the others.

use super::{in_parts, wrapped};
use gpumem_analyzer::{Analysis, Finding, Severity, Verdict};
use gpumem_charts::default_device;
use gpumem_heap::Fix;
use gpumem_model::recording::Recording;
use gpumem_model::units::Units;
use gpumem_model::units::count;
use gpumem_wording::{
    Words, calm_sign, capitalised, fix_after_cell, fix_reason, healthy, icon, plain, sentence,
    tally, unmarked, verdict_words,
};

/// Findings beyond these are only counted: nobody reads on, and JSON has them all.
const N_FINDINGS: usize = 100;

/// The verdict, and the findings that follow.
pub(super) fn lines(recording: &Recording, analysis: &Analysis, width: usize) -> Vec<String> {
    let verdicts = analysis.verdicts();
    let mut lines = Vec::new();
    let is_bad = |verdict: &Verdict<'_>| verdict.first().severity > Severity::Info;
    if !verdicts.first().is_some_and(is_bad) {
        let device = default_device(recording, analysis);
        let words = healthy(
            recording,
            analysis,
            device.unwrap_or_default(),
            Units::Binary,
        );
        let sign = calm_sign(recording, analysis).replace('○', "");
        let words = format!("{sign} {}. {}", words.title, unmarked(&words.outlook));
        lines.push(wrapped(words.trim(), width));
        lines.push(String::new());
    }
    let mut fixes: Vec<&str> = Vec::new();
    for (idx, verdict) in verdicts.iter().take(N_FINDINGS).enumerate() {
        let words = verdict_words(recording, verdict, Units::Binary);
        let (finding, is_first) = (verdict.first(), idx == 0 && is_bad(verdict));
        // An error that a leak led to has the leak's fix, which stands above.
        let fix = finding.fix.as_ref();
        let fix = fix.filter(|fix| !fixes.contains(&&*fix.after));
        fixes.extend(fix.map(|fix| &*fix.after));
        let fix = fix.map(|fix| fix_lines(fix, width)).unwrap_or_default();
        let form = (is_first, width);
        lines.extend(verdict_lines(recording, finding, (&words, fix), form));
    }
    let n_more = verdicts.len().saturating_sub(N_FINDINGS);
    if n_more > 0 {
        let more = count(n_more, "more finding");
        lines.push(format!("… and {more}: see .to_json() or .findings"));
    }
    if !recording.runs().is_empty() {
        let n_fine = analysis.n_fine_cells(recording);
        let tally = tally(&verdicts.iter().collect::<Vec<_>>(), n_fine);
        let tally = tally.iter().map(|it| format!("{} {}", it.sign, it.words));
        lines.push(tally.collect::<Vec<_>>().join("  "));
    }
    lines
}

fn verdict_lines(
    recording: &Recording,
    finding: &Finding,
    (words, fix): (&Words, Vec<String>),
    (is_first, width): (bool, usize),
) -> Vec<String> {
    let place = finding.cell.as_ref().and_then(|cell| cell.execution_count);
    let line = finding.fix_line(recording);
    let place = place.map(|n| match line {
        Some(line) => format!("In [{n}], line {line}"),
        None => format!("In [{n}]"),
    });
    let mut lines = if is_first {
        let title = format!("{} {}", icon(finding), plain(&words.title));
        let outlook = plain(&capitalised(&words.outlook));
        let outlook = (!outlook.is_empty()).then(|| wrapped(&format!("  {outlook}"), width));
        [Some(wrapped(&title, width)), outlook]
            .into_iter()
            .flatten()
            .collect()
    } else {
        let row = format!("{} {}", icon(finding), plain(&words.row));
        vec![wrapped(&row, width)]
    };
    let detail = Some(unmarked(&words.detail)).filter(|detail| !detail.is_empty());
    let facts: Vec<String> = place.into_iter().chain(detail).collect();
    if !facts.is_empty() {
        lines.push(wrapped(&format!("  {}", facts.join(" · ")), width));
    }
    lines.extend(fix);
    let advice = words.suggestions.iter();
    lines.extend(advice.map(|advice| wrapped(&format!("  → {advice}"), width)));
    lines.push(String::new());
    lines
}

/// The user's line and what to write in its place, as in a patch: code is never broken.
pub(super) fn fix_lines(fix: &Fix, width: usize) -> Vec<String> {
    let side = |mark: char, code: &str| -> Vec<String> {
        code.lines()
            .map(|line| format!("    {mark} {line}"))
            .collect()
    };
    let mut lines = Vec::new();
    lines.extend(fix.before.iter().flat_map(|code| side('-', code)));
    lines.extend(side('+', &fix.after));
    lines.push(wrapped(&format!("  {}", sentence(&fix_reason(fix))), width));
    lines
}

/// A finding below a cell, without what to do.
pub(super) fn growth_below_cell(recording: &Recording, finding: &Finding, width: usize) -> String {
    let words = gpumem_wording::words(recording, finding, Units::Binary);
    let mut parts = words.line;
    if let Some(first) = parts.first_mut() {
        *first = format!("{} {first}", icon(finding));
    }
    in_parts(&parts, width, "  ")
}

/// A finding below a cell: `▲ losses +420 MiB every run (5 of 5) · full in about 13 runs`, and what
/// to do.
pub(super) fn below_cell(recording: &Recording, finding: &Finding, width: usize) -> String {
    let found = growth_below_cell(recording, finding, width);
    let fix = finding.fix.as_ref().map(fix_after_cell);
    let command = finding.release();
    let fix = match (command, fix) {
        (Some(command), _) => Some(command.to_owned()),
        (None, fix) => fix.filter(|fix| !fix.is_empty()),
    };
    let fix = fix.map(|fix| format!("  fix: {fix}"));
    let report = match fix {
        Some(_) => "%gpumem_report",
        None => "  %gpumem_report shows it in full",
    };
    let parts: Vec<String> = fix.into_iter().chain([report.to_owned()]).collect();
    format!("{found}\n{}", in_parts(&parts, width, "  "))
}
