//! Runs, samples and findings as columns, for data frames.
//!
//! Names and units are those of [`json`](crate::json): `*_bytes` are bytes, `*_nanos` nanoseconds since
//! the recording's start. An unknown value is `None`. The page does not offer tables, so nothing of this
//! is in the page's module.
//!
//! ```
//! use gpumem_core::analyze::{Rules, analyze};
//! use gpumem_core::table::{Values, runs};
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
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

use crate::units::{ByteDelta, Bytes, Nanos};

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

    /// Adds a column with one value for each row.
    fn add<R>(&mut self, name: &'static str, rows: &[R], value: impl Column<R>) {
        debug_assert!(self.columns.is_empty() || self.n_rows == rows.len());
        self.n_rows = rows.len();
        self.columns.push((name, value.of(rows)));
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

/// How a column is made of rows.
trait Column<R> {
    fn of(self, rows: &[R]) -> Values;
}

struct Integer<F>(F);
struct Text<F>(F);
struct Flag<F>(F);

impl<R, F: Fn(&R) -> Option<i64>> Column<R> for Integer<F> {
    fn of(self, rows: &[R]) -> Values {
        Values::Integers(rows.iter().map(self.0).collect())
    }
}

impl<R, F: Fn(&R) -> Option<String>> Column<R> for Text<F> {
    fn of(self, rows: &[R]) -> Values {
        Values::Texts(rows.iter().map(self.0).collect())
    }
}

impl<R, F: Fn(&R) -> Option<bool>> Column<R> for Flag<F> {
    fn of(self, rows: &[R]) -> Values {
        Values::Flags(rows.iter().map(self.0).collect())
    }
}

/// A number that a signed column cannot hold is unknown: nothing has 8 EiB or runs for 292 years.
fn signed(n: u64) -> Option<i64> {
    i64::try_from(n).ok()
}

fn level(bytes: Option<Bytes>) -> Option<i64> {
    signed(bytes?.get())
}

fn change(delta: Option<ByteDelta>) -> Option<i64> {
    Some(delta?.get())
}

fn instant(at: Option<Nanos>) -> Option<i64> {
    signed(at?.get())
}
