//! Runs that reserve much more than they use.

use super::{Teller, Words};
use gpumem_model::units::count;

pub(super) fn words(teller: &Teller<'_>, used_share: f64) -> Words {
    let title = format!(
        "{} uses {:.0} % of what it reserves{}",
        teller.cell(),
        100.0 * used_share,
        teller.on_device()
    );
    Words::new(title, "")
        .detail(format!(
            "the last of {}",
            count(teller.finding.n_runs, "run")
        ))
        .advice("slightly different sizes each leave a free block: round sizes to a few values")
}
