//! Runs that take memory from the driver and give it back.

use super::{Presentation, Teller, code, prose};
use gpumem_model::units::count;

pub(super) fn present(teller: &Teller<'_>, n_all: usize) -> Presentation {
    let n_runs = match teller.finding.n_runs {
        n if n == n_all => format!("each of {}", count(n, "run")),
        n => format!("{n} of {}", count(n_all, "run")),
    };
    let title = prose![
        teller.cell(),
        " takes memory from the driver and gives it back in ",
        n_runs,
        teller.on_device()
    ];
    Presentation::new(title, "").advice(prose![
        "do not call ",
        code("empty_cache()"),
        " in every run: the cache makes allocation fast"
    ])
}
