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
            "{} over {} · the growth is spread over cells that ran only once or a few times",
            units.change(series.total),
            count(finding.n_runs, "run")
        ),
        suggestions: vec![
            "`%gpumem why` shows which names hold memory: `del` those that you no longer need"
                .to_owned(),
        ],
    }
}
