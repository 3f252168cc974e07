//! Pickled values → a snapshot, for every generation of the format.

use std::collections::HashMap;

use crate::cell_files::CellFiles;
use crate::pickle::{PickleKind, PickleView, Tree};
use gpumem_model::segments::BlockState;
use gpumem_model::trace::Action;
use gpumem_model::units::Bytes;

use super::fault::{SnapshotError, SnapshotFault};
use super::holder;
use super::model::{
    DeviceSnapshot, SnapshotBlock, SnapshotDevice, SnapshotEvent, SnapshotFrame, SnapshotSegment,
    SnapshotStackIdx, TorchSnapshot,
};
use super::record::{PickledDict, list};

/// A snapshot has at least one of these keys.
const KEYS: [&str; 4] = ["segments", "device_traces", "host_segments", "host_traces"];

/// Marks an entry that was not read yet.
const UNREAD: u32 = u32::MAX;

/// The snapshot in a pickle. [`summary`](super::summary()) does both steps.
///
/// # Errors
///
/// [`SnapshotError`] if the values are no snapshot, with the offset of the first that does not fit.
pub fn read<'t>(
    tree: &'t Tree<'t>,
    cells: &'t CellFiles,
) -> Result<TorchSnapshot<'t>, SnapshotError> {
    let mut reader = SnapshotReader {
        snapshot: TorchSnapshot::default(),
        cells,
        stack_of: vec![UNREAD; tree.n_containers()],
        frame_of: vec![UNREAD; tree.n_containers()],
        holder_of: HashMap::new(),
        n_left: tree.n_items().saturating_mul(4).saturating_add(1000),
    };
    reader.root(tree.root())?;
    reader.snapshot.devices.sort_by_key(|device| device.device);
    Ok(reader.snapshot)
}

struct SnapshotReader<'t> {
    snapshot: TorchSnapshot<'t>,
    cells: &'t CellFiles,
    /// The stack of each list of frames, and the frame of each dict: most are shared.
    stack_of: Vec<u32>,
    frame_of: Vec<u32>,
    /// The position of each name in the snapshot's.
    holder_of: HashMap<&'t str, u32>,
    /// How many records may still be read; a file can share one list any number of times.
    n_left: usize,
}

impl<'t> SnapshotReader<'t> {
    fn root(&mut self, root: PickleView<'t>) -> Result<(), SnapshotError> {
        match root.kind() {
            PickleKind::List if is_segments(root) => self.segments(root, None),
            PickleKind::Dict if KEYS.iter().any(|key| root.get(key).is_some()) => {
                self.dict(PickledDict::new(root, "snapshot", 0)?)
            }
            _ => {
                let what = SnapshotFault::OtherPickle(looks_like(root));
                Err(what.at(root.offset().unwrap_or_default()))
            }
        }
    }

    fn dict(&mut self, root: PickledDict<'t>) -> Result<(), SnapshotError> {
        if let Some(segments) = root.list("segments")? {
            self.segments(segments, None)?;
        }
        if let Some(segments) = root.get("host_segments").filter(|&list| is_segments(list)) {
            self.segments(segments, Some(SnapshotDevice::Host))?;
        }
        if let Some(traces) = root.list("device_traces")? {
            for (number, trace) in traces.items().enumerate() {
                self.visit(root.offset())?;
                let trace = list(trace, "device_traces", root.offset())?;
                self.trace(trace, SnapshotDevice::Cuda(number as u64))?;
            }
        }
        if let Some(traces) = root.get("host_traces") {
            // One list, or a list for each device.
            if traces
                .items()
                .next()
                .is_some_and(|first| first.kind() == PickleKind::Dict)
            {
                self.trace(traces, SnapshotDevice::Host)?;
            } else {
                for trace in traces.items() {
                    self.visit(root.offset())?;
                    self.trace(trace, SnapshotDevice::Host)?;
                }
            }
        }
        if let Some(settings) = root.get("allocator_settings") {
            let settings = PickledDict::new(settings, "allocator_settings", root.offset())?;
            let shown = settings
                .fields()
                .filter_map(|(name, value)| Some((name.to_owned(), plain(value)?)));
            self.snapshot.settings = shown.collect();
        }
        let annotations = root.get("external_annotations");
        self.snapshot.n_annotations = annotations.map_or(0, |list| list.items().len());
        Ok(())
    }

    fn segments(
        &mut self,
        segments: PickleView<'t>,
        device: Option<SnapshotDevice>,
    ) -> Result<(), SnapshotError> {
        let above = segments.offset().unwrap_or_default();
        for segment in segments.items() {
            self.visit(above)?;
            let record = PickledDict::new(segment, "segments", above)?;
            let (number, segment) = self.segment(record)?;
            let device = device.unwrap_or(SnapshotDevice::Cuda(number));
            self.device(device).segments.push(segment);
        }
        Ok(())
    }

