//! Runs that take memory from the driver and give it back.

use super::{Teller, Words, count};

pub(super) fn words(teller: &Teller<'_>, n_all: usize) -> Words {
    Words {
        title: format!(
            "{} takes memory from the driver in every run and gives it back",
            teller.cell()
        ),
        detail: format!("in {} of {}", teller.finding.n_runs, count(n_all, "run")),
        suggestions: vec![
            "do not call `empty_cache()` in every run: the cache makes allocation fast".to_owned(),
        ],
    }
}
