//! Figures that are shown in several places, each declared once: its name and its value. JSON, tables and files for
//! spreadsheets take them from here.

use serde::ser::SerializeMap;

use gpumem_analyzer::{CellRef, Peak, RunRow};
use gpumem_model::recording::{Recording, Run};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// One figure of an `R`.
pub(crate) struct RunFigure<R> {
    /// `*_bytes` are bytes, `*_nanos` nanoseconds.
    pub(crate) name: &'static str,
    pub(crate) value: FigureValue<R>,
}

/// How a figure is calculated; `None` is unknown.
pub(crate) enum FigureValue<R> {
    Bytes(fn(&R) -> Option<Bytes>),
    Change(fn(&R) -> Option<ByteDelta>),
    Nanos(fn(&R) -> Option<Nanos>),
    Count(fn(&R) -> Option<u64>),
    /// One of a few names.
    Name(fn(&R) -> Option<&'static str>),
    Text(fn(&R) -> Option<String>),
    Flag(fn(&R) -> bool),
}

impl<R> RunFigure<R> {
    /// Adds the figure to a map.
    pub(crate) fn put<M: SerializeMap>(&self, row: &R, map: &mut M) -> Result<(), M::Error> {
        match &self.value {
            FigureValue::Bytes(of) => map.serialize_entry(self.name, &of(row)),
            FigureValue::Change(of) => map.serialize_entry(self.name, &of(row)),
            FigureValue::Nanos(of) => map.serialize_entry(self.name, &of(row)),
            FigureValue::Count(of) => map.serialize_entry(self.name, &of(row)),
            FigureValue::Name(of) => map.serialize_entry(self.name, &of(row)),
            FigureValue::Text(of) => map.serialize_entry(self.name, &of(row)),
            FigureValue::Flag(of) => map.serialize_entry(self.name, &of(row)),
        }
    }
}

/// Declares figures, one a line: what it is, its name, the kind of its value, and how that is calculated. Of those of a
/// run, `cargo xtask findings` writes into the schema what is said of them here.
macro_rules! figures {
    ($($(#[doc = $meaning:literal])* $name:ident: $kind:ident($value:expr),)+) => {
        [$($crate::figures::RunFigure {
            name: stringify!($name),
            value: $crate::figures::FigureValue::$kind($value),
        }),+]
    };
}
pub(crate) use figures;

/// A run on a device.
pub(crate) struct RunOnDevice<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) run: &'a Run,
    pub(crate) row: &'a RunRow,
}

impl<'a> RunOnDevice<'a> {
    pub(crate) fn new(recording: &'a Recording, row: &'a RunRow) -> Self {
        Self {
            recording,
            run: recording.run(row.run),
            row,
        }
    }

    pub(crate) fn device(&self) -> &'a str {
        &self.recording.device(self.row.device).label
    }

    pub(crate) fn cell(&self) -> CellRef {
        CellRef::at(self.recording, self.run)
    }
}

/// Which run it is, and on which device.
pub(crate) fn run_places<'a>() -> [RunFigure<RunOnDevice<'a>>; 2] {
    figures![
        /// The index of the run in the recording.
        run: Count(|it| Some(it.row.run.0.into())),
        /// The label of the device.
        device: Text(|it| Some(it.device().to_owned())),
    ]
}

/// All other figures of a run on a device.
pub(crate) fn run_figures<'a>() -> [RunFigure<RunOnDevice<'a>>; 27] {
    figures![
        /// The run around it.
        parent: Count(|it| Some(it.run.parent?.0.into())),
        /// The user's label, or the name of the block.
        label: Text(|it| it.run.label.clone()),
        /// The number that IPython gave it.
        execution_count: Count(|it| it.run.execution_count.map(u64::from)),
        /// Whether it still runs, or how it ended.
        status: Name(|it| Some(it.run.status.name())),
        /// When it began, since the recording's start.
        started_nanos: Nanos(|it| Some(it.run.started)),
        /// When it ended.
        ended_nanos: Nanos(|it| it.run.ended),
        /// How long it took.
        duration_nanos: Nanos(|it| Some(it.run.ended?.since(it.run.started))),
        /// What its levels measure.
        metric: Name(|it| Some(it.row.metric.name())),
        /// The metric when the run began.
        before_bytes: Bytes(|it| it.row.before),
        /// The metric when it ended.
        after_bytes: Bytes(|it| it.row.after),
        /// After minus before.
        kept_bytes: Change(|it| it.row.kept),
        /// The part of kept_bytes from the time in which others ran, too: it belongs to none of them for certain.
        overlap_bytes: Change(|it| it.row.overlap?.moved),
        /// The highest level that is certain.
        peak_bytes: Bytes(|it| it.row.peak.map(Peak::low)),
        /// The peak is at most this.
        peak_high_bytes: Bytes(|it| it.row.peak?.high()),
        /// The peak is certain.
        peak_exact: Flag(|it| it.row.peak.is_some_and(Peak::is_exact)),
        /// Tensors when it began.
        allocated_before_bytes: Bytes(|it| it.row.allocated.0),
        /// Tensors when it ended.
        allocated_after_bytes: Bytes(|it| it.row.allocated.1),
        /// Tensors and the allocator's cache when it began.
        reserved_before_bytes: Bytes(|it| it.row.reserved.0),
        /// Tensors and the allocator's cache when it ended.
        reserved_after_bytes: Bytes(|it| it.row.reserved.1),
        /// What the process used when it began.
        process_used_before_bytes: Bytes(|it| it.row.process_used.0),
        /// What the process used when it ended.
        process_used_after_bytes: Bytes(|it| it.row.process_used.1),
        /// What all processes used when it began.
        device_used_before_bytes: Bytes(|it| it.row.device_used.0),
        /// What all processes used when it ended.
        device_used_after_bytes: Bytes(|it| it.row.device_used.1),
        /// The device's capacity.
        capacity_bytes: Bytes(|it| it.row.capacity),
        /// Allocations that succeeded only after the cache was flushed.
        n_retries: Count(|it| it.row.n_retries),
        /// Allocated blocks when it began.
        n_blocks_before: Count(|it| it.row.n_blocks.0),
        /// Allocated blocks when it ended.
        n_blocks_after: Count(|it| it.row.n_blocks.1),
    ]
}