    /// A segment, and its device's number.
    fn segment(
        &mut self,
        record: PickledDict<'t>,
    ) -> Result<(u64, SnapshotSegment), SnapshotError> {
        let mut device = 0;
        let mut segment = SnapshotSegment {
            size: Bytes::ZERO,
            stated_allocated: None,
            stated_active: None,
            is_expandable: false,
            address: None,
            is_small: false,
            is_private: false,
            stream: None,
            blocks: Vec::new(),
        };
        for (name, value) in record.fields() {
            match name {
                "device" => device = record.number(value, "device")?.unwrap_or_default(),
                "address" => segment.address = record.number(value, "address")?,
                "total_size" => {
                    segment.size = record.bytes(value, "total_size")?.unwrap_or_default();
                }
                "allocated_size" => {
                    segment.stated_allocated = record.bytes(value, "allocated_size")?;
                }
                "active_size" => segment.stated_active = record.bytes(value, "active_size")?,
                "segment_type" => segment.is_small = value.as_text() == Some("small"),
                "segment_pool_id" => {
                    segment.is_private = value.items().any(|part| part.as_int() != Some(0));
                }
                "stream" => segment.stream = value.as_u64(),
                "is_expandable" => segment.is_expandable = value.as_bool().unwrap_or_default(),
                _ => (),
            }
        }
        let mut address = segment.address;
        if let Some(blocks) = record.list("blocks")? {
            for block in blocks.items() {
                self.visit(record.offset())?;
                let mut block = self.block(PickledDict::new(block, "blocks", record.offset())?)?;
                block.address = block.address.or(address);
                address = block
                    .address
                    .and_then(|at| at.checked_add(block.size.get()));
                segment.blocks.push(block);
            }
        }
        Ok((device, segment))
    }

    fn block(&mut self, record: PickledDict<'t>) -> Result<SnapshotBlock, SnapshotError> {
        let mut block = SnapshotBlock {
            address: None,
            size: Bytes::ZERO,
            requested: Bytes::ZERO,
            state: BlockState::Free,
            stack: None,
            holder: None,
        };
        let (mut requested, mut latest) = (None, None);
        for (name, value) in record.fields() {
            match name {
                "address" => block.address = record.number(value, "address")?,
                "size" => block.size = record.bytes(value, "size")?.unwrap_or_default(),
                "requested_size" => requested = record.bytes(value, "requested_size")?,
                "state" => block.state = state(value),
                "frames" => {
                    block.stack = self.stack(value, record.offset())?;
                    block.holder = self.holder(holder::of_frames(value)).or(block.holder);
                }
                "user_metadata" => {
                    let named = value.as_text().and_then(holder::of_metadata);
                    block.holder = block.holder.or(self.holder(named));
                }
                // Torch 1.13 and 2.0: the block's past owners, the latest first.
                "history" => latest = list(value, "history", record.offset())?.items().next(),
                _ => (),
            }
        }
        if let Some(latest) = latest {
            let latest = PickledDict::new(latest, "history", record.offset())?;
            if let Some(frames) = latest.get("frames") {
                block.stack = block.stack.or(self.stack(frames, latest.offset())?);
            }
            if let Some(size) = latest.get("real_size").filter(|_| requested.is_none()) {
                requested = latest.bytes(size, "real_size")?;
            }
        }
        block.requested = requested.unwrap_or(block.size);
        Ok(block)
    }

    fn trace(
        &mut self,
        trace: PickleView<'t>,
        device: SnapshotDevice,
    ) -> Result<(), SnapshotError> {
        if trace.items().len() == 0 {
            return Ok(());
        }
        let above = trace.offset().unwrap_or_default();
        let (mut events, mut failed_streams) = (Vec::new(), Vec::new());
        for event in trace.items() {
            self.visit(above)?;
            let record = PickledDict::new(event, "device_traces", above)?;
            let event = self.event(record)?;
            if event.action == Some(Action::OutOfMemory) {
                failed_streams.push(record.get("stream").and_then(PickleView::as_u64));
            }
            events.push(event);
        }
        let device = self.device(device);
        device.events.append(&mut events);
        device.failed_streams.append(&mut failed_streams);
        Ok(())
    }

    fn event(&mut self, record: PickledDict<'t>) -> Result<SnapshotEvent, SnapshotError> {
        let mut event = SnapshotEvent {
            action: None,
            address: None,
            size: Bytes::ZERO,
            at_micros: None,
            stack: None,
        };
        for (name, value) in record.fields() {
            match name {
                "action" => event.action = action(value),
                "addr" | "device_free" => event.address = record.number(value, "addr")?,
                "size" => event.size = record.bytes(value, "size")?.unwrap_or_default(),
                "time_us" => event.at_micros = record.number(value, "time_us")?,
                "frames" => event.stack = self.stack(value, record.offset())?,
                _ => (),
            }
        }
        Ok(event)
    }

