//! What `torch.cuda.memory._snapshot()` gives, as a history.
//!
//! Keys are missing in older versions: without a time an event is at the run's start,
//! without an address a block follows the one before it.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use gpumem_model::trace::{
    Action, AllocatorEvent, AllocatorLayout, Annotation, History, HistoryLevels, Rounding,
    StackIdx, Stage,
};
use gpumem_model::units::{Bytes, Nanos};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use gpumem_base::call_stacks::{MAX_FRAMES, Stacks};
use gpumem_base::clock::Clock;
use gpumem_base::text::Text;

/// What is not worth a block of its own stays with a block of the large pool, up to this.
const UNSPLIT: Bytes = Bytes::mib(1);

pub(super) type TimeSpan = (Nanos, Nanos);

/// torch's times are on the wall clock; this instant is known by both clocks.
pub(super) struct When {
    wall_micros: i128,
    now: Nanos,
}

/// What one device's allocator held at an instant.
pub(super) struct AllocatorState {
    /// CUDA's number of it.
    pub(super) device: u32,
    levels: HistoryLevels,
    blocks: HashMap<u64, Bytes>,
    layout: AllocatorLayout,
}

impl AllocatorState {
    pub(super) fn nothing(device: u32) -> Self {
        Self {
            device,
            levels: HistoryLevels::default(),
            blocks: HashMap::new(),
            layout: AllocatorLayout::default(),
        }
    }
}

impl When {
    pub(super) fn now(clock: Clock) -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            wall_micros: i128::try_from(wall.as_micros()).unwrap_or(i128::MAX),
            now: clock.now(),
        }
    }

    /// Nanoseconds since the recording's start, negative before it.
    fn nanos(&self, wall_micros: u64) -> i128 {
        i128::from(self.now.get()) - (self.wall_micros - i128::from(wall_micros)) * 1_000
    }
}

