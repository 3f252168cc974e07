//! The blocks that runs are nested in.

use std::collections::HashMap;

use gpumem_model::recording::{Recording, Run, RunIdx};

/// At most this many nested blocks are named.
const MAX_NAMES: usize = 16;

/// A block inside of others: the same for all runs inside of blocks of the same names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct BlockIdx(usize);

/// The names of the blocks around each run, those inside of the same blocks once.
#[derive(Debug)]
pub(super) struct Paths {
    /// Of each run, the block that it is or is in.
    of_runs: Vec<BlockIdx>,
    /// Of each block, which one it is in, and its name. The first is the cell itself.
    blocks: Vec<(BlockIdx, String)>,
    known: HashMap<(BlockIdx, String), BlockIdx>,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            of_runs: Vec::new(),
            blocks: vec![(BlockIdx(0), String::new())],
            known: HashMap::new(),
        }
    }
}

impl Paths {
    /// Those of all runs of a recording.
    pub(super) fn new(recording: &Recording) -> Self {
        let mut paths = Self::default();
        for run in recording.runs() {
            paths.take_in(run);
        }
        paths
    }

    /// The next run.
    pub(super) fn take_in(&mut self, run: &Run) {
        let block = match self.named(run) {
            (around, None) => around,
            (around, Some(name)) => {
                let next = BlockIdx(self.blocks.len());
                let known = self.known.entry((around, name));
                *known.or_insert_with_key(|block| {
                    self.blocks.push(block.clone());
                    next
                })
            }
        };
        self.of_runs.push(block);
    }

    /// A run that is known has the name that it had.
    pub(super) fn fits(&self, run: &Run) -> bool {
        let block = match self.named(run) {
            (around, None) => Some(around),
            (around, Some(name)) => self.known.get(&(around, name)).copied(),
        };
        block == Some(self.block(run.idx))
    }

    /// The block that a run is or is in.
    pub(super) fn block(&self, run: RunIdx) -> BlockIdx {
        self.of_runs[run.get()]
    }

    /// Names of the blocks from the cell down to this run; of many the innermost.
    pub(super) fn names(&self, run: RunIdx) -> Vec<String> {
        let within = |block: BlockIdx| (block != BlockIdx::default()).then_some(block);
        let around = |block: &BlockIdx| within(self.blocks[block.0].0);
        let blocks = std::iter::successors(within(self.block(run)), around);
        let mut names: Vec<&str> = blocks
            .map(|block| &*self.blocks[block.0].1)
            .take(MAX_NAMES + 1)
            .collect();
        if let Some(outermost) = names.get_mut(MAX_NAMES) {
            *outermost = "…";
        }
        names.into_iter().rev().map(str::to_owned).collect()
    }

    /// The block around a run, and the name that makes the run another one. A cell's label makes none.
    fn named(&self, run: &Run) -> (BlockIdx, Option<String>) {
        match run.parent {
            Some(parent) => (self.block(parent), run.label.clone()),
            None => (BlockIdx::default(), None),
        }
    }
}
