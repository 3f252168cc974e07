//! Logs without a header (`--format=csv,noheader`): guesses from its values which column is memory.
//!
//! Loads, temperatures and clocks are numbers, too. Memory is the only column of sizes with a unit, or a column
//! next to the capacity, which does not change and is never lower.

use std::collections::HashMap;

use super::columns::{Separator, SmiColumn, SmiColumns};
use super::quantity;
use crate::level_log::WallTime;

/// Number of rows that are examined.
const N_ROWS: usize = 2000;

/// The form of all fields of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldForm {
    Time,
    Uuid,
    Bus,
    /// Whole numbers up to 63, as indices are.
    Small,
    /// Other numbers without a unit.
    Number,
    /// Sizes with a unit.
    Size,
    /// Other figures with a unit, such as `35 %`.
    Figure,
    Missing,
    Text,
}

fn look(field: &str) -> FieldForm {
    let field = field.trim();
    let is_hexadecimal = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if quantity::is_missing(field) {
        return FieldForm::Missing;
    }
    if WallTime::parse(field).is_some() {
        return FieldForm::Time;
    }
    if field.starts_with("GPU-") || field.starts_with("MIG-") {
        return FieldForm::Uuid;
    }
    if field.contains(':') && field.split([':', '.']).all(is_hexadecimal) {
        return FieldForm::Bus;
    }
    if let Ok(number) = field.parse::<u64>() {
        return if number < 64 {
            FieldForm::Small
        } else {
            FieldForm::Number
        };
    }
    if field.parse::<f64>().is_ok_and(|number| number >= 0.0) {
        return FieldForm::Figure;
    }
    let is_number = field.starts_with(|c: char| c.is_ascii_digit());
    match quantity::has_unit(field) && quantity::level(field, 1).is_some() {
        true => FieldForm::Size,
        false if is_number && field.contains(' ') => FieldForm::Figure,
        false => FieldForm::Text,
    }
}

/// How certain the meaning of rows without a header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderlessRows {
    /// A log of nvidia-smi: its memory is certain, or it has what only nvidia-smi writes.
    Log,
    /// Numbers of unknown meaning.
    Numbers,
}

/// The common form of rows: most have the same number of fields, one of them a number or a size.
pub(super) fn rows_are(rows: &[&str]) -> Option<HeaderlessRows> {
    let guess = Guess::from_rows(rows)?;
    let is_theirs =
        |look: &FieldForm| matches!(look, FieldForm::Uuid | FieldForm::Bus | FieldForm::Size);
    let is_log = guess.looks.iter().any(is_theirs) || guess.columns().is_some();
    Some(if is_log {
        HeaderlessRows::Log
    } else {
        HeaderlessRows::Numbers
    })
}

/// The columns of rows without a header; `Err` with their number if none is surely memory.
pub(super) fn columns(rows: &[&str]) -> Option<Result<SmiColumns, usize>> {
    let guess = Guess::from_rows(rows)?;
    Some(guess.columns().ok_or(guess.looks.len()))
}

/// A capacity without a unit is at least this many MiB, and a level exceeds this in some row. So neither is a
/// load in percent or a temperature.
const LEAST_TOTAL: u64 = 900;
const LEAST_USED: u64 = 100;

/// More MiB than any device has.
const MOST_TOTAL: u64 = super::rows::MOST.get() >> 20;

struct Guess<'t> {
    looks: Vec<FieldForm>,
    rows: Vec<&'t str>,
}

