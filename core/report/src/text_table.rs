//! Tables of text.

use super::columns::{cut, n_columns};
use super::wrapped;
use gpumem_model::printable::printable;

/// The minimum width of a last column that is wrapped.
const NARROWEST: usize = 24;

/// A column that is as wide as its widest cell. The last one of a table takes the rest of the line.
#[derive(Clone, Copy)]
pub(super) struct TextColumn {
    is_right: bool,
    min: usize,
    max: usize,
    gap: usize,
}

pub(super) const fn left() -> TextColumn {
    TextColumn {
        is_right: false,
        min: 0,
        max: usize::MAX,
        gap: 1,
    }
}

pub(super) const fn right() -> TextColumn {
    TextColumn {
        is_right: true,
        ..left()
    }
}

impl TextColumn {
    /// At least `min` columns of the terminal.
    pub(super) const fn min(self, min: usize) -> Self {
        Self { min, ..self }
    }

    /// At most `max` columns: longer cells are cut.
    pub(super) const fn max(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// How far it is from the one before.
    pub(super) const fn gap(self, gap: usize) -> Self {
        Self { gap, ..self }
    }

    fn width<'a>(self, cells: impl Iterator<Item = &'a String>) -> usize {
        let widest = cells
            .map(|cell| n_columns(&printable(cell)))
            .max()
            .unwrap_or(0);
        widest.max(self.min).min(self.max)
    }

    /// The cell, as wide as the column.
    fn aligned(self, cell: &str, width: usize) -> String {
        let cell = cut(cell, width);
        let blanks = " ".repeat(width.saturating_sub(n_columns(&cell)));
        if self.is_right {
            blanks + &cell
        } else {
            cell + &blanks
        }
    }
}

/// A line for each row, cut to `width` columns.
pub(super) fn table(columns: &[TextColumn], rows: &[Vec<String>], width: usize) -> Vec<String> {
    let line = |(left, last): (String, &str)| cut(format!("{left}{last}").trim_end(), width);
    laid_out(columns, rows).map(line).collect()
}

/// The lines of each row: those of the last cell are wrapped, so that they are at most `width` columns wide.
pub(super) fn wrapped_table(
    columns: &[TextColumn],
    rows: &[Vec<String>],
    width: usize,
) -> Vec<String> {
    let row = |(left, last): (String, &str)| {
        let indent = n_columns(&left);
        let room = width.saturating_sub(indent).max(NARROWEST);
        let cell: Vec<String> = last.lines().map(|line| wrapped(line, room)).collect();
        let indented = cell.join("\n").replace('\n', &format!("\n{:indent$}", ""));
        format!("{left}{indented}").trim_end().to_owned()
    };
    laid_out(columns, rows).map(row).collect()
}

/// Of each row all columns but the last, and the last cell.
fn laid_out<'a>(
    columns: &[TextColumn],
    rows: &'a [Vec<String>],
) -> impl Iterator<Item = (String, &'a str)> {
    let (last, columns) = columns.split_last().expect("a table has columns");
    let cells = |n: usize| rows.iter().map(move |row| &row[n]);
    let columns: Vec<(TextColumn, usize)> = columns
        .iter()
        .enumerate()
        .map(|(n, column)| (*column, column.width(cells(n))))
        .collect();
    let last_gap = " ".repeat(last.gap);
    rows.iter().map(move |row| {
        let mut line = String::new();
        for ((column, width), cell) in columns.iter().zip(row) {
            if !line.is_empty() {
                line += &" ".repeat(column.gap);
            }
            line += &column.aligned(cell, *width);
        }
        (line + &last_gap, &*row[columns.len()])
    })
}

pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(columns: [TextColumn; 3], width: usize, expected: &[&str]) {
        let rows = [
            row(["run", "kept", "cell"]),
            row(["損失", "3 MiB", "a b c d e"]),
        ];
        assert_eq!(table(&columns, &rows, width), expected);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        check(
            [left(), right(), left().gap(2)],
            80,
            &["run   kept  cell", "損失 3 MiB  a b c d e"],
        );
        check(
            [right().min(5), left().max(4), left()],
            15,
            &["  run kept cell", " 損失 3 M… a b…"],
        );
    }

    #[test]
    fn the_last_cell_is_wrapped_below_itself() {
        let rows = [
            row(["a", "one two three four five six"]),
            row(["b", "first\nsecond"]),
        ];
        assert_eq!(
            wrapped_table(&[left(), left().gap(2)], &rows, 10),
            [
                "a  one two three four five\n     six",
                "b  first\n   second"
            ]
        );
    }
}
