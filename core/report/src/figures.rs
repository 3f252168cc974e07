//! Figures that are shown in several places, each declared once: its name and its value. JSON, tables and files for
//! spreadsheets take them from here.

use serde::ser::SerializeMap;

use gpumem_analyzer::{CellRef, Peak, RunRow};
use gpumem_model::recording::{Recording, Run};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// One figure of an `R`.
pub(crate) struct Figure<R> {
    /// `*_bytes` are bytes, `*_nanos` nanoseconds.
    pub(crate) name: &'static str,
    pub(crate) value: Value<R>,
}

/// How a figure is calculated; `None` is unknown.
pub(crate) enum Value<R> {
    Bytes(fn(&R) -> Option<Bytes>),
    Change(fn(&R) -> Option<ByteDelta>),
    Nanos(fn(&R) -> Option<Nanos>),
    Count(fn(&R) -> Option<u64>),
    /// One of a few names.
    Name(fn(&R) -> Option<&'static str>),
    Text(fn(&R) -> Option<String>),
    Flag(fn(&R) -> bool),
}

impl<R> Figure<R> {
    pub(crate) const fn new(name: &'static str, value: Value<R>) -> Self {
        Self { name, value }
    }

    /// Adds the figure to a map.
    pub(crate) fn put<M: SerializeMap>(&self, row: &R, map: &mut M) -> Result<(), M::Error> {
        match &self.value {
            Value::Bytes(of) => map.serialize_entry(self.name, &of(row)),
            Value::Change(of) => map.serialize_entry(self.name, &of(row)),
            Value::Nanos(of) => map.serialize_entry(self.name, &of(row)),
            Value::Count(of) => map.serialize_entry(self.name, &of(row)),
            Value::Name(of) => map.serialize_entry(self.name, &of(row)),
            Value::Text(of) => map.serialize_entry(self.name, &of(row)),
            Value::Flag(of) => map.serialize_entry(self.name, &of(row)),
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
pub(crate) fn run_places<'a>() -> [Figure<RunOnDevice<'a>>; 2] {
    [
        Figure::new("run", Value::Count(|it| Some(it.row.run.0.into()))),
        Figure::new("device", Value::Text(|it| Some(it.device().to_owned()))),
    ]
}

/// All other figures of a run on a device.
pub(crate) fn run_figures<'a>() -> [Figure<RunOnDevice<'a>>; 27] {
    use Value::{Bytes, Change, Count, Flag, Name, Nanos, Text};

    [
        Figure::new("parent", Count(|it| Some(it.run.parent?.0.into()))),
        Figure::new("label", Text(|it| it.run.label.clone())),
        Figure::new(
            "execution_count",
            Count(|it| it.run.execution_count.map(u64::from)),
        ),
        Figure::new("status", Name(|it| Some(it.run.status.name()))),
        Figure::new("started_nanos", Nanos(|it| Some(it.run.started))),
        Figure::new("ended_nanos", Nanos(|it| it.run.ended)),
        Figure::new(
            "duration_nanos",
            Nanos(|it| Some(it.run.ended?.since(it.run.started))),
        ),
        Figure::new("metric", Name(|it| Some(it.row.metric.name()))),
        Figure::new("before_bytes", Bytes(|it| it.row.before)),
        Figure::new("after_bytes", Bytes(|it| it.row.after)),
        Figure::new("kept_bytes", Change(|it| it.row.kept)),
        Figure::new("overlap_bytes", Change(|it| it.row.overlap?.moved)),
        Figure::new("peak_bytes", Bytes(|it| it.row.peak.map(Peak::low))),
        Figure::new("peak_high_bytes", Bytes(|it| it.row.peak?.high())),
        Figure::new(
            "peak_exact",
            Flag(|it| it.row.peak.is_some_and(Peak::is_exact)),
        ),
        Figure::new("allocated_before_bytes", Bytes(|it| it.row.allocated.0)),
        Figure::new("allocated_after_bytes", Bytes(|it| it.row.allocated.1)),
        Figure::new("reserved_before_bytes", Bytes(|it| it.row.reserved.0)),
        Figure::new("reserved_after_bytes", Bytes(|it| it.row.reserved.1)),
        Figure::new(
            "process_used_before_bytes",
            Bytes(|it| it.row.process_used.0),
        ),
        Figure::new(
            "process_used_after_bytes",
            Bytes(|it| it.row.process_used.1),
        ),
        Figure::new("device_used_before_bytes", Bytes(|it| it.row.device_used.0)),
        Figure::new("device_used_after_bytes", Bytes(|it| it.row.device_used.1)),
        Figure::new("capacity_bytes", Bytes(|it| it.row.capacity)),
        Figure::new("n_retries", Count(|it| it.row.n_retries)),
        Figure::new("n_blocks_before", Count(|it| it.row.n_blocks.0)),
        Figure::new("n_blocks_after", Count(|it| it.row.n_blocks.1)),
    ]
}
