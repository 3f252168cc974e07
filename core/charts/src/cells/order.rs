//! The order of rows, and the summary of hidden rows.

use std::cmp::Reverse;

use super::CellRow;
use gpumem_model::severity::Severity;
use gpumem_model::units::{ByteDelta, Units, count};

/// At most this many of the rest are named; further ones are summed up.
const NAMED: usize = 3;
/// With more cells than this, the rest are not named.
const MANY: usize = 20;
const NAME_LETTERS: usize = 24;

/// Severity, then total. Findings for information only do not count.
pub(super) fn sort(rows: &mut [CellRow]) {
    rows.sort_by_key(|row| {
        let severity = match row.sign {
            _ if row.is_leak => Severity::Critical,
            Some((_, severity)) => severity,
            None => Severity::Info,
        };
        (
            Reverse((severity, row.is_leak)),
            Reverse(row.total),
            row.cell,
        )
    });
}

/// A line about the rows that are not shown.
#[derive(Debug, Clone, Copy)]
pub struct HiddenRows<'a> {
    /// They are in the order of the rows.
    pub rows: &'a [CellRow],
    /// How many cells there are, with those that are shown.
    pub n_cells: usize,
}

impl HiddenRows<'_> {
    /// `6 more cells: val_set +480 MiB, ema +192 MiB; 3 kept nothing`. Empty if there are none.
    pub fn describe(&self, units: Units) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let head = count(self.rows.len(), "more cell");
        let kept: Vec<&CellRow> = self
            .rows
            .iter()
            .filter(|row| row.total != ByteDelta::ZERO)
            .collect();
        let n_nothing = self.rows.len() - kept.len();
        if kept.is_empty() {
            return format!("{head} kept nothing");
        }
        let is_many = self.n_cells > MANY || kept.len() > NAMED + 1;
        let nothing = match (n_nothing, is_many) {
            (0, _) => String::new(),
            (n, true) => format!(", {n} nothing"),
            (n, false) => format!("; {n} kept nothing"),
        };
        if is_many {
            let sum = kept
                .iter()
                .fold(ByteDelta::ZERO, |sum, row| sum + row.total);
            let sum = units.change(sum);
            let n = kept.len();
            return format!(
                "{head}: {n} kept {} in all{nothing}",
                sum.trim_start_matches('+')
            );
        }
        let mut words = head + ": ";
        for (place, row) in kept.iter().enumerate() {
            if place > 0 {
                words += ", ";
            }
            if let Some((sign, _)) = row.sign {
                words += sign.glyph();
                words += " ";
            }
            words += &short(&row.name);
            words += " ";
            words += &units.change(row.total);
        }
        words + &nothing
    }
}

/// The name that a line gives, else what it calls: `val_set`, `losses.append(…)`.
pub(super) fn short(line: &str) -> String {
    let is_name = |text: &str| {
        text.chars()
            .all(|it| gpumem_model::source_text::is_name_letter(it) || it == '.')
    };
    let target = line.split_once(" = ").map(|(target, _)| target.trim());
    let called = line.split_once('(').map(|(called, _)| called.trim());
    match (
        target.filter(|it| is_name(it)),
        called.filter(|it| is_name(it) && !it.is_empty()),
    ) {
        (Some(target), _) => target.to_owned(),
        (None, Some(called)) => format!("{called}(…)"),
        (None, None) if line.chars().count() > NAME_LETTERS => {
            let head: String = line.chars().take(NAME_LETTERS).collect();
            head + "…"
        }
        (None, None) => line.to_owned(),
    }
}
