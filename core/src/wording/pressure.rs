//! A device that is nearly full.

use super::{Teller, Words, count, times};

pub(super) fn words(teller: &Teller<'_>, n_flushes: u64) -> Words {
    Words {
        title: format!(
            "{} is nearly full: the allocator flushed its cache {}",
            teller.device(),
            times(n_flushes)
        ),
        detail: format!(
            "in {}, last in {} · each flush costs time, and the next request may fail",
            count(teller.finding.n_runs, "run"),
            teller.cell()
        ),
        suggestions: vec!["use smaller batches, or free memory before the largest step".to_owned()],
    }
}
