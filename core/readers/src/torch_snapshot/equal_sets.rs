//! Sets of live blocks with the same sizes, as an optimizer keeps for each parameter.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::Serialize;

use gpumem_model::segments::BlockState;
use gpumem_model::units::Bytes;

use super::model::{DeviceSnapshot, SnapshotBlock, SnapshotFrame, SnapshotStackIdx, TorchSnapshot};

/// Sizes alone prove sets only if they cover this share of the blocks without a stack, …
const COVERED: f64 = 0.95;

/// … and at least this many sizes differ: layers repeat, too.
const MIN_SIZES: usize = 3;

/// Sets of live blocks with the same sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EqualSets {
    /// Number of sets.
    pub n_sets: usize,
    /// Number of blocks in each.
    pub n_blocks: usize,
    /// Bytes of each, as requested.
    pub bytes: Bytes,
    /// The module of `torch.optim` that allocated them: `adam`; `None` if only sizes are known.
    pub optimizer: Option<String>,
    /// Whether other code allocated blocks of the same sizes: the parameters.
    pub are_as_parameters: bool,
}

/// How many blocks of each size.
type BlockSizes = BTreeMap<Bytes, usize>;

/// The sets of a device: by the code that allocated them, else by their sizes.
pub(super) fn equal_sets(
    device: &DeviceSnapshot,
    snapshot: &TorchSnapshot<'_>,
) -> Option<EqualSets> {
    let segments = device.segments.iter();
    let blocks = segments.flat_map(|segment| &segment.blocks);
    let live: Vec<&SnapshotBlock> = blocks
        .filter(|block| block.state == BlockState::Held)
        .collect();
    of_optimizer(&live, snapshot).or_else(|| by_size(&live))
}

/// Blocks from the lines of an optimizer that begin its state.
fn of_optimizer(live: &[&SnapshotBlock], snapshot: &TorchSnapshot<'_>) -> Option<EqualSets> {
    let lines: HashMap<SnapshotStackIdx, SnapshotFrame<'_>> = (0..)
        .zip(&snapshot.stacks)
        .filter_map(|(idx, stack)| {
            let frames = stack.iter();
            let mut frames = frames.filter_map(|&at| snapshot.frames.get(at as usize));
            Some((SnapshotStackIdx(idx), *frames.find(|it| begins_state(it))?))
        })
        .collect();
    let line = |block: &SnapshotBlock| lines.get(&block.stack?).copied();
    let mut of_lines: BTreeMap<SnapshotFrame<'_>, BlockSizes> = BTreeMap::new();
    let mut others = BlockSizes::new();
    for block in live {
        let sizes = match line(block) {
            Some(line) => of_lines.entry(line).or_default(),
            None => &mut others,
        };
        *sizes.entry(block.requested).or_default() += 1;
    }
    let (first, sizes) = of_lines.iter().max_by_key(|(_, sizes)| bytes(sizes))?;
    let same = of_lines
        .iter()
        .filter(|(line, it)| line.file == first.file && *it == sizes);
    let n_sets = same.count();
    let are_as_parameters = sizes
        .iter()
        .all(|(size, n)| others.get(size).is_some_and(|n_others| n_others >= n));
    (n_sets > 1 || are_as_parameters).then(|| EqualSets {
        n_sets,
        n_blocks: sizes.values().sum(),
        bytes: bytes(sizes),
        optimizer: module(first.file),
        are_as_parameters,
    })
}

/// `Adam._init_group` and similar functions make a parameter's state.
fn begins_state(frame: &SnapshotFrame<'_>) -> bool {
    let file = frame.file.replace('\\', "/");
    frame.name == "_init_group" && file.contains("torch/optim/")
}

/// `adam` of `…/torch/optim/adam.py`.
fn module(file: &str) -> Option<String> {
    let file = file.replace('\\', "/");
    let stem = Path::new(&file).file_stem()?;
    Some(stem.to_string_lossy().into_owned())
}

/// Sets of blocks without a stack: weights and two averages, or gradients as well.
fn by_size(live: &[&SnapshotBlock]) -> Option<EqualSets> {
    let mut sizes = BlockSizes::new();
    for block in live.iter().filter(|block| block.stack.is_none()) {
        *sizes.entry(block.requested).or_default() += 1;
    }
    let all = bytes(&sizes);
    [4, 3].into_iter().find_map(|n_sets| {
        let mut of_set = sizes.clone();
        of_set.retain(|_, n| *n % n_sets == 0);
        let is_covered = bytes(&of_set).as_f64() >= COVERED * all.as_f64();
        // More sets are most likely layers.
        let is_exact = of_set.values().copied().reduce(gcd) == Some(n_sets);
        let is_telling = is_covered && is_exact && of_set.len() >= MIN_SIZES;
        for n in of_set.values_mut() {
            *n /= n_sets;
        }
        is_telling.then(|| EqualSets {
            n_sets,
            n_blocks: of_set.values().sum(),
            bytes: bytes(&of_set),
            optimizer: None,
            are_as_parameters: false,
        })
    })
}

fn bytes(sizes: &BlockSizes) -> Bytes {
    let sizes = sizes.iter();
    sizes
        .map(|(size, n)| Bytes::new(size.get().saturating_mul(*n as u64)))
        .sum()
}

const fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
