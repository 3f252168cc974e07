//! The result of a heap search, on its way from the process that searched.
//!
//! The reader does not trust it, because that process may have been killed while it wrote.

use serde::Serialize;

use super::messagepack::{Outcome, Reader, Refused};
use super::record::{Decode, DecodeFields};
use super::v1::WireHolders;
use super::{Fault, PREFIX, ReadError, framed, payload_at, read};
use crate::holders::{DeviceHolders, Entry, Found, HeldBy, Inventory, RootKind, Shelf};
use crate::recording::{DeviceIdx, HolderSnapshot, RunIdx};
use crate::units::Bytes;

const KIND: &str = "found";

#[derive(Serialize)]
struct WireFound {
    holders: Vec<WireHolders>,
    inventory: WireInventory,
    held_by: Vec<WireHeldBy>,
    n_objects: u64,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct WireHeldBy {
    name: String,
    class: &'static str,
    device: String,
    bytes: u64,
}

#[derive(Serialize)]
struct WireInventory {
    devices: Vec<WireShelf>,
    names: Vec<WireName>,
    is_whole: bool,
}

#[derive(Serialize)]
struct WireName {
    class: &'static str,
    name: String,
}

/// Storages are columns, each with an entry a storage.
#[derive(Serialize)]
struct WireShelf {
    device: String,
    ids: Vec<u64>,
    storages: WireEntries,
    summed_up_to: u64,
    sums: WireEntries,
    handed_out: Option<u64>,
    unseen: u64,
}

#[derive(Serialize)]
struct WireEntries {
    bytes: Vec<u64>,
    names: Vec<u64>,
    /// 1 for what an allocator has handed out.
    handed_out: Vec<u64>,
}

/// The bytes of a search's result.
///
/// ```
/// use gpumem_core::format::{decode_found, encode_found};
/// use gpumem_core::holders::Found;
///
/// let bytes = encode_found(&Found { n_objects: 7, ..Found::default() });
/// assert_eq!(decode_found(&bytes)?.n_objects, 7);
/// assert!(decode_found(&bytes[..bytes.len() / 2]).is_err(), "killed while writing");
/// # Ok::<(), gpumem_core::format::ReadError>(())
/// ```
pub fn encode_found(found: &Found) -> Vec<u8> {
    let held = |holders: &DeviceHolders| {
        WireHolders::from(&HolderSnapshot {
            run: RunIdx(0),
            device: DeviceIdx(0),
            holders: holders.clone(),
        })
    };
    let held_by = |held: &HeldBy| WireHeldBy {
        name: held.name.clone(),
        class: held.kind.name(),
        device: held.device.clone(),
        bytes: held.n_bytes.get(),
    };
    let wire = WireFound {
        holders: found.holders.devices.iter().map(held).collect(),
        inventory: WireInventory::from(&found.inventory),
        held_by: found.held_by.iter().map(held_by).collect(),
        n_objects: found.n_objects,
        notes: found.notes.clone(),
    };
    framed(KIND, &wire)
}

/// Reads what [`encode_found`] wrote.
///
/// # Errors
///
/// [`ReadError`] if the bytes are cut, damaged or inconsistent.
pub fn decode_found(bytes: &[u8]) -> Result<Found, ReadError> {
    let payload = payload_at(bytes, 0)?;
    let mut input = Reader::new(payload);
    let end = PREFIX + payload.len();
    let kind: String = read(&mut input, end)?;
    if kind != KIND {
        return Err(Fault::Payload(format!("a frame of {kind} instead of {KIND}")).at(0));
    }
    let found: Found = read(&mut input, end)?;
    found
        .inventory
        .check()
        .map_err(|words| Fault::Payload(words).at(0))?;
    Ok(found)
}

impl From<&Inventory> for WireInventory {
    fn from(inventory: &Inventory) -> Self {
        let name = |(kind, name): &(RootKind, Box<str>)| WireName {
            class: kind.name(),
            name: name.to_string(),
        };
        let shelf = |shelf: &Shelf| WireShelf {
            device: shelf.device.to_string(),
            ids: shelf.storages.iter().map(|(id, _)| *id).collect(),
            storages: shelf.storages.iter().map(|(_, entry)| *entry).collect(),
            summed_up_to: shelf.summed_up_to.get(),
            sums: shelf.sums.iter().copied().collect(),
            handed_out: shelf.handed_out.map(Bytes::get),
            unseen: shelf.unseen.get(),
        };
        Self {
            devices: inventory.devices.iter().map(shelf).collect(),
            names: inventory.names.iter().map(name).collect(),
            is_whole: inventory.is_whole,
        }
    }
}

impl FromIterator<Entry> for WireEntries {
    fn from_iter<T: IntoIterator<Item = Entry>>(entries: T) -> Self {
        let mut wire = Self {
            bytes: Vec::new(),
            names: Vec::new(),
            handed_out: Vec::new(),
        };
        for entry in entries {
            wire.bytes.push(entry.n_bytes.get());
            wire.names.push(entry.name.into());
            wire.handed_out.push(entry.is_handed_out.into());
        }
        wire
    }
}

impl DecodeFields for Found {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "holders" => {
                let known = |held: HolderSnapshot| Some(held.holders);
                value.list_of(&mut self.holders.devices, known)
            }
            "inventory" => self.inventory.fill(value),
            "held_by" => self.held_by.fill(value),
            "n_objects" => self.n_objects.fill(value),
            "notes" => self.notes.fill(value),
            _ => value.skip(),
        }
    }
}

