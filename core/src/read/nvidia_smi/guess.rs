//! Logs without a header (`--format=csv,noheader`): which column is memory, by what is in it.

use super::columns::{Column, Columns, Separator};
use super::quantity;
use crate::read::level_log::WallTime;

/// So many rows are looked at.
const N_ROWS: usize = 2000;

/// What all fields of a column look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
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

fn look(field: &str) -> Look {
    let field = field.trim();
    let is_hexadecimal = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if quantity::is_missing(field) {
        return Look::Missing;
    }
    if WallTime::parse(field).is_some() {
        return Look::Time;
    }
    if field.starts_with("GPU-") || field.starts_with("MIG-") {
        return Look::Uuid;
    }
    if field.contains(':') && field.split([':', '.']).all(is_hexadecimal) {
        return Look::Bus;
    }
    if let Ok(number) = field.parse::<u64>() {
        return if number < 64 {
            Look::Small
        } else {
            Look::Number
        };
    }
    if field.parse::<f64>().is_ok_and(|number| number >= 0.0) {
        return Look::Figure;
    }
    let is_number = field.starts_with(|c: char| c.is_ascii_digit());
    match quantity::has_unit(field) && quantity::level(field, 1).is_some() {
        true => Look::Size,
        false if is_number && field.contains(' ') => Look::Figure,
        false => Look::Text,
    }
}

/// Whether rows look like CSV of nvidia-smi: as many fields in most of them, one of them a number or a size.
pub(super) fn looks_like_rows(rows: &[&str]) -> bool {
    Guess::of(rows).is_some()
}

/// The columns of rows without a header; `Err` with their number if none is surely memory.
pub(super) fn columns(rows: &[&str]) -> Option<Result<Columns, usize>> {
    let guess = Guess::of(rows)?;
    Some(guess.columns().ok_or(guess.looks.len()))
}

struct Guess<'t> {
    looks: Vec<Look>,
    rows: Vec<&'t str>,
}

impl<'t> Guess<'t> {
    fn of(rows: &[&'t str]) -> Option<Self> {
        let n_fields = |row: &str| row.split(',').count();
        let mut counts: Vec<usize> = Vec::new();
        counts.extend(rows.iter().take(N_ROWS).map(|row| n_fields(row)));
        counts.sort_unstable();
        let usual = *counts.get(counts.len() / 2)?;
        let mut usual_rows: Vec<&str> = Vec::new();
        let of_usual = rows
            .iter()
            .take(N_ROWS)
            .filter(|row| n_fields(row) == usual);
        usual_rows.extend(of_usual);
        let mut looks: Vec<Option<Look>> = vec![None; usual];
        let mut n_rows = 0;
        for row in &usual_rows {
            let of_row = row.split(',').map(look);
            // A line of an error has words only.
            if of_row.clone().all(|look| look == Look::Text) {
                continue;
            }
            n_rows += 1;
            for (known, look) in looks.iter_mut().zip(of_row) {
                *known = Some(match (*known, look) {
                    (None | Some(Look::Missing), look) => look,
                    (Some(known), Look::Missing) => known,
                    (Some(known), look) if known == look => known,
                    (Some(Look::Small | Look::Number), Look::Small | Look::Number) => Look::Number,
                    _ => Look::Text,
                });
            }
        }
        let mut plain = Vec::with_capacity(usual);
        plain.extend(looks.into_iter().map(|look| look.unwrap_or(Look::Text)));
        let is_level = |look: &Look| matches!(look, Look::Small | Look::Number | Look::Size);
        let is_log = n_rows * 2 > rows.len().min(N_ROWS) && plain.iter().any(is_level);
        is_log.then_some(Self {
            looks: plain,
            rows: usual_rows,
        })
    }

    fn columns(&self) -> Option<Columns> {
        let mut columns = vec![Column::Other; self.looks.len()];
        for (column, look) in columns.iter_mut().zip(&self.looks) {
            *column = match look {
                Look::Time => Column::Time,
                Look::Uuid => Column::Uuid,
                Look::Bus => Column::Bus,
                _ => Column::Other,
            };
        }
        let of_look = |wanted: &[Look]| {
            let all = 0..self.looks.len();
            let fitting = all.filter(|&at| wanted.contains(&self.looks[at]));
            fitting.collect::<Vec<usize>>()
        };
        let mut sizes = of_look(&[Look::Size]);
        let mut numbers = of_look(&[Look::Small, Look::Number]);
        if sizes.is_empty() {
            // An index comes before what it counts.
            if let Some(&first) = numbers.first().filter(|_| numbers.len() > 1)
                && self.is_index(first)
            {
                columns[first] = Column::Number;
                numbers.remove(0);
            }
            sizes = numbers;
        } else if let [number] = numbers[..] {
            let is_before = number < sizes[0];
            let name = number + 1;
            let has_name = self.looks.get(name) == Some(&Look::Text) && name < sizes[0];
            if self.is_index(number) {
                columns[number] = Column::Number;
            } else if is_before && sizes.len() == 1 {
                columns[number] = Column::Pid;
                if has_name {
                    columns[name] = Column::ProcessName;
                }
            }
        }
        let used = if columns.contains(&Column::Pid) {
            Column::ProcessUsed
        } else {
            Column::Used
        };
        match sizes[..] {
            [only] => columns[only] = used,
            [one, other] => {
                let (used_at, total_at) = if self.is_total(other, one) {
                    (one, other)
                } else if self.is_total(one, other) {
                    (other, one)
                } else {
                    return None;
                };
                (columns[used_at], columns[total_at]) = (used, Column::Total);
            }
            _ => return None,
        }
        Some(Columns {
            separator: Separator::Comma,
            units: vec![1 << 20; columns.len()],
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

    /// Whether a column counts devices: small numbers that begin with 0, none left out.
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

    /// Whether a column may be the capacity for another one: never lower, and it hardly changes.
    fn is_total(&self, total: usize, used: usize) -> bool {
        let is_above = self
            .levels(total)
            .zip(self.levels(used))
            .all(|(total, used)| used <= total);
        let mut values: Vec<u64> = Vec::new();
        values.extend(self.levels(total));
        values.dedup();
        values.sort_unstable();
        values.dedup();
        let mut used_values: Vec<u64> = Vec::new();
        used_values.extend(self.levels(used));
        used_values.sort_unstable();
        used_values.dedup();
        is_above && values.len() <= 8 && values.len() <= used_values.len()
    }
}
