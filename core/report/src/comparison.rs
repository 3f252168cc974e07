//! A comparison with a baseline, in words.

use super::{cut, to_text, wrapped};
use gpumem_analyzer::{CellRef, GrowthSide, SessionComparison};
use gpumem_model::units::{ByteDelta, Units};
use gpumem_wording::{Sign, outcome, waits_for};

/// The growing cells compared with the recording that the reader knows as `baseline`, at most `width`
/// columns wide, and those that it waits for.
pub fn comparison(
    compared: &[SessionComparison],
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

fn line(entry: &SessionComparison) -> String {
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
        Sign::from(entry.change),
        entry.change.name(),
        entry.device,
        entry.cell.label,
        kept(&entry.after),
    )
}

fn kept(side: &GrowthSide) -> String {
    side.bytes_per_run.to_string()
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
    fn a_fix_is_shown_with_its_savings() {
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
}
