//! Growth in a block is growth in the cell around it, too: it is reported once.

use super::{Context, Finding, GrowthVerdict, NEARLY_ALL};
use gpumem_model::recording::{Recording, RunIdx};

/// Keeps the block's finding, which is more exact; the cell's, if that is more certain.
pub(super) fn tell_once(context: Context<'_>, findings: &mut Vec<Finding>) {
    let recording = context.recording;
    let all = findings.clone();
    findings.retain(|it| {
        let is_reported_by_block =
            |block: &Finding| is_same(recording, it, block) && block.state <= it.state;
        let is_reported_by_cell =
            |cell: &Finding| is_same(recording, cell, it) && cell.state < it.state;
        !all.iter()
            .any(|other| is_reported_by_block(other) || is_reported_by_cell(other))
    });
}

/// Both are of the memory of one name: the block's runs are in those of the cell, and keep what the cell keeps.
fn is_same(recording: &Recording, cell: &Finding, block: &Finding) -> bool {
    let grows = |it: &Finding| {
        let grows = it.state.is_some_and(GrowthVerdict::grows);
        grows && it.withdrawn.is_none() && !it.counts_steps()
    };
    let total = |it: &Finding| it.growth().map_or(0.0, |it| it.total.as_f64());
    // A worker runs nothing but tasks, and of many not all are recorded.
    let is_all = || is_worker(recording) || total(block) >= NEARLY_ALL * total(cell);
    let is_around = |run: RunIdx| cell.runs.binary_search(&run).is_ok();
    let mut runs = block.runs.iter();
    grows(cell)
        && grows(block)
        && cell.device == block.device
        && cell.first_name() == block.first_name()
        && is_all()
        && runs.any(|run| recording.around(*run).any(is_around))
}

fn is_worker(recording: &Recording) -> bool {
    let mut facts = recording.header().process.iter();
    facts.any(|(name, _)| name == "worker")
}
