//! Memory snapshots of PyTorch: `torch.cuda.memory._dump_snapshot(path)` and its predecessors.
//!
//! The oldest files are a list of segments, later ones a dict with `segments`, `device_traces` and more.
//! Fields came and went, so a missing field is normal, and an unknown one is ignored.
//!
//! ```
//! use gpumem_readers::cell_files::CellFiles;
//! use gpumem_readers::torch_snapshot::summary;
//! use gpumem_model::units::Bytes;
//!
//! // [{'total_size': 2097152, 'blocks': [{'size': 2097152, 'state': 'inactive'}]}], protocol 2
//! let file = b"\x80\x02]}(X\x0a\x00\x00\x00total_sizeJ\x00\x00\x20\x00X\x06\x00\x00\x00blocks\
//!     ]}(X\x04\x00\x00\x00sizeJ\x00\x00\x20\x00X\x05\x00\x00\x00stateX\x08\x00\x00\x00inactiveuaua.";
//! let summary = summary(file, &CellFiles::default())?;
//! assert_eq!(summary.devices[0].reserved, Bytes::mib(2));
//! assert_eq!(summary.devices[0].largest_hole, Bytes::mib(2));
//! # Ok::<(), gpumem_readers::torch_snapshot::SnapshotError>(())
//! ```

mod change;
mod equal_sets;
mod explorer;
mod fault;
mod flame;
mod holder;
mod levels;
mod lifetimes;
mod lines;
mod live;
mod model;
mod read;
mod record;
mod stacks;
mod summary;
#[cfg(test)]
mod tests;
mod timeline;

pub use change::{ByteChange, DeviceChange, SnapshotChange};
pub use equal_sets::EqualSets;
pub use explorer::{Allocation, Explorer, ExplorerFrame};
pub use fault::{SnapshotError, SnapshotFault};
pub use flame::{Flame, FlameNames, FlameNode, FlamePart, FlameSide};
pub use holder::{HELD_BY, SnapshotHolder};
pub use levels::SnapshotLevels;
pub use lifetimes::{LineLifetimes, TraceDuration};
pub use model::{
    DeviceSnapshot, SnapshotBlock, SnapshotDevice, SnapshotEvent, SnapshotFrame, SnapshotSegment,
    SnapshotStackIdx, TorchSnapshot,
};
pub use read::read;
pub use stacks::StackTotal;
pub use summary::{FailedRequest, LineOwner, SnapshotDeviceSummary, TorchSnapshotSummary};
pub use timeline::SnapshotTimeline;

use super::cell_files::CellFiles;
use super::pickle;

/// Reads a snapshot's file and sums it up, with the names of cells in place of their files.
///
/// # Errors
///
/// [`SnapshotError`] if the bytes are damaged or not a snapshot, with the offset at which reading stopped.
pub fn summary(bytes: &[u8], cells: &CellFiles) -> Result<TorchSnapshotSummary, SnapshotError> {
    let tree = pickle::parse(bytes)?;
    let snapshot = read(&tree, cells)?;
    let lives: Vec<_> = snapshot.devices.iter().map(live::lives).collect();
    Ok(TorchSnapshotSummary::new(&snapshot, &lives))
}
