//! Growth in a block is growth in the cell around it, too: it is reported once.

use super::{Context, Finding, GrowthVerdict, NEARLY_ALL};
use gpumem_model::holders::RootKind;
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx};
use std::collections::BTreeMap;

/// Keeps the block's finding, which is more exact; the cell's, if that is more certain.
pub(super) fn tell_once(context: Context<'_>, findings: &mut Vec<Finding>) {
    let recording = context.recording;
    let all = findings.clone();
    let mut growing: BTreeMap<_, Vec<&Finding>> = BTreeMap::new();
    for it in all.iter().filter(|it| is_growing(it)) {
        growing.entry(memory_of(it)).or_default().push(it);
    }
    findings.retain(|it| {
        let is_reported_by_block =
            |block: &Finding| is_same(recording, it, block) && block.state <= it.state;
        let is_reported_by_cell =
            |cell: &Finding| is_same(recording, cell, it) && cell.state < it.state;
        let others = growing.get(&memory_of(it)).filter(|_| is_growing(it));
        !others
            .into_iter()
            .flatten()
            .any(|other| is_reported_by_block(other) || is_reported_by_cell(other))
    });
}

fn is_growing(it: &Finding) -> bool {
    let grows = it.state.is_some_and(GrowthVerdict::grows);
    grows && it.withdrawn.is_none() && !it.counts_steps()
}

/// Where it is, and the name that has it.
fn memory_of(it: &Finding) -> (DeviceIdx, Option<(RootKind, &str)>) {
    (it.device, it.first_name())
}

/// Both grow and are of one memory: the block's runs are in those of the cell, and keep what the cell keeps.
fn is_same(recording: &Recording, cell: &Finding, block: &Finding) -> bool {
    let total = |it: &Finding| it.growth().map_or(0.0, |it| it.total.as_f64());
    // A worker runs nothing but tasks, and of many not all are recorded.
    let is_all = || is_worker(recording) || total(block) >= NEARLY_ALL * total(cell);
    let is_around = |run: RunIdx| cell.runs.binary_search(&run).is_ok();
    let mut runs = block.runs.iter();
    is_all() && runs.any(|run| recording.around(*run).any(is_around))
}

fn is_worker(recording: &Recording) -> bool {
    let mut facts = recording.header().process.iter();
    facts.any(|(name, _)| name == "worker")
}