    /// The stack of a list of frames; `None` if nothing was recorded.
    fn stack(
        &mut self,
        frames: PickleView<'t>,
        above: usize,
    ) -> Result<Option<SnapshotStackIdx>, SnapshotError> {
        let Some(identity) = frames.identity() else {
            if frames.is_none() {
                return Ok(None);
            }
            return list(frames, "frames", above).map(|_| None);
        };
        // gpumem's entry for a missing stack.
        if frames.items().len() == 0 || holder::of_frames(frames).is_some() {
            return list(frames, "frames", above).map(|_| None);
        }
        if let Some(&known) = self.stack_of.get(identity as usize)
            && known != UNREAD
        {
            return Ok(Some(SnapshotStackIdx(known)));
        }
        let mut stack = Vec::with_capacity(frames.items().len());
        for frame in frames.items() {
            stack.push(self.frame(PickledDict::new(frame, "frames", above)?));
        }
        let at = self.snapshot.stacks.len() as u32;
        self.snapshot.stacks.push(stack);
        if let Some(known) = self.stack_of.get_mut(identity as usize) {
            *known = at;
        }
        Ok(Some(SnapshotStackIdx(at)))
    }

    fn holder(&mut self, name: Option<&'t str>) -> Option<u32> {
        let next = self.snapshot.holders.len() as u32;
        let idx = *self.holder_of.entry(name?).or_insert(next);
        if idx == next {
            self.snapshot.holders.extend(name);
        }
        Some(idx)
    }

    fn frame(&mut self, record: PickledDict<'t>) -> u32 {
        let identity = record.identity() as usize;
        if let Some(&known) = self.frame_of.get(identity)
            && known != UNREAD
        {
            return known;
        }
        let mut frame = SnapshotFrame {
            name: "",
            file: "",
            line: None,
        };
        for (name, value) in record.fields() {
            match name {
                "name" => frame.name = value.as_text().unwrap_or_default(),
                "filename" => {
                    let file = value.as_text().unwrap_or_default();
                    frame.file = self.cells.name_of(file).unwrap_or(file);
                }
                // Unknown lines are 0 or 2^64-1.
                "line" => {
                    let line = value.as_int().and_then(|line| u32::try_from(line).ok());
                    frame.line = line.filter(|&line| line > 0);
                }
                _ => (),
            }
        }
        let at = self.snapshot.frames.len() as u32;
        self.snapshot.frames.push(frame);
        if let Some(known) = self.frame_of.get_mut(identity) {
            *known = at;
        }
        at
    }

    fn device(&mut self, device: SnapshotDevice) -> &mut DeviceSnapshot {
        let devices = &mut self.snapshot.devices;
        let at = devices.iter().rposition(|known| known.device == device);
        let at = at.unwrap_or_else(|| {
            devices.push(DeviceSnapshot {
                device,
                segments: Vec::new(),
                events: Vec::new(),
                failed_streams: Vec::new(),
            });
            devices.len() - 1
        });
        &mut devices[at]
    }

    /// Counts a record.
    fn visit(&mut self, offset: usize) -> Result<(), SnapshotError> {
        self.n_left = match self.n_left.checked_sub(1) {
            Some(n_left) => n_left,
            None => return Err(SnapshotFault::Endless.at(offset)),
        };
        Ok(())
    }
}

fn state(value: PickleView<'_>) -> BlockState {
    match value.as_text() {
        Some("active_allocated") => BlockState::Held,
        Some("active_pending_free" | "active_awaiting_free") => BlockState::Awaiting,
        _ => BlockState::Free,
    }
}

fn action(value: PickleView<'_>) -> Option<Action> {
    Some(match value.as_text()? {
        "alloc" => Action::Alloc,
        // The oldest traces have one action for both.
        "free_requested" | "free" => Action::FreeRequested,
        "free_completed" => Action::FreeCompleted,
        "segment_alloc" | "segment_map" => Action::SegmentAlloc,
        "segment_free" | "segment_unmap" => Action::SegmentFree,
        "oom" => Action::OutOfMemory,
        _ => return None,
    })
}

/// A setting as text; `None` if it has parts.
fn plain(value: PickleView<'_>) -> Option<String> {
    match value.kind() {
        PickleKind::Bool => value.as_bool().map(|yes| yes.to_string()),
        PickleKind::Int => value.as_int().map(|number| number.to_string()),
        PickleKind::Float => value.as_float().map(|number| number.to_string()),
        PickleKind::Text => value.as_text().map(str::to_owned),
        _ => None,
    }
}

/// Whether a list may be a list of segments; an empty one may.
fn is_segments(list: PickleView<'_>) -> bool {
    let first = list.items().next();
    first.is_none_or(|first| first.get("blocks").is_some() || first.get("total_size").is_some())
}

/// `dict with the keys a, b`, `list of 3 items`.
fn looks_like(root: PickleView<'_>) -> String {
    const SHOWN: usize = 4;
    let kind = root.kind();
    match kind {
        PickleKind::Dict => {
            let keys = root.entries().filter_map(|(key, _)| key.as_text());
            let keys: Vec<&str> = keys.take(SHOWN).collect();
            if keys.is_empty() {
                return "dict without names".to_owned();
            }
            let keys = gpumem_model::printable::printable(&keys.join(", "));
            format!("dict with {keys}")
        }
        PickleKind::List | PickleKind::Tuple => format!("{kind} of {} items", root.items().len()),
        _ => kind.to_string(),
    }
}
