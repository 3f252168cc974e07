//! What processes have in common: the median of their levels at each instant, and the middle half.

use crate::process_page::ProcessPage;
use gpumem_model::units::{Bytes, Nanos};

/// Number of parts of the time.
const N_INSTANTS: u64 = 96;
/// Of fewer processes there is no middle half.
const MIN_ROWS: usize = 4;

/// The levels of all processes at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelBand {
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
/// fewer than four are, or fewer than half of the most that ever are: the last ones are not typical.
pub fn bands(page: &ProcessPage) -> Vec<LevelBand> {
    let span = page.span.get();
    let instants = (0..=N_INSTANTS).map(|n| {
        // Multiplied second: no span is too long.
        let part = span / N_INSTANTS * n + span % N_INSTANTS * n / N_INSTANTS;
        Nanos::new(part)
    });
    let found: Vec<(usize, LevelBand)> = instants.filter_map(|at| counted(page, at)).collect();
    let most = found.iter().map(|(n_rows, _)| *n_rows).max();
    let enough = most.unwrap_or_default().div_ceil(2);
    let found = found.into_iter().filter(|(n_rows, _)| *n_rows >= enough);
    found.map(|(_, band)| band).collect()
}

/// The same at one instant.
pub fn middle(page: &ProcessPage, at: Nanos) -> Option<LevelBand> {
    counted(page, at).map(|(_, band)| band)
}

/// The same, with how many processes are there.
fn counted(page: &ProcessPage, at: Nanos) -> Option<(usize, LevelBand)> {
    let levels = page.rows.iter().filter_map(|row| row.level_at(at));
    let mut levels: Vec<Bytes> = levels.collect();
    if levels.len() < MIN_ROWS {
        return None;
    }
    levels.sort_unstable();
    let at_share = |quarters: usize| levels[(levels.len() - 1) * quarters / 4];
    let band = LevelBand {
        at,
        low: at_share(1),
        median: at_share(2),
        high: at_share(3),
    };
    Some((levels.len(), band))
}
