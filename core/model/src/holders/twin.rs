//! Names that hold the same twice.

use serde::Serialize;

/// A variable whose tensors have the shapes of another one's, which has its own. An entry of
/// [`DeviceHolders::twins`](super::DeviceHolders::twins).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Twin {
    /// The variable.
    #[serde(skip)]
    pub name: String,
    /// The other one.
    #[serde(rename = "name")]
    pub other: String,
    /// How many of its storages have one of the same shape, element type and size there.
    pub n_alike: u64,
    /// Of how many; gradients and the state of optimizers do not count.
    pub n_all: u64,
    /// The shapes are known; if not, the sizes are the same.
    pub by_shape: bool,
}
