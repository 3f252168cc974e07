//! What holds a block, put where viewers show it.

use std::collections::{HashMap, HashSet};

use gpumem_heap::BlockNames;
use gpumem_model::units::Bytes;
use gpumem_readers::torch_snapshot::HELD_BY;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::SnapshotDict;

/// A block that is the same in two snapshots.
type Same = (String, u64, u64, u64);

/// Names, on their way into a snapshot.
pub(super) struct SnapshotLabels<'a, 'py> {
    py: Python<'py>,
    names: &'a BlockNames,
    /// The live blocks of a later snapshot, if memory moved between both.
    still_there: Option<HashSet<Same>>,
    /// The names that were put, by device and address.
    put: HashMap<(u64, u64), String>,
    /// Frames that stand for a name: one list for each.
    frames: HashMap<String, Bound<'py, PyList>>,
    /// Live blocks.
    pub(super) n_blocks: usize,
    /// How many of these have a path.
    pub(super) n_named: usize,
    /// Those that changed while their holders were searched.
    pub(super) n_moved: usize,
}

impl<'a, 'py> SnapshotLabels<'a, 'py> {
    /// `now` is taken after the search, if memory has moved since the snapshot.
    pub(super) fn new(
        py: Python<'py>,
        names: &'a BlockNames,
        now: Option<&SnapshotDict<'py>>,
    ) -> PyResult<Self> {
        let mut labels = Self {
            py,
            names,
            still_there: None,
            put: HashMap::new(),
            frames: HashMap::new(),
            n_blocks: 0,
            n_named: 0,
            n_moved: 0,
        };
        if let Some(now) = now {
            let mut live = HashSet::new();
            for_each_block(now, |at, block| {
                live.insert(same(&at, &LabelledBlock::read(block)?));
                Ok(())
            })?;
            labels.still_there = Some(live);
        }
        Ok(labels)
    }

    /// Labels each live block, and the event that allocated it.
    pub(super) fn put_into(&mut self, snapshot: &SnapshotDict<'py>) -> PyResult<()> {
        for_each_block(snapshot, |at, dict| self.block(&at, dict))?;
        let Some(traces) = snapshot.get_item(intern!(self.py, "device_traces"))? else {
            return Ok(());
        };
        for (device, trace) in traces.cast::<PyList>()?.iter().enumerate() {
            self.trace(device as u64, trace.cast::<PyList>()?)?;
        }
        Ok(())
    }

    fn block(&mut self, at: &SegmentDevice, dict: &Bound<'py, PyDict>) -> PyResult<()> {
        let block = LabelledBlock::read(dict)?;
        let name = match block.state.as_str() {
            "active_allocated" => self.name(at, &block),
            // Torch's documentation has the second name, its code the first.
            "active_pending_free" | "active_awaiting_free" => BlockNames::AWAITS_STREAM.to_owned(),
            _ => return Ok(()),
        };
        self.label(dict, &name)?;
        if let SegmentDevice::Device(device) = at {
            self.put.insert((*device, block.address), name);
        }
        Ok(())
    }

    fn name(&mut self, at: &SegmentDevice, block: &LabelledBlock) -> String {
        self.n_blocks += 1;
        let is_same = |live: &HashSet<Same>| live.contains(&same(at, block));
        if !self.still_there.as_ref().is_none_or(is_same) {
            self.n_moved += 1;
            return BlockNames::MOVED.to_owned();
        }
        let (size, requested) = (Bytes::new(block.size), Bytes::new(block.requested));
        match self.names.path(&at.label(), block.address, size) {
            Some(path) => {
                self.n_named += 1;
                path.to_owned()
            }
            None => self.names.unnamed(requested).to_owned(),
        }
    }

