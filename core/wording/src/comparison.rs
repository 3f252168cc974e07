//! What became of growth since a baseline.

use super::{N_NAMES, Prose, Sign, code, prose};
use gpumem_analyzer::{CellRef, GrowthChange, GrowthSide, SessionComparison};
use gpumem_model::units::Units;

/// What a comparison comes to: a sign, and a sentence. What grows more comes first, then what was fixed.
pub fn outcome(compared: &[SessionComparison], waiting: &[CellRef], units: Units) -> (Sign, Prose) {
    let Some(entry) = compared.first() else {
        return match waiting {
            [] => (
                Sign::Fine,
                "Of the cells that ran since, none grew then and none grows now.".into(),
            ),
            waiting => (Sign::Note, waits_for(waiting)),
        };
    };
    let what = match entry.change {
        GrowthChange::Worse => "grows more",
        GrowthChange::New => "grows now",
        GrowthChange::Same => "still grows",
        GrowthChange::Better => "grows less",
        GrowthChange::Fixed => "no longer grows",
    };
    let unit = if entry.steps { "step" } else { "run" };
    let side = |side: &GrowthSide| units.change(side.bytes_per_run);
    let now = side(&entry.after);
    let figures = match &entry.before {
        Some(before) => format!("{} a {unit} before, {now} now", side(before)),
        None => format!("{now} a {unit}"),
    };
    let sentence = prose![code(&entry.cell.label), format!(" {what}: {figures}.")];
    (entry.change.into(), sentence)
}

/// `Waiting for …: run it again to compare.`
pub fn waits_for(waiting: &[CellRef]) -> Prose {
    let labels = waiting.iter().take(N_NAMES);
    let labels: Vec<Prose> = labels.map(|cell| code(&cell.label).into()).collect();
    let more = match waiting.len().saturating_sub(N_NAMES) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_analyzer::testing::{run, session};
    use gpumem_analyzer::{Rules, compare};

    #[test]
    fn the_outcome_is_what_grows_more_or_what_was_fixed() {
        let of = |n_mib: [i64; 2]| {
            let plays = n_mib.map(|n| vec![run(n); 12]);
            session(&[("f()", &plays[0]), ("g()", &plays[1])]).0
        };
        let check = |before: [i64; 2], after: [i64; 2], expected: (Sign, &str)| {
            let compared = compare(&of(after), &of(before), &Rules::default());
            let (sign, words) = outcome(&compared, &[], Units::Binary);
            assert_eq!((sign, &*words.ticked()), expected);
        };
        let fixed = "`g()` no longer grows: +40 MiB a run before, 0 B now.";
        check([40, 40], [40, 0], (Sign::Fine, fixed));
        let worse = "`f()` grows more: +40 MiB a run before, +80 MiB now.";
        check([40, 40], [80, 0], (Sign::Alert, worse));
    }
}