/// Whether a history is there. That a snapshot was taken is no event of the allocator's.
pub(super) fn has_events(snapshot: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(traces) = snapshot.cast::<PyDict>()?.get_item("device_traces")? else {
        return Ok(false);
    };
    for trace in traces.try_iter()? {
        for event in trace?.try_iter()? {
            let Text(action) = event?.get_item("action")?.extract()?;
            if action != "snapshot" {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The allocator state of each device.
pub(super) fn allocator_states(snapshot: &Bound<'_, PyAny>) -> PyResult<Vec<AllocatorState>> {
    let mut devices: Vec<AllocatorState> = Vec::new();
    let Some(segments) = snapshot.cast::<PyDict>()?.get_item("segments")? else {
        return Ok(devices);
    };
    for segment in segments.cast::<PyList>()? {
        let segment = segment.cast_into::<PyDict>()?;
        let device = number(&segment, "device")?.unwrap_or(0);
        let device = u32::try_from(device).unwrap_or(u32::MAX);
        let position = devices.iter().position(|it| it.device == device);
        let position = position.unwrap_or_else(|| {
            devices.push(AllocatorState::nothing(device));
            devices.len() - 1
        });
        devices[position].add(&segment)?;
    }
    Ok(devices)
}

impl AllocatorState {
    fn add(&mut self, segment: &Bound<'_, PyDict>) -> PyResult<()> {
        let size = |key: &str| number(segment, key).map(|n| Bytes::new(n.unwrap_or(0)));
        self.levels.reserved += size("total_size")?;
        self.levels.allocated += size("allocated_size")?;
        let mut address = number(segment, "address")?.unwrap_or(0);
        self.layout.segments.push((address, size("total_size")?));
        let Some(blocks) = segment.get_item("blocks")? else {
            return Ok(());
        };
        for block in blocks.cast::<PyList>()? {
            let block = block.cast_into::<PyDict>()?;
            let size = number(&block, "size")?.unwrap_or(0);
            address = number(&block, "address")?.unwrap_or(address);
            let state = block.get_item("state")?;
            let is = |name: &str| {
                let state = state.as_ref();
                state.is_some_and(|state| state.eq(name).unwrap_or(false))
            };
            if is("active_allocated") {
                self.blocks.insert(address, Bytes::new(size));
            }
            let pieces = if is("inactive") {
                &mut self.layout.free
            } else {
                &mut self.layout.held
            };
            pieces.push((address, Bytes::new(size)));
            address = address.saturating_add(size);
        }
        Ok(())
    }
}

/// What was known before a run.
pub(super) enum Before {
    /// A snapshot, and the most events that are kept: no history was recorded, so all are the run's.
    Snapshot(AllocatorState, usize),
    /// Its levels: the user records, and what was done before the run is in the history too.
    Levels(HistoryLevels),
}

/// What was done on a device in a run.
pub(super) fn history(
    snapshot: &Bound<'_, PyAny>,
    device: u32,
    before: Before,
    when: &When,
    span: TimeSpan,
) -> PyResult<History> {
    let dict = snapshot.cast::<PyDict>()?;
    let mut after = allocator_states(snapshot)?;
    let position = after.iter().position(|it| it.device == device);
    let after = position.map_or_else(
        || AllocatorState::nothing(device),
        |it| after.swap_remove(it),
    );
    let (levels, max_events) = match &before {
        Before::Snapshot(held, max_events) => (held.levels, Some(*max_events)),
        Before::Levels(levels) => (*levels, None),
    };
    let mut history = History::new(levels, rounding(dict)?);
    if let Before::Snapshot(held, _) = before {
        history.blocks_before = held.blocks;
        history.layout_before = Some(held.layout);
    }
    history.after = Some(after.levels);
    history.blocks_after = after.blocks;
    let traces = dict.get_item("device_traces")?;
    let Some(trace) = traces.and_then(|traces| traces.get_item(device).ok()) else {
        return Ok(history);
    };
    let trace = trace.cast_into::<PyList>()?;
    history.is_cut = max_events.is_some_and(|max| trace.len() >= max);
    let mut reader = EventReader {
        when,
        span,
        is_all_of_the_run: max_events.is_some(),
        last: span.0,
        stacks: Stacks::default(),
        frames: HashMap::new(),
        lists: HashMap::new(),
    };
    for event in &trace {
        history
            .events
            .extend(reader.event(event.cast::<PyDict>()?)?);
    }
    reader.stacks.into_history(&mut history);
    Ok(history)
}

/// The labels in a run, as torch noted where they began and ended.
pub(super) fn annotations(
    annotations: &Bound<'_, PyList>,
    when: &When,
    span: TimeSpan,
) -> PyResult<Vec<Annotation>> {
    let mut found = Vec::new();
    for annotation in annotations {
        let annotation = annotation.cast::<PyDict>()?;
        let text = |key: &str| -> PyResult<Option<String>> {
            let value: Option<Text> = annotation
                .get_item(key)?
                .map(|it| it.extract())
                .transpose()?;
            Ok(value.map(String::from))
        };
        let stage = match text("stage")?.as_deref() {
            Some("START") => Stage::Start,
            Some("END") => Stage::End,
            _ => continue,
        };
        let at = number(annotation, "time_us")?.map(|micros| when.nanos(micros));
        let (Some(name), Some(at)) = (text("name")?, at) else {
            continue;
        };
        if at >= i128::from(span.0.get()) {
            found.push(Annotation {
                at: clamped(at, span),
                stage,
                name,
            });
        }
    }
    Ok(found)
}

fn clamped(at: i128, span: TimeSpan) -> Nanos {
    let inside = at.clamp(
        i128::from(span.0.get()),
        i128::from(span.1.max(span.0).get()),
    );
    Nanos::new(u64::try_from(inside).unwrap_or_default())
}

/// The block size for an event's size, under the user's settings.
fn rounding(snapshot: &Bound<'_, PyDict>) -> PyResult<Rounding> {
    let native = |unsplit, max_split| Rounding::Native { unsplit, max_split };
    let Some(settings) = snapshot.get_item("allocator_settings")? else {
        return Ok(native(UNSPLIT, None));
    };
    let settings = settings.cast_into::<PyDict>()?;
    let divisions = settings.get_item("roundup_power2_divisions")?;
    let divisions = divisions.and_then(|it| it.call_method0("values").ok());
    if let Some(divisions) = divisions {
        for division in divisions.try_iter()? {
            if division?.is_truthy()? {
                return Ok(Rounding::Custom);
            }
        }
    }
    let expandable = settings.get_item("expandable_segments")?;
    if expandable.map_or(Ok(false), |it| it.is_truthy())? {
        // Every rest is cut off.
        return Ok(native(Bytes::ZERO, None));
    }
    // Without a limit it is -1, or the largest number there is.
    let max_split = settings.get_item("max_split_size")?;
    let max_split = max_split.and_then(|size| size.extract::<u64>().ok());
    Ok(native(UNSPLIT, max_split.map(Bytes::new)))
}

/// Reads events one after the other.
struct EventReader<'a> {
    when: &'a When,
    span: TimeSpan,
    /// No event is of a time before it.
    is_all_of_the_run: bool,
    /// When the last event was: none is earlier than the one before it.
    last: Nanos,
    stacks: Stacks,
    /// Frames and lists of them are shared: each object is read once, and lives as long as the
    /// snapshot.
    frames: HashMap<usize, Option<u32>>,
    lists: HashMap<usize, Option<StackIdx>>,
}

impl EventReader<'_> {
    /// `None` where it is none of the allocator's, or was before the run.
    fn event(&mut self, event: &Bound<'_, PyDict>) -> PyResult<Option<AllocatorEvent>> {
        let Some(action) = event.get_item("action")? else {
            return Ok(None);
        };
        let action = match action.extract::<&str>()? {
            "alloc" => Action::Alloc,
            "free_requested" => Action::FreeRequested,
            "free_completed" => Action::FreeCompleted,
            "segment_alloc" | "segment_map" => Action::SegmentAlloc,
            "segment_free" | "segment_unmap" => Action::SegmentFree,
            "oom" => Action::OutOfMemory,
            _ => return Ok(None),
        };
        if let Some(micros) = number(event, "time_us")? {
            let at = self.when.nanos(micros);
            if !self.is_all_of_the_run && at < i128::from(self.span.0.get()) {
                return Ok(None);
            }
            self.last = self.last.max(clamped(at, self.span));
        }
        let address = number(event, "addr")?.unwrap_or(0);
        Ok(Some(AllocatorEvent {
            at: self.last,
            action,
            address,
            size: Bytes::new(number(event, "size")?.unwrap_or(0)),
            stack: match (action, event.get_item("frames")?) {
                (Action::Alloc, Some(frames)) => self.stack(&frames)?,
                _ => None,
            },
        }))
    }

    fn stack(&mut self, list: &Bound<'_, PyAny>) -> PyResult<Option<StackIdx>> {
        let key = list.as_ptr() as usize;
        if let Some(known) = self.lists.get(&key) {
            return Ok(*known);
        }
        let mut frames = Vec::new();
        for frame in list.cast::<PyList>()? {
            frames.extend(self.frame(&frame)?);
            if frames.len() == MAX_FRAMES {
                break;
            }
        }
        let stack = self.stacks.stack(frames);
        self.lists.insert(key, stack);
        Ok(stack)
    }

    /// `None` where it is none of Python's.
    fn frame(&mut self, frame: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let key = frame.as_ptr() as usize;
        if let Some(known) = self.frames.get(&key) {
            return Ok(*known);
        }
        let frame = frame.cast::<PyDict>()?;
        let text = |key: &str| -> PyResult<String> {
            let value: Option<Text> = frame.get_item(key)?.map(|it| it.extract()).transpose()?;
            Ok(value.unwrap_or_default().0)
        };
        let file = text("filename")?;
        let name = text("name")?;
        let read = if is_native(&name, &file) {
            None
        } else {
            let line = u32::try_from(number(frame, "line")?.unwrap_or(0)).unwrap_or(0);
            Some(self.stacks.frame(name, file, line))
        };
        self.frames.insert(key, read);
        Ok(read)
    }
}

/// A frame of C or C++. A file of Python's need not end in `.py`: a cell's may have any name.
fn is_native(name: &str, file: &str) -> bool {
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    matches!(file, "" | "??")
        || name.contains("::")
        || matches!(
            extension,
            "c" | "cc" | "cpp" | "cu" | "h" | "hpp" | "S" | "so"
        )
}

/// A count of the snapshot's; `None` where it is missing or no such number.
fn number(dict: &Bound<'_, PyDict>, key: &str) -> PyResult<Option<u64>> {
    Ok(dict.get_item(key)?.and_then(|value| value.extract().ok()))
}
