//! What keeps memory alive: names, paths, retained bytes.
//!
//! A walk over the live objects builds an [`ObjectGraph`]. [`Holders`] summarises it: how much each name
//! retains, what several names share, the shortest path to the largest object, and what a device's bytes
//! are for. The summary is small for any graph, so it goes into the recording as it is.
//!
//! [`HeapAnalysis`] does the same with a comparison: its [`Inventory`] is kept, and the next search
//! tells what is new [`Since`] then.
//!
//! ```
//! use gpumem_heap::{GraphBuilder, HeapAnalysis, Inventory, HolderLimits, Node, Root, Step};
//! use gpumem_model::units::{ByteDelta, Bytes};
//!
//! let heap_with = |n_losses: u64| {
//!     let mut builder = GraphBuilder::default();
//!     let losses = builder.node(Node::object("list"));
//!     for id in 0..n_losses {
//!         let storage = builder.node(Node::storage(id, "cuda:0", Bytes::mib(4)));
//!         builder.edge(losses, storage, Step::Index(id));
//!     }
//!     builder.root(Root::variable("losses", losses));
//!     builder.build()
//! };
//! let before = HeapAnalysis::at(&heap_with(3)).inventory();
//! let graph = heap_with(5);
//! let heap = HeapAnalysis::at(&graph);
//! let now = heap.inventory();
//! let holders = heap.holders(&HolderLimits::default(), Some(now.since(&before)));
//! let losses = &holders.on("cuda:0").expect("a device").roots[0];
//! assert_eq!(losses.retained, Bytes::mib(20));
//! assert_eq!(losses.grown, Some(Bytes::mib(8) - Bytes::ZERO));
//! ```
#![forbid(unsafe_code)]

mod block_names;
mod branches;
mod cell_text;
mod changed;
mod csr_graph;
mod dominators;
mod fix;
mod found;
mod graph;
mod graph_cycles;
mod grows_in;
mod heap_analysis;
mod holders;
mod holding;
mod inventory;
mod ledger;
mod main_branches;
mod node;
mod number_lists;
mod outlived;
mod path;
mod preferred;
mod reach;
mod retained_size;
mod root;
mod shared;
mod step;
mod storage_names;
#[cfg(test)]
mod tests;
mod twin_names;
mod words;

pub use block_names::{BlockNames, SearchCoverage};
pub use cell_text::{CellText, FunctionText, NameUse, NameUses};
pub use changed::changed_text;
pub use changed::{Piece, changed};
pub use fix::{
    FillingLoop, Trim, Uses, filling_loop, fix_of_rerun, is_cache, is_data, is_emptied,
    is_extended, is_let_go, is_replaced, keeping_statement, trim, uses,
};
pub use fix::{Fix, FixReason, LONGEST as LONGEST_OF_FIX, fix};
pub use found::HeapSearchResult;
pub use graph::{GraphBuilder, ObjectGraph};
pub use heap_analysis::HeapAnalysis;
pub use holding::Holding;
pub use inventory::{Inventory, Since};
pub use inventory::{InventoryEntry, Shelf};
pub use node::{LibraryClass, Node, NodeIdx, Storage, TensorCategory};
pub use outlived::OutlivedQuery;
pub use preferred::HeldBy;
pub use root::Root;
pub use step::Step;
pub use storage_names::StorageName;

use gpumem_model::holders::DeviceHolders;

/// How much of a graph [`Holders`] lists; the rest is summed up. The defaults fill one screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HolderLimits {
    /// Names per device.
    pub n_roots: usize,
    /// Groups of names that share something.
    pub n_shared: usize,
    /// Branches per name, and per branch.
    pub n_branches: usize,
    /// Levels of branches below a name.
    pub depth: usize,
    /// Names whose bytes changed.
    pub n_changed: usize,
    /// Storages with their addresses and paths: [`StorageName`].
    pub n_storages: usize,
}

impl Default for HolderLimits {
    fn default() -> Self {
        Self {
            n_roots: 24,
            n_shared: 8,
            n_branches: 6,
            depth: 3,
            n_changed: 256,
            n_storages: 0,
        }
    }
}

/// Who holds what, device by device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// The fullest device first; devices without a storage are left out.
    pub devices: Vec<DeviceHolders>,
}

impl Holders {
    /// Summarises a graph.
    pub fn from_graph(graph: &ObjectGraph, limits: &HolderLimits) -> Self {
        HeapAnalysis::at(graph).holders(limits, None)
    }

    /// The holders on the device with that label.
    pub fn on(&self, device: &str) -> Option<&DeviceHolders> {
        self.devices.iter().find(|it| it.device == device)
    }
}