impl<'t> Guess<'t> {
    fn from_rows(rows: &[&'t str]) -> Option<Self> {
        let n_fields = |row: &str| row.split(',').count();
        let examined = rows.iter().copied().take(N_ROWS);
        let mut counts: Vec<usize> = examined.clone().map(n_fields).collect();
        counts.sort_unstable();
        let usual = *counts.get(counts.len() / 2)?;
        let usual_rows: Vec<&str> = examined.filter(|row| n_fields(row) == usual).collect();
        let mut looks: Vec<Option<FieldForm>> = vec![None; usual];
        let mut n_rows = 0;
        for row in &usual_rows {
            let of_row = row.split(',').map(look);
            // An error line has words only.
            if of_row.clone().all(|look| look == FieldForm::Text) {
                continue;
            }
            n_rows += 1;
            for (known, look) in looks.iter_mut().zip(of_row) {
                *known = Some(match (*known, look) {
                    (None | Some(FieldForm::Missing), look) => look,
                    (Some(known), FieldForm::Missing) => known,
                    (Some(known), look) if known == look => known,
                    (
                        Some(FieldForm::Small | FieldForm::Number),
                        FieldForm::Small | FieldForm::Number,
                    ) => FieldForm::Number,
                    _ => FieldForm::Text,
                });
            }
        }
        let looks = looks.into_iter();
        let looks: Vec<FieldForm> = looks.map(|it| it.unwrap_or(FieldForm::Text)).collect();
        let is_level = |look: &FieldForm| {
            matches!(look, FieldForm::Small | FieldForm::Number | FieldForm::Size)
        };
        let is_log = n_rows * 2 > rows.len().min(N_ROWS) && looks.iter().any(is_level);
        is_log.then_some(Self {
            looks,
            rows: usual_rows,
        })
    }

    fn columns(&self) -> Option<SmiColumns> {
        let mut columns = vec![SmiColumn::Other; self.looks.len()];
        for (column, look) in columns.iter_mut().zip(&self.looks) {
            *column = match look {
                FieldForm::Time => SmiColumn::Time,
                FieldForm::Uuid => SmiColumn::Uuid,
                FieldForm::Bus => SmiColumn::Bus,
                _ => SmiColumn::Other,
            };
        }
        let of_look = |wanted: &[FieldForm]| {
            let all = 0..self.looks.len();
            let fitting = all.filter(|&at| wanted.contains(&self.looks[at]));
            fitting.collect::<Vec<usize>>()
        };
        let sizes = of_look(&[FieldForm::Size]);
        let mut numbers = of_look(&[FieldForm::Small, FieldForm::Number]);
        // An index comes before what it counts.
        if let Some(&first) = numbers.first().filter(|_| numbers.len() + sizes.len() > 1)
            && self.is_index(first)
        {
            columns[first] = SmiColumn::Number;
            numbers.remove(0);
        }
        match (&sizes[..], &numbers[..]) {
            ([only], [pid]) if pid < only => {
                columns[*pid] = SmiColumn::Pid;
                if pid + 1 < *only && self.looks[pid + 1] == FieldForm::Text {
                    columns[pid + 1] = SmiColumn::ProcessName;
                }
                columns[*only] = SmiColumn::ProcessUsed;
            }
            ([only], _) => columns[*only] = SmiColumn::Used,
            ([one, other], _) => {
                let (used, total) = self.used_and_total(*one, *other, &columns)?;
                (columns[used], columns[total]) = (SmiColumn::Used, SmiColumn::Total);
            }
            ([], [one, other]) => {
                let (used, total) = self.used_and_total(*one, *other, &columns)?;
                let most = |at: usize| self.levels(at).max().unwrap_or(0);
                let is_capacity = (LEAST_TOTAL..=MOST_TOTAL).contains(&most(total));
                if !is_capacity || most(used) <= LEAST_USED {
                    return None;
                }
                (columns[used], columns[total]) = (SmiColumn::Used, SmiColumn::Total);
            }
            _ => return None,
        }
        Some(SmiColumns {
            separator: Separator::Letter(','),
            devices: vec![None; columns.len()],
            units: vec![None; columns.len()],
            kinds: columns,
            names: String::new(),
        })
    }

    fn levels(&self, at: usize) -> impl Iterator<Item = u64> {
        self.rows.iter().filter_map(move |row| {
            let field = row.split(',').nth(at)?;
            let level = quantity::level(field, 1)?.ok()?;
            Some(level.get())
        })
    }

    /// Whether a column counts devices: small numbers from 0 on without gaps.
    fn is_index(&self, at: usize) -> bool {
        let mut seen = [false; 64];
        for number in self.levels(at) {
            match seen.get_mut(number as usize) {
                Some(seen) => *seen = true,
                None => return false,
            }
        }
        let n_seen = seen.iter().filter(|seen| **seen).count();
        seen.iter().take(n_seen).all(|seen| *seen)
    }

    /// The used column and the capacity column of two, if that is certain.
    fn used_and_total(
        &self,
        one: usize,
        other: usize,
        kinds: &[SmiColumn],
    ) -> Option<(usize, usize)> {
        match (
            self.is_total(other, one, kinds),
            self.is_total(one, other, kinds),
        ) {
            (true, false) => Some((one, other)),
            (false, true) => Some((other, one)),
            _ => None,
        }
    }

    /// Whether a column is the capacity for another one: never lower, and always the same for a device. A level that
    /// begins above half of it may be free memory as well.
    fn is_total(&self, total: usize, used: usize, kinds: &[SmiColumn]) -> bool {
        let is_id =
            |kind: &SmiColumn| matches!(kind, SmiColumn::Number | SmiColumn::Uuid | SmiColumn::Bus);
        let id = kinds.iter().position(is_id);
        let mut of_devices: HashMap<&str, u64> = HashMap::new();
        let mut is_first = true;
        for row in &self.rows {
            let field = |at: usize| row.split(',').nth(at);
            let level = |at: usize| quantity::level(field(at)?, 1)?.ok();
            let (Some(total), Some(used)) = (level(total), level(used)) else {
                continue;
            };
            let device = id.and_then(field).unwrap_or_default().trim();
            let known = *of_devices.entry(device).or_insert(total.get());
            if known != total.get() || used > total || is_first && used.get() > total.get() / 2 {
                return false;
            }
            is_first = false;
        }
        !is_first
    }
}