    /// Only the last event of an address may be the allocation of what lives there.
    fn trace(&mut self, device: u64, events: &Bound<'py, PyList>) -> PyResult<()> {
        let py = self.py;
        for event in events.iter().rev() {
            let event = event.cast::<PyDict>()?;
            let action = event.get_item(intern!(py, "action"))?;
            let is_alloc = action.is_some_and(|it| it.eq("alloc").unwrap_or(false));
            let address = number(event, "addr")?.filter(|_| is_alloc);
            if let Some(address) = address
                && let Some(name) = self.put.remove(&(device, address))
            {
                self.label(event, &name)?;
            }
        }
        Ok(())
    }

    fn label(&mut self, dict: &Bound<'py, PyDict>, name: &str) -> PyResult<()> {
        let py = self.py;
        let frames = dict.get_item(intern!(py, "frames"))?;
        if frames.is_none_or(|it| !it.is_truthy().unwrap_or(false)) {
            return dict.set_item(intern!(py, "frames"), self.frames(name)?);
        }
        let key = intern!(py, "user_metadata");
        let own = dict
            .get_item(key)?
            .filter(|it| it.is_truthy().unwrap_or(false));
        let label = format!("{HELD_BY} {name}");
        match own {
            Some(own) => dict.set_item(key, format!("{}\n{label}", own.str()?.to_string_lossy())),
            None => dict.set_item(key, label),
        }
    }

    fn frames(&mut self, name: &str) -> PyResult<Bound<'py, PyList>> {
        if let Some(known) = self.frames.get(name) {
            return Ok(known.clone());
        }
        let py = self.py;
        let frame = PyDict::new(py);
        frame.set_item(intern!(py, "name"), name)?;
        frame.set_item(intern!(py, "filename"), HELD_BY)?;
        frame.set_item(intern!(py, "line"), 0)?;
        let frames = PyList::new(py, [frame])?;
        self.frames.insert(name.to_owned(), frames.clone());
        Ok(frames)
    }
}

enum SegmentDevice {
    Device(u64),
    /// Pinned memory.
    Host,
}

impl SegmentDevice {
    fn label(&self) -> String {
        match self {
            Self::Device(number) => format!("cuda:{number}"),
            Self::Host => "host".to_owned(),
        }
    }
}

struct LabelledBlock {
    address: u64,
    size: u64,
    requested: u64,
    state: String,
}

impl LabelledBlock {
    fn read(dict: &Bound<'_, PyDict>) -> PyResult<Self> {
        let size = number(dict, "size")?.unwrap_or_default();
        let state = dict.get_item(intern!(dict.py(), "state"))?;
        Ok(Self {
            address: number(dict, "address")?.unwrap_or_default(),
            size,
            requested: number(dict, "requested_size")?.unwrap_or(size),
            state: state
                .map(|it| it.extract())
                .transpose()?
                .unwrap_or_default(),
        })
    }
}

fn same(at: &SegmentDevice, block: &LabelledBlock) -> Same {
    (
        format!("{} {}", at.label(), block.state),
        block.address,
        block.size,
        block.requested,
    )
}

fn for_each_block<'py>(
    snapshot: &SnapshotDict<'py>,
    mut work: impl FnMut(SegmentDevice, &Bound<'py, PyDict>) -> PyResult<()>,
) -> PyResult<()> {
    for (key, is_host) in [("segments", false), ("host_segments", true)] {
        let Some(segments) = snapshot.get_item(key)?.filter(|it| !it.is_none()) else {
            continue;
        };
        for segment in segments.try_iter()? {
            let segment = segment?.cast_into::<PyDict>()?;
            let Some(blocks) = segment.get_item("blocks")? else {
                continue;
            };
            let device = number(&segment, "device")?.unwrap_or_default();
            for block in blocks.try_iter()? {
                let place = if is_host {
                    SegmentDevice::Host
                } else {
                    SegmentDevice::Device(device)
                };
                work(place, block?.cast::<PyDict>()?)?;
            }
        }
    }
    Ok(())
}

fn number(dict: &Bound<'_, PyDict>, key: &str) -> PyResult<Option<u64>> {
    Ok(dict.get_item(key)?.and_then(|value| value.extract().ok()))
}
