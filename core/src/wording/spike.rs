//! A run whose peak stands far above that of the others.

use super::{Teller, Words, count};
use crate::units::Bytes;

pub(super) fn words(teller: &Teller<'_>, excess: Bytes, usual: Bytes) -> Words {
    let units = teller.units;
    let number = teller.run().and_then(|run| run.execution_count);
    let number = number.map_or_else(|| "one run".to_owned(), |n| format!("In [{n}]"));
    Words {
        title: format!(
            "{}: {number} needed {} for a moment",
            teller.cell(),
            units.size(excess)
        ),
        detail: format!(
            "above its start and its end; {} is usual over {}",
            units.size(usual),
            count(teller.finding.n_runs, "run")
        ),
        suggestions: vec![
            "check what was larger in that run: a batch, a sequence, a validation pass".to_owned(),
        ],
    }
}
