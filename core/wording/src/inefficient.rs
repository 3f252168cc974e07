//! Runs that reserve much more than they use.

use super::{Presentation, Teller, prose};
use gpumem_model::units::count;

pub(super) fn present(teller: &Teller<'_>, used_share: f64) -> Presentation {
    let title = prose![
        teller.cell(),
        format!(" uses {:.0} % of what it reserves", 100.0 * used_share),
        teller.on_device()
    ];
    Presentation::new(title, "")
        .fact(format!(
            "the last of {}",
            count(teller.finding.n_runs, "run")
        ))
        .advice("slightly different sizes each leave a free block: round sizes to a few values")
}
