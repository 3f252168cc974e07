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
    pub(crate) const fn new(name: &'static str, value: FigureValue<R>) -> Self {
        Self { name, value }
    }

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
    [
        RunFigure::new("run", FigureValue::Count(|it| Some(it.row.run.0.into()))),
        RunFigure::new(
            "device",
            FigureValue::Text(|it| Some(it.device().to_owned())),
        ),
    ]
}

/// All other figures of a run on a device.
pub(crate) fn run_figures<'a>() -> [RunFigure<RunOnDevice<'a>>; 27] {
    use FigureValue::{Bytes, Change, Count, Flag, Name, Nanos, Text};

    [
        RunFigure::new("parent", Count(|it| Some(it.run.parent?.0.into()))),
        RunFigure::new("label", Text(|it| it.run.label.clone())),
        RunFigure::new(
            "execution_count",
            Count(|it| it.run.execution_count.map(u64::from)),
        ),
        RunFigure::new("status", Name(|it| Some(it.run.status.name()))),
        RunFigure::new("started_nanos", Nanos(|it| Some(it.run.started))),
        RunFigure::new("ended_nanos", Nanos(|it| it.run.ended)),
        RunFigure::new(
            "duration_nanos",
            Nanos(|it| Some(it.run.ended?.since(it.run.started))),
        ),
        RunFigure::new("metric", Name(|it| Some(it.row.metric.name()))),
        RunFigure::new("before_bytes", Bytes(|it| it.row.before)),
        RunFigure::new("after_bytes", Bytes(|it| it.row.after)),
        RunFigure::new("kept_bytes", Change(|it| it.row.kept)),
        RunFigure::new("overlap_bytes", Change(|it| it.row.overlap?.moved)),
        RunFigure::new("peak_bytes", Bytes(|it| it.row.peak.map(Peak::low))),
        RunFigure::new("peak_high_bytes", Bytes(|it| it.row.peak?.high())),
        RunFigure::new(
            "peak_exact",
            Flag(|it| it.row.peak.is_some_and(Peak::is_exact)),
        ),
        RunFigure::new("allocated_before_bytes", Bytes(|it| it.row.allocated.0)),
        RunFigure::new("allocated_after_bytes", Bytes(|it| it.row.allocated.1)),
        RunFigure::new("reserved_before_bytes", Bytes(|it| it.row.reserved.0)),
        RunFigure::new("reserved_after_bytes", Bytes(|it| it.row.reserved.1)),
        RunFigure::new(
            "process_used_before_bytes",
            Bytes(|it| it.row.process_used.0),
        ),
        RunFigure::new(
            "process_used_after_bytes",
            Bytes(|it| it.row.process_used.1),
        ),
        RunFigure::new("device_used_before_bytes", Bytes(|it| it.row.device_used.0)),
        RunFigure::new("device_used_after_bytes", Bytes(|it| it.row.device_used.1)),
        RunFigure::new("capacity_bytes", Bytes(|it| it.row.capacity)),
        RunFigure::new("n_retries", Count(|it| it.row.n_retries)),
        RunFigure::new("n_blocks_before", Count(|it| it.row.n_blocks.0)),
        RunFigure::new("n_blocks_after", Count(|it| it.row.n_blocks.1)),
    ]
}
