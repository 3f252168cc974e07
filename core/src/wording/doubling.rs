//! A re-run that builds its new result while the old one is alive.

use super::{Teller, Words, count};
use crate::analyze::DoublingDetails;

pub(super) fn words(teller: &Teller<'_>, details: &DoublingDetails) -> Words {
    let size = |bytes| teller.units.size(bytes);
    let finding = teller.finding;
    let name = finding.holders.first().map_or_else(String::new, |holder| {
        format!(
            " · {} is bound to the old one until the new one is ready",
            holder.name
        )
    });
    let suggestions = match finding.fix {
        Some(_) => Vec::new(),
        None => vec![
            "free the old copy first: set the name to `None` at the top of the cell, or `del` it before you run the cell again"
                .to_owned(),
        ],
    };
    Words {
        title: format!(
            "{} holds its old {} and its new {} at once",
            teller.cell(),
            size(details.old),
            size(details.new)
        ),
        detail: format!(
            "in {} of {}; the last one rose by {}{name}",
            finding.n_runs,
            count(details.n_reruns, "re-run"),
            size(details.rose)
        ),
        suggestions,
    }
}
