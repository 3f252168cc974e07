//! A comparison with a baseline, in words.

use super::cut;
use crate::analyze::{Change, Compared, GrowthSide};
use crate::collect::ExtendVec;
use crate::printable::printable_lines;
use crate::units::ByteDelta;

/// The growing cells compared with the recording that the reader knows as `baseline`, at most `width`
/// columns wide.
///
/// ```
/// use gpumem_core::analyze::{Rules, compare};
/// use gpumem_core::report::comparison;
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
/// # use example::leaking;
///
/// let (before, after) = (leaking(), leaking());
/// let compared = compare(&after, &before, &Rules::default());
/// let text = comparison(&compared, "monday.gpumem", 80);
/// assert!(text.starts_with("Against monday.gpumem:\n◆ same"));
/// ```
pub fn comparison(compared: &[Compared], baseline: &str, width: usize) -> String {
    if compared.is_empty() {
        return format!(
            "Against {baseline}: of the cells that ran since, none grew then and none grows now."
        );
    }
    let mut lines = vec![format!("Against {baseline}:")];
    lines.extend_vec(compared.iter().map(|entry| cut(&line(entry), width)));
    printable_lines(&lines.join("\n"))
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
///
/// ```
/// use gpumem_core::analyze::Change;
/// use gpumem_core::report::change_icon;
///
/// assert_eq!((change_icon(Change::Worse), change_icon(Change::Fixed)), ("▲", "✓"));
/// ```
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
    use crate::analyze::{Rules, compare};
    use crate::testing::{run, session};

    #[track_caller]
    fn check(before_mib: i64, after_mib: i64, expected: &str) {
        let of = |n_mib: i64| session(&[("f()", &vec![run(n_mib); 12])]).0;
        let compared = compare(&of(after_mib), &of(before_mib), &Rules::default());
        assert_eq!(comparison(&compared, "monday", 80), expected);
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
            "Against monday: of the cells that ran since, none grew then and none grows now.",
        );
    }
}