impl DecodeFields for HeldBy {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "name" => self.name.fill(value),
            "class" => self.kind.fill(value),
            "device" => self.device.fill(value),
            "bytes" => self.n_bytes.fill(value),
            _ => value.skip(),
        }
    }
}

impl Decode for RootKind {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        let mut kind = None;
        reader.name(Self::from_name, &mut kind)?;
        *self = kind.unwrap_or_default();
        Ok(())
    }
}

impl DecodeFields for Inventory {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "devices" => self.devices.fill(value),
            "names" => {
                let known = |found: FoundName| Some((found.kind, found.name.into()));
                value.list_of(&mut self.names, known)
            }
            "is_whole" => self.is_whole.fill(value),
            _ => value.skip(),
        }
    }
}

#[derive(Default)]
struct FoundName {
    kind: RootKind,
    name: String,
}

impl DecodeFields for FoundName {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "class" => self.kind.fill(value),
            "name" => self.name.fill(value),
            _ => value.skip(),
        }
    }
}

impl DecodeFields for Shelf {
    fn required(&self) -> &'static [&'static str] {
        &["ids", "storages", "sums"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "device" => {
                self.device = value.string()?.into();
                Ok(())
            }
            // The ids stand before their entries.
            "ids" => {
                let nothing = Entry::default();
                let ids = value.numbers(None)?;
                self.storages = ids.into_iter().map(|id| (id, nothing)).collect();
                Ok(())
            }
            "storages" => {
                let mut entries = FoundEntries::default();
                entries.fill(value)?;
                let ids = self.storages.iter().map(|(id, _)| *id);
                let entries = entries.entries(self.storages.len())?;
                self.storages = ids.zip(entries).collect();
                Ok(())
            }
            "summed_up_to" => self.summed_up_to.fill(value),
            "sums" => {
                let mut entries = FoundEntries::default();
                entries.fill(value)?;
                self.sums = entries.entries(entries.bytes.len())?;
                Ok(())
            }
            "handed_out" => self.handed_out.fill(value),
            "unseen" => self.unseen.fill(value),
            _ => value.skip(),
        }
    }
}

#[derive(Default)]
struct FoundEntries {
    bytes: Vec<u64>,
    names: Vec<u64>,
    handed_out: Vec<u64>,
}

impl FoundEntries {
    /// Refuses columns that are not of this length.
    fn entries(&self, n: usize) -> Outcome<Vec<Entry>> {
        let columns = [&self.bytes, &self.names, &self.handed_out];
        if let Some(column) = columns.into_iter().find(|column| column.len() != n) {
            let n_found = column.len();
            return Err(Refused(format!("a column of {n_found} beside one of {n}")));
        }
        let entry = |idx: usize| Entry {
            n_bytes: Bytes::new(self.bytes[idx]),
            name: u32::try_from(self.names[idx]).unwrap_or(u32::MAX),
            is_handed_out: self.handed_out[idx] != 0,
        };
        Ok((0..n).map(entry).collect())
    }
}

impl DecodeFields for FoundEntries {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        let column = match name {
            "bytes" => &mut self.bytes,
            "names" => &mut self.names,
            "handed_out" => &mut self.handed_out,
            _ => return value.skip(),
        };
        *column = value.numbers(None)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::holders::{GraphBuilder, HeapAnalysis, Limits, Node, Root, Step};

    /// A list of tensors, one for each size.
    fn found(sizes: &[u64]) -> Found {
        let mut builder = GraphBuilder::default();
        let list = builder.node(Node::object("list"));
        for (idx, size) in sizes.iter().enumerate() {
            let tensor = builder.node(Node::tensor("Tensor", "float32", &[*size]));
            let storage = Node::storage(idx as u64, "cuda:0", Bytes::new(*size));
            let storage = builder.node(storage);
            builder.edge(list, tensor, Step::Index(idx as u64));
            builder.edge(tensor, storage, Step::Within);
        }
        builder.root(Root::variable("losses", list));
        let graph = builder.build();
        let look = HeapAnalysis::at(&graph);
        Found {
            holders: look.holders(&Limits::default(), None),
            inventory: look.inventory(),
            held_by: graph.by_preferred_name(),
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

    proptest! {
        #[test]
        fn garbage_never_panics(position in 0_usize..300, byte: u8, cut in 0_usize..400) {
            let mut bytes = encode_found(&found(&[4096, 8192]));
            let n = bytes.len();
            bytes[position % n] = byte;
            let _ = decode_found(&bytes[..cut.min(n)]);
            let _ = decode_found(&bytes);
        }
    }
}
