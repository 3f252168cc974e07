//! Runs that take memory from the driver and give it back.

use super::{Teller, Words};
use gpumem_model::units::count;

pub(super) fn words(teller: &Teller<'_>, n_all: usize) -> Words {
    let n_runs = match teller.finding.n_runs {
        n if n == n_all => format!("each of {}", count(n, "run")),
        n => format!("{n} of {}", count(n_all, "run")),
    };
    let title = format!(
        "{} takes memory from the driver and gives it back in {n_runs}{}",
        teller.cell(),
        teller.on_device()
    );
    Words::new(title, "")
        .advice("do not call `empty_cache()` in every run: the cache makes allocation fast")
}
