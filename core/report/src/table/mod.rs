//! Runs, samples and findings as columns, for data frames.
//!
//! Names and units are those of [`json`](crate::json): `*_bytes` are bytes, `*_nanos` nanoseconds since
//! the recording's start. An unknown value is `None`. The page does not offer tables, so nothing of this
//! is in the page's module.
//!
//! ```
//! use gpumem_analyzer::{Rules, analyze};
//! use gpumem_report::table::{Values, runs};
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let recording = leaking();
//! let table = runs(&recording, &analyze(&recording, &Rules::default()));
//! assert_eq!(table.n_rows, 12);
//! let kept = table.column("kept_bytes").expect("a column");
//! assert_eq!(kept, &Values::Integers(vec![Some(2 << 20); 12]));
//! ```

mod findings;
mod runs;
mod samples;
#[cfg(test)]
mod tests;

pub use findings::findings;
pub use runs::runs;
pub use samples::samples;

use crate::figures::{FigureValue, RunFigure};

/// Columns of equal length.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// In the order in which they are shown, with their names.
    pub columns: Vec<(&'static str, Values)>,
    /// How many values each column has.
    pub n_rows: usize,
}

impl Table {
    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<&Values> {
        let found = self.columns.iter().find(|(known, _)| *known == name);
        found.map(|(_, values)| values)
    }

    /// Of each row these figures.
    fn new<R>(rows: &[R], figures: impl IntoIterator<Item = RunFigure<R>>) -> Self {
        let columns = figures.into_iter();
        Self {
            columns: columns
                .map(|it| (it.name, values(rows, &it.value)))
                .collect(),
            n_rows: rows.len(),
        }
    }
}

/// The values of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// Bytes, nanoseconds, counts and indices.
    Integers(Vec<Option<i64>>),
    /// Names and sentences.
    Texts(Vec<Option<String>>),
    /// Yes or no.
    Flags(Vec<Option<bool>>),
}

fn values<R>(rows: &[R], value: &FigureValue<R>) -> Values {
    let rows = rows.iter();
    match value {
        FigureValue::Bytes(of) => {
            Values::Integers(rows.map(|row| signed(of(row)?.get())).collect())
        }
        FigureValue::Change(of) => Values::Integers(rows.map(|row| Some(of(row)?.get())).collect()),
        FigureValue::Nanos(of) => {
            Values::Integers(rows.map(|row| signed(of(row)?.get())).collect())
        }
        FigureValue::Count(of) => Values::Integers(rows.map(|row| signed(of(row)?)).collect()),
        FigureValue::Name(of) => {
            Values::Texts(rows.map(|row| of(row).map(str::to_owned)).collect())
        }
        FigureValue::Text(of) => Values::Texts(rows.map(of).collect()),
        FigureValue::Flag(of) => Values::Flags(rows.map(|row| Some(of(row))).collect()),
    }
}

/// A number that a signed column cannot hold is unknown: nothing has 8 EiB or runs for 292 years.
fn signed(n: u64) -> Option<i64> {
    i64::try_from(n).ok()
}
