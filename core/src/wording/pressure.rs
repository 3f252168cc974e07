//! A device that is nearly full.

use super::{Teller, Words, count};

pub(super) fn words(teller: &Teller<'_>, n_flushes: u64) -> Words {
    let requests = match n_flushes {
        1 => "1 request".to_owned(),
        n => format!("{n} requests"),
    };
    let title = format!("{} is nearly full", teller.device());
    let outlook = format!("{requests} succeeded only after the cache was emptied");
    Words::with_row(title, ": ", outlook)
        .detail(format!(
            "in {}, last in {}; each time costs time, and the next request may fail",
            count(teller.finding.n_runs, "run"),
            teller.cell()
        ))
        .advice("use smaller batches, or free memory before the largest step")
}
