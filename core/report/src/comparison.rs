//! A comparison with a baseline, in words.

use super::{cut, to_text, wrapped};
use gpumem_analyzer::{CellRef, Change, Compared, GrowthSide};
use gpumem_model::units::{ByteDelta, Units};
use gpumem_wording::{Prose, code, prose};

/// So many cells that a comparison waits for are named.
const N_WAITING: usize = 3;

/// The growing cells compared with the recording that the reader knows as `baseline`, at most `width`
/// columns wide, and those that it waits for.
pub fn comparison(
    compared: &[Compared],
    waiting: &[CellRef],
    baseline: &str,
    width: usize,
) -> String {
    if compared.is_empty() {
        let outcome = outcome(compared, waiting, Units::Binary).1.plain();
        let line = wrapped(&format!("Against {baseline}: {outcome}"), width);
        return to_text(&[line]);
    }
    let mut lines = vec![cut(&format!("Against {baseline}:"), width)];
    lines.extend(compared.iter().map(|entry| cut(&line(entry), width)));
    if !waiting.is_empty() {
        lines.push(wrapped(&waits_for(waiting).plain(), width));
    }
    to_text(&lines)
}

/// What a comparison comes to: a sign, and a sentence. What grows more comes first, then what was fixed.
pub fn outcome(compared: &[Compared], waiting: &[CellRef], units: Units) -> (&'static str, Prose) {
    let Some(entry) = compared.first() else {
        return match waiting {
            [] => (
                "✓",
                "Of the cells that ran since, none grew then and none grows now.".into(),
            ),
            waiting => ("○", waits_for(waiting)),
        };
    };
    let what = match entry.change {
        Change::Worse => "grows more",
        Change::New => "grows now",
        Change::Same => "still grows",
        Change::Better => "grows less",
        Change::Fixed => "no longer grows",
    };
    let unit = if entry.steps { "step" } else { "run" };
    let side = |side: &GrowthSide| units.change(side.bytes_per_run);
    let now = side(&entry.after);
    let figures = match &entry.before {
        Some(before) => format!("{} a {unit} before, {now} now", side(before)),
        None => format!("{now} a {unit}"),
    };
    let sentence = prose![code(&entry.cell.label), format!(" {what}: {figures}.")];
    (change_icon(entry.change), sentence)
}

/// `Waiting for …: run it again to compare.`
fn waits_for(waiting: &[CellRef]) -> Prose {
    let labels = waiting.iter().take(N_WAITING);
    let labels: Vec<Prose> = labels.map(|cell| code(&cell.label).into()).collect();
    let more = match waiting.len().saturating_sub(N_WAITING) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let it = if waiting.len() == 1 { "it" } else { "them" };
    prose![
        "Waiting for ",
        Prose::joined(&labels, ", "),
        format!("{more}: run {it} again to compare.")
    ]
}

fn line(entry: &Compared) -> String {
    let unit = if entry.steps { "step" } else { "run" };
    let then = entry
        .before
        .as_ref()
        .map_or_else(|| "not there".to_owned(), kept);
    let off = match entry.uncertainty.get() {
        0 => String::new(),
        _ => format!(" ± {}", entry.uncertainty),
    };
    let change = match entry.difference {
        ByteDelta::ZERO => "no difference".to_owned(),
        difference => format!("{difference}{off}"),
    };
    format!(
        "{} {:<6} {} · {}: {then} → {} a {unit} ({change})",
        change_icon(entry.change),
        entry.change.name(),
        entry.device,
        entry.cell.label,
        kept(&entry.after),
    )
}

fn kept(side: &GrowthSide) -> String {
    side.bytes_per_run.to_string()
}

/// The sign in front of a change.
pub fn change_icon(change: Change) -> &'static str {
    match change {
        Change::Worse | Change::New => "▲",
        Change::Same => "◆",
        Change::Better => "○",
        Change::Fixed => "✓",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_analyzer::testing::{run, session};
    use gpumem_analyzer::{Rules, compare, waiting};
    use gpumem_model::recording::Recording;

    #[track_caller]
    fn check(before_mib: i64, after_mib: i64, expected: &str) {
        let of = |n_mib: i64| session(&[("f()", &vec![run(n_mib); 12])]).0;
        let compared = compare(&of(after_mib), &of(before_mib), &Rules::default());
        assert_eq!(comparison(&compared, &[], "monday", 80), expected);
    }

    #[test]
    fn a_fix_is_told_with_what_it_saves() {
        check(
            40,
            0,
            "Against monday:\n✓ fixed  sim:0 · f(): +40 MiB → 0 B a run (−40 MiB ± 205 KiB)",
        );
        check(
            0,
            0,
            "Against monday: Of the cells that ran since, none grew then and none grows now.",
        );
    }

    #[test]
    fn cells_that_have_not_run_again_are_waited_for() {
        let plays = vec![run(40); 12];
        let sources = ["a()", "b()", "c()", "d()", "e()"];
        let all = sources.map(|source| (source, plays.as_slice()));
        let (before, since) = (session(&all).0, session(&all[..1]).0);
        let check = |after: &Recording, expected: &str| {
            let rules = Rules::default();
            let compared = compare(after, &before, &rules);
            let text = comparison(&compared, &waiting(after, &before, &rules), "monday", 100);
            assert_eq!(text.lines().last(), Some(expected), "{text}");
        };
        let all =
            "Against monday: Waiting for a(), b(), c() and 2 more: run them again to compare.";
        check(&Recording::default(), all);
        check(
            &since,
            "Waiting for b(), c(), d() and 1 more: run them again to compare.",
        );
        check(
            &before,
            "◆ same   sim:0 · e(): +40 MiB → +40 MiB a run (no difference)",
        );
    }

    #[test]
    fn the_outcome_is_what_grows_more_or_what_was_fixed() {
        let of = |n_mib: [i64; 2]| {
            let plays = n_mib.map(|n| vec![run(n); 12]);
            session(&[("f()", &plays[0]), ("g()", &plays[1])]).0
        };
        let check = |before: [i64; 2], after: [i64; 2], expected: (&str, &str)| {
            let compared = compare(&of(after), &of(before), &Rules::default());
            let (sign, words) = outcome(&compared, &[], Units::Binary);
            assert_eq!((sign, &*words.ticked()), expected);
        };
        let fixed = "`g()` no longer grows: +40 MiB a run before, 0 B now.";
        check([40, 40], [40, 0], ("✓", fixed));
        let worse = "`f()` grows more: +40 MiB a run before, +80 MiB now.";
        check([40, 40], [80, 0], ("▲", worse));
    }
}
