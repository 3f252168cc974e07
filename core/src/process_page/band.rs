//! What processes have in common: the median of their levels at each instant, and the middle half.

use super::ProcessPage;
use crate::units::{Bytes, Nanos};

/// Into so many parts the time is cut.
const N_INSTANTS: u64 = 96;
/// Of fewer processes there is no middle half.
const MIN_ROWS: usize = 4;

/// The levels of all processes at an instant. Example: [`bands`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// When.
    pub at: Nanos,
    /// A quarter of the processes is below.
    pub low: Bytes,
    /// Half of them is below.
    pub median: Bytes,
    /// A quarter of them is above.
    pub high: Bytes,
}

/// The median and the middle half over time, of the processes that are there at each instant; nothing where
/// fewer than four are.
///
/// ```
/// use gpumem_core::process_page::{ProcessPage, bands};
///
/// assert!(bands(&ProcessPage::default()).is_empty());
/// ```
pub fn bands(page: &ProcessPage) -> Vec<Band> {
    let span = page.span.get();
    let instants = (0..=N_INSTANTS).map(|n| {
        // Multiplied second: no span is too long.
        let part = span / N_INSTANTS * n + span % N_INSTANTS * n / N_INSTANTS;
        Nanos::new(part)
    });
    instants.filter_map(|at| middle(page, at)).collect()
}

/// The same at one instant. Example: [`bands`].
pub fn middle(page: &ProcessPage, at: Nanos) -> Option<Band> {
    let levels = page.rows.iter().filter_map(|row| row.level_at(at));
    let mut levels: Vec<Bytes> = levels.collect();
    if levels.len() < MIN_ROWS {
        return None;
    }
    levels.sort_unstable();
    let at_share = |quarters: usize| levels[(levels.len() - 1) * quarters / 4];
    Some(Band {
        at,
        low: at_share(1),
        median: at_share(2),
        high: at_share(3),
    })
}
