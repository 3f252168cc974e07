//! A device that grows while no cell alone explains it.

use super::{Teller, Words, count};
use crate::analyze::SeriesGrowth;

pub(super) fn words(teller: &Teller<'_>, series: &SeriesGrowth) -> Words {
    let Teller { finding, units, .. } = teller;
    let (device, each) = (teller.device(), series.bytes_per_run.magnitude());
    Words {
        title: format!(
            "{device} fills by about {} a run, and no cell alone explains it",
            units.size(each)
        ),
        detail: format!(
            "{} over {} · what grows is spread over cells that ran once or a few times",
            units.change(series.total),
            count(finding.n_runs, "run")
        ),
        suggestions: vec![
            "see which names hold memory that is not needed any more, and `del` them".to_owned(),
        ],
    }
}
