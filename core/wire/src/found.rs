//! The result of a heap search, on its way from the process that searched.
//!
//! The reader does not trust it, because that process may have been killed while it wrote.

use super::budget::ListBudget;
use super::messagepack::Reader;
use super::record::{Decode, DecodeFields, Written, decoded_lists, encoded_as, wire};
use super::refused::{DecodeError, ReadResult};
use super::v1::bounded;
use super::{PREFIX, WireError, WireFault, framed, payload_at, read};
use gpumem_heap::{
    HeapSearchResult, HeldBy, Holding, Inventory, InventoryEntry, Shelf, StorageName,
};
use gpumem_model::holders::{DeviceHolders, RootKind};
use gpumem_model::recording::{DeviceIdx, HolderSnapshot, RunIdx};
use gpumem_model::units::Bytes;

const KIND: &str = "found";

/// The bytes of a search's result.
pub fn encode_found(found: &HeapSearchResult) -> Vec<u8> {
    framed(KIND, &Written(found))
}

/// Reads what [`encode_found`] wrote.
///
/// # Errors
///
/// [`WireError`] if the bytes are cut, damaged or inconsistent.
pub fn decode_found(bytes: &[u8]) -> Result<HeapSearchResult, WireError> {
    let payload = payload_at(bytes, 0)?;
    let mut input = Reader::alone(payload);
    let end = PREFIX + payload.len();
    let kind: String = read(&mut input, end)?;
    if kind != KIND {
        return Err(WireFault::Payload(format!("a frame of {kind} instead of {KIND}")).at(0));
    }
    let found: HeapSearchResult = read(&mut input, end)?;
    found
        .inventory
        .check()
        .map_err(|words| WireFault::Payload(words).at(0))?;
    Ok(found)
}

wire! { HeapSearchResult {
    "holders" => holders.devices,
    "inventory" => inventory,
    "held_by" => held_by,
    sparse "storages" => storages,
    "n_objects" => n_objects,
    "notes" => notes,
}}

// As after a first run.
encoded_as! {
    DeviceHolders: holders => bounded(HolderSnapshot {
        run: RunIdx(0),
        device: DeviceIdx(0),
        inside_at: None,
        holders: holders.clone(),
    });
}

decoded_lists! { DeviceHolders: |held: HolderSnapshot| Some(held.holders); }

wire! { HeldBy {
    "name" => name,
    "class" => kind,
    "device" => device,
    "bytes" => n_bytes,
    "n_storages" => n_storages,
}}

wire! { StorageName {
    "device" => device,
    "address" => address,
    "bytes" => n_bytes,
    "path" => path,
}}

wire! { Inventory {
    "devices" => devices,
    "names" => names,
    "is_whole" => is_whole,
}}

wire! { Holding {
    "name" => name,
    "type" => type_name,
    sparse "is_rebound" => is_rebound,
    sparse "is_first" => is_first,
    "bytes" => n_bytes,
    "ids" => ids,
}}

wire! { (RootKind, Box<str>) {
    "class" => 0,
    "name" => 1,
}}

/// Storages are columns, each with an entry a storage.
#[derive(Default)]
struct WireShelf {
    device: Box<str>,
    ids: Vec<u64>,
    storages: Entries,
    summed_up_to: Bytes,
    sums: Entries,
    handed_out: Option<Bytes>,
    unseen: Bytes,
    holdings: Vec<Holding>,
    promises: Vec<Holding>,
}

wire! { WireShelf {
    "device" => device,
    required "ids" => ids,
    required "storages" => storages,
    "summed_up_to" => summed_up_to,
    required "sums" => sums,
    "handed_out" => handed_out,
    "unseen" => unseen,
    sparse "holdings" => holdings,
    sparse "promises" => promises,
}}

encoded_as! {
    Shelf: shelf => WireShelf {
        device: shelf.device.clone(),
        ids: shelf.storages.iter().map(|(id, _)| *id).collect(),
        storages: shelf.storages.iter().map(|(_, entry)| *entry).collect(),
        summed_up_to: shelf.summed_up_to,
        sums: shelf.sums.iter().copied().collect(),
        handed_out: shelf.handed_out,
        unseen: shelf.unseen,
        holdings: shelf.holdings.clone(),
        promises: shelf.promises.clone(),
    };
}

