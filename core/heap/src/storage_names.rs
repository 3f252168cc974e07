//! Storages one by one, each with its address and the path that keeps it alive.

use std::cmp::Reverse;

use super::HeapAnalysis;
use super::csr_graph::SESSION;
use super::path;
use super::retained_size::SizedStorage;
use gpumem_model::holders::RootKind;
use gpumem_model::units::Bytes;

/// A storage by its address. [`HeapAnalysis::storage_names`] lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageName {
    /// The device's label: `cuda:0`.
    pub device: String,
    /// Its first byte.
    pub address: u64,
    /// Its size.
    pub n_bytes: Bytes,
    /// The Python expression that leads to it: `losses[3].grad_fn._saved_self`.
    pub path: String,
}

impl HeapAnalysis<'_> {
    /// At most `most` storages whose address is known: those of accelerators before the host's, those
    /// with a name of the user's first, then the largest.
    pub fn storage_names(&self, most: usize) -> Vec<StorageName> {
        let mut stored: Vec<_> = self.ground.storages.iter().collect();
        let is_host = |it: &SizedStorage| &*self.ground.devices[usize::from(it.device)] == "host";
        stored.sort_by_key(|it| (is_host(it), it.held, Reverse(it.n_bytes)));
        let named = stored.into_iter().filter_map(|it| {
            let vertex = self.vertex(it.number);
            let storage = self.storage(it)?;
            let path = path::text(&self.web, &self.reach, SESSION, vertex);
            Some(StorageName {
                device: storage.device.to_string(),
                address: storage.address?,
                n_bytes: storage.n_bytes,
                path: match self.web.name_of(it.root).map(|name| name.kind) {
                    Some(kind) if kind.is_garbage() => {
                        format!("{path} in a cycle that `gc.collect()` frees")
                    }
                    Some(kind) if kind.is_graph_cycle() => {
                        format!("{path}, which its own graph keeps")
                    }
                    Some(RootKind::Unnamed) | None => format!("{path}, which no name reaches"),
                    Some(_) => path,
                },
            })
        });
        named.take(most).collect()
    }
}
