//! A re-run that builds its new result while the old one is alive.

use super::{Teller, Words, code};
use gpumem_analyzer::DoublingDetails;
use gpumem_model::units::count;

pub(super) fn words(teller: &Teller<'_>, details: &DoublingDetails) -> Words {
    let size = |bytes| teller.units.size(bytes);
    let finding = teller.finding;
    let name = finding.holders.first().map(|holder| code(&holder.name));
    let sizes = match (size(details.old), size(details.new)) {
        (old, new) if old == new => format!("its old and its new {new}"),
        (old, new) => format!("its old {old} and its new {new}"),
    };
    let title = format!(
        "{} holds {sizes} at once when run again{}",
        name.unwrap_or_else(|| teller.cell()),
        teller.on_device()
    );
    let words = Words::new(title, "").detail(format!(
        "in {} of {}; the last one rose by {}",
        finding.n_runs,
        count(details.n_reruns, "re-run"),
        size(details.rose)
    ));
    match finding.fix {
        Some(_) => words,
        None => words.advice(
            "free the old copy first: set the name to `None` at the top of the cell, or `del` it before you run the cell again",
        ),
    }
}
