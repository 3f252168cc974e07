//! A re-run that builds its new result while the old one is alive.

use super::{Presentation, Teller, code, prose};
use gpumem_analyzer::DoublingDetails;
use gpumem_model::units::count;

pub(super) fn present(teller: &Teller<'_>, details: &DoublingDetails) -> Presentation {
    let size = |bytes| teller.units.size(bytes);
    let finding = teller.finding;
    let name = finding
        .holders
        .first()
        .map(|holder| code(&holder.name).into());
    let sizes = match (size(details.old), size(details.new)) {
        (old, new) if old == new => format!("its old and its new {new}"),
        (old, new) => format!("its old {old} and its new {new}"),
    };
    let title = prose![
        name.unwrap_or_else(|| teller.cell()),
        format!(" holds {sizes} at once when run again"),
        teller.on_device()
    ];
    let own = Presentation::new(title, "").fact(format!(
        "in {} of {}; the last one rose by {}",
        finding.n_runs,
        count(details.n_reruns, "re-run"),
        size(details.rose)
    ));
    match finding.fix {
        Some(_) => own,
        None => own.advice(prose![
            "free the old copy first: set the name to ",
            code("None"),
            " at the top of the cell, or ",
            code("del"),
            " it before you run the cell again"
        ]),
    }
}
