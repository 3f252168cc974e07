//! Runs that reserve much more than they use.

use super::{Teller, Words, count};
use crate::decimal::rounded;

pub(super) fn words(teller: &Teller<'_>, used_share: f64) -> Words {
    Words {
        title: format!("{} reserves much more than it uses", teller.cell()),
        detail: format!(
            "in {}; the last one used {} % of what it reserved",
            count(teller.finding.n_runs, "run"),
            rounded(100.0 * used_share, 0)
        ),
        suggestions: vec![
            "slightly different sizes each leave a free block: round sizes to a few values"
                .to_owned(),
        ],
    }
}