impl DecodeFields for Shelf {
    fn fill_fields(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
        let mut shelf = WireShelf::default();
        shelf.fill(reader)?;
        let budget = &mut reader.budget;
        let mut ids = shelf.ids.iter().copied();
        let numbered = |entry| ids.next().map(|id| (id, entry));
        let storages = shelf.storages.entries(shelf.ids.len(), budget, numbered);
        let sums = shelf.sums.entries(shelf.sums.bytes.len(), budget, Some);
        *self = Self {
            device: shelf.device,
            storages: storages.map_err(|refused| refused.in_field("storages"))?,
            summed_up_to: shelf.summed_up_to,
            sums: sums.map_err(|refused| refused.in_field("sums"))?,
            handed_out: shelf.handed_out,
            unseen: shelf.unseen,
            holdings: shelf.holdings,
            promises: shelf.promises,
        };
        Ok(())
    }
}

#[derive(Default)]
struct Entries {
    bytes: Vec<u64>,
    names: Vec<u64>,
    /// 1 for what an allocator has handed out.
    handed_out: Vec<u64>,
}

wire! { Entries {
    "bytes" => bytes,
    "names" => names,
    "handed_out" => handed_out,
}}

impl FromIterator<InventoryEntry> for Entries {
    fn from_iter<T: IntoIterator<Item = InventoryEntry>>(entries: T) -> Self {
        let mut columns = Self::default();
        for entry in entries {
            columns.bytes.push(entry.n_bytes.get());
            columns.names.push(entry.name.into());
            columns.handed_out.push(entry.is_handed_out.into());
        }
        columns
    }
}

impl Entries {
    /// Refuses columns that are not of this length.
    fn entries<T>(
        &self,
        n: usize,
        budget: &mut ListBudget,
        of: impl FnMut(InventoryEntry) -> Option<T>,
    ) -> ReadResult<Vec<T>> {
        let columns = [&self.bytes, &self.names, &self.handed_out];
        if let Some(column) = columns.into_iter().find(|column| column.len() != n) {
            let n_found = column.len();
            return Err(DecodeError(format!(
                "a column of {n_found} beside one of {n}"
            )));
        }
        let entry = |idx: usize| InventoryEntry {
            n_bytes: Bytes::new(self.bytes[idx]),
            name: u32::try_from(self.names[idx]).unwrap_or(u32::MAX),
            is_handed_out: self.handed_out[idx] != 0,
        };
        budget.spend(n * size_of::<T>())?;
        let mut entries = Vec::with_capacity(n);
        entries.extend((0..n).map(entry).filter_map(of));
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use gpumem_heap::{GraphBuilder, HeapAnalysis, HolderLimits, Node, Root, Step};

    /// A list of tensors, one for each size.
    fn found(sizes: &[u64]) -> HeapSearchResult {
        let mut builder = GraphBuilder::default();
        let list = builder.node(Node::object("list"));
        for (idx, size) in sizes.iter().enumerate() {
            let tensor = builder.node(Node::tensor("Tensor", "float32", &[*size]));
            let storage = Node::storage(idx as u64, "cuda:0", Bytes::new(*size));
            let storage = builder.node(storage.at(Some(idx as u64 * 4096)));
            builder.edge(list, tensor, Step::Index(idx as u64));
            builder.edge(tensor, storage, Step::Within);
        }
        builder.root(Root::variable("losses", list));
        let graph = builder.build();
        let look = HeapAnalysis::at(&graph);
        HeapSearchResult {
            holders: look.holders(&HolderLimits::default(), None),
            inventory: look.inventory(),
            held_by: graph.by_preferred_name(),
            storages: look.storage_names(2),
            n_objects: 7,
            notes: vec!["an object was passed over".to_owned()],
        }
    }

    #[test]
    fn what_was_found_arrives() {
        let found = found(&[4096, 1 << 20, 0]);
        assert_eq!(found.inventory.devices[0].storages.len(), 2);
        assert_eq!(decode_found(&encode_found(&found)), Ok(found));
    }

    #[test]
    fn a_million_storages_are_a_small_answer() {
        let found = found(&vec![512; 1_000_000]);
        let bytes = encode_found(&found);
        assert!(bytes.len() < 4096, "{} bytes", bytes.len());
        assert_eq!(decode_found(&bytes), Ok(found));
    }

    #[test]
    fn an_inventory_that_does_not_fit_together_is_refused() {
        let mut found = found(&[4096]);
        found.inventory.devices[0].storages[0].1.name = 7;
        let refused = decode_found(&encode_found(&found)).expect_err("there is one name");
        assert!(refused.to_string().contains("name 7"), "{refused}");
    }
}
