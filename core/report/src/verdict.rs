//! The findings as text: the worst one with its fix, then the others.

use super::text_table::{left, right, wrapped_table};
use super::{in_parts, wrapped};
use gpumem_analyzer::{Analysis, Finding, FindingGroup, Severity};
use gpumem_charts::default_device;
use gpumem_model::recording::Recording;
use gpumem_model::units::{Units, count};
use gpumem_wording::{
    CURES, CureRow, OutputLimits, Presentation, Prose, Remedy, Sign, healthy, present,
    present_verdict, tally,
};

/// The verdict, and the findings that follow.
pub(super) fn lines(recording: &Recording, analysis: &Analysis, width: usize) -> Vec<String> {
    let verdicts = analysis.verdicts();
    let device = default_device(recording, analysis).unwrap_or_default();
    let mut lines = Vec::new();
    let is_bad = |verdict: &FindingGroup<'_>| verdict.first().severity > Severity::Info;
    let has_bad = verdicts.first().is_some_and(is_bad);
    let n_shown = OutputLimits::TEXT.n_rows + usize::from(has_bad);
    if !has_bad {
        let calm = healthy(recording, analysis, device, Units::Binary);
        let sign = match calm.sign {
            Sign::Note => "",
            sign => sign.glyph(),
        };
        let (title, outlook) = (calm.title.ticked(), calm.outlook.ticked());
        lines.push(wrapped(format!("{sign} {title}. {outlook}").trim(), width));
        lines.push(String::new());
    }
    let mut shown: Vec<String> = Vec::new();
    for (idx, verdict) in verdicts.iter().take(n_shown).enumerate() {
        let finding = present_verdict(recording, verdict, Units::Binary);
        lines.extend(head(&finding, idx == 0 && has_bad, width));
        // One cure is a sentence, several are a table.
        let (cures, advice) = if finding.cures.len() > 1 {
            (cure_lines(&finding.cures, width), finding.advice)
        } else {
            (Vec::new(), finding.suggestions())
        };
        // An error that a leak led to has the leak's fix, which stands above.
        let remedy = finding.remedy.filter(|it| !shown.contains(&it.after));
        if let Some(remedy) = remedy
            && let Some(reason) = &remedy.reason
        {
            lines.extend(remedy_lines(&remedy, reason, width));
            shown.push(remedy.after);
        }
        lines.extend(cures);
        let advice = advice.iter().map(Prose::ticked);
        lines.extend(advice.map(|it| wrapped(&format!("  → {it}"), width)));
        lines.extend(finding.link.map(|link| format!("  {link}")));
        lines.push(String::new());
    }
    let n_more = verdicts.len().saturating_sub(n_shown);
    if n_more > 0 {
        let more = count(n_more, "more finding");
        lines.push(format!("… and {more}: see .to_json() or .findings"));
    }
    if !recording.runs().is_empty() {
        let tally = tally(
            recording,
            analysis,
            device,
            &verdicts.iter().collect::<Vec<_>>(),
        );
        let tally = tally.iter().map(|it| format!("{} {}", it.sign, it.words));
        lines.push(tally.collect::<Vec<_>>().join("  "));
    }
    lines
}

/// What happens, where, and what that rests on.
fn head(finding: &Presentation, is_first: bool, width: usize) -> Vec<String> {
    let (sign, mut lines) = (finding.sign, Vec::new());
    if is_first {
        lines.push(format!("{sign} {}", finding.title.plain()));
        if !finding.outlook.is_empty() {
            let outlook = finding.outlook.clone().capitalised();
            lines.push(format!("  {}", outlook.plain()));
        }
    } else {
        lines.push(format!("{sign} {}", finding.row.plain()));
    }
    let line = finding.remedy.as_ref().and_then(|it| it.line.clone());
    // Outside of a notebook there is the line alone, of the file.
    let place: Vec<String> = finding.place.clone().into_iter().chain(line).collect();
    let place = Some(place.join(", ")).filter(|place| !place.is_empty());
    let facts = finding.facts.iter().map(Prose::ticked);
    let tag = finding.tag.clone();
    let id = finding.fingerprint.filter(|_| sign != Sign::Note);
    let id = id.map(|it| format!("id {it}"));
    let facts: Vec<String> = tag
        .into_iter()
        .chain(place)
        .chain(facts)
        .chain(id)
        .collect();
    if !facts.is_empty() {
        lines.push(format!("  {}", facts.join(" · ")));
    }
    lines.iter().map(|line| wrapped(line, width)).collect()
}

/// The user's line and what to write in its place, as in a patch: code is never broken.
pub(super) fn remedy_lines(remedy: &Remedy, reason: &Prose, width: usize) -> Vec<String> {
    let side = |mark: char, code: &str| -> Vec<String> {
        code.lines()
            .map(|line| format!("    {mark} {line}"))
            .collect()
    };
    let mut lines = Vec::new();
    lines.extend(remedy.before.iter().flat_map(|code| side('-', code)));
    lines.extend(side('+', &remedy.after));
    let reason = reason.clone().sentence().ticked();
    lines.push(wrapped(&format!("  {reason}"), width));
    lines
}

/// What would have been enough: a row for each, with what it frees and whether that suffices.
fn cure_lines(cures: &[CureRow], width: usize) -> Vec<String> {
    let rows = cures.iter().enumerate().map(|(idx, cure)| {
        let number = format!("{}", idx + 1);
        let [action, remark] = [&cure.action, &cure.remark].map(Prose::ticked);
        vec![number, action, cure.frees.clone(), cure.fit.clone(), remark]
    });
    let columns = [
        right().min(5),
        left().gap(2),
        left().gap(2),
        left().gap(2),
        left().gap(2),
    ];
    let table = wrapped_table(&columns, &rows.collect::<Vec<_>>(), width);
    std::iter::once(format!("  {CURES}:"))
        .chain(table)
        .collect()
}

/// A finding below a cell, without what to do.
pub(super) fn growth_below_cell(finding: &Presentation, width: usize) -> String {
    let mut parts: Vec<String> = finding.line.iter().map(Prose::plain).collect();
    if let Some(first) = parts.first_mut() {
        *first = format!("{} {first}", finding.sign);
    }
    in_parts(&parts, width, "  ")
}

/// A finding below a cell: `▲ losses +420 MiB every run (5 of 5) · full in about 13 runs`, and what
/// to do.
pub(super) fn below_cell(recording: &Recording, finding: &Finding, width: usize) -> String {
    let finding = present(recording, finding, Units::Binary);
    let found = growth_below_cell(&finding, width);
    let parts = match finding.after_cell.as_str() {
        "" => vec!["  %gpumem_report shows it in full".to_owned()],
        fix => vec![format!("  fix: {fix}"), "%gpumem_report".to_owned()],
    };
    format!("{found}\n{}", in_parts(&parts, width, "  "))
}
