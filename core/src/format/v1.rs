//! Version 1 of the wire: what is written today.
//!
//! Every field has a name and a default; sizes are bytes, times nanoseconds
//! since the recording's start. The module above lists them for other readers.
//! serde writes the `Wire…` types; a [`DecodeFields`] says where each field is read to.

mod columns;
mod holders;
mod oom;
mod reading;
mod samples;
mod segments;
mod trace;

use std::collections::BTreeMap;

use serde::Serialize;

use super::messagepack::{Outcome, Reader, Refused};
use super::record::{Decode, DecodeFields};
use super::{Fault, fitting};
use crate::recording::{
    Cell, Device, DeviceKind, Finish, Header, Missing, Revision, Run, RunKind, RunLevels, Source,
    SourceState, Status,
};
use crate::rules::{Rules, Threshold};
use crate::units::Nanos;
use oom::WireOutOfMemory;
use reading::WireReading;

pub(super) use holders::WireHolders;
pub(super) use samples::{FoundSamples, WireSamples};
pub(super) use segments::WireSegments;
pub(super) use trace::{FoundTrace, WireTrace};

/// The version that this file reads and writes.
const VERSION: u32 = 1;

const DEVICE_KINDS: [(&str, DeviceKind); 5] = [
    ("gpu", DeviceKind::Gpu),
    ("simulated", DeviceKind::Simulated),
    ("managed", DeviceKind::Managed),
    ("pinned", DeviceKind::Pinned),
    ("host", DeviceKind::Host),
];

const RUN_KINDS: [(&str, RunKind); 2] = [("cell", RunKind::Cell), ("block", RunKind::Block)];

const STATUSES: [(&str, Status); 5] = [
    ("running", Status::Running),
    ("ok", Status::Ok),
    ("error", Status::Error),
    ("interrupted", Status::Interrupted),
    ("out_of_memory", Status::OutOfMemory),
];

fn name_of<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    let found = names.iter().find(|(_, it)| *it == value);
    found.expect("every value has a name").0
}

#[derive(Serialize)]
pub(super) struct WireHeader {
    format: u32,
    session: String,
    wall_anchor_nanos: u64,
    versions: BTreeMap<String, String>,
    sources: Vec<WireSourceState>,
    rules: BTreeMap<&'static str, f64>,
}

#[derive(Serialize)]
struct WireSourceState {
    source: String,
    used: bool,
    reason: String,
}

#[derive(Serialize)]
pub(super) struct WireDevice {
    idx: u32,
    key: String,
    label: String,
    name: String,
    class: &'static str,
}

#[derive(Serialize)]
pub(super) struct WireCell {
    idx: u32,
    id: String,
    revisions: Vec<WireRevision>,
}

#[derive(Serialize)]
struct WireRevision {
    hash: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Serialize)]
pub(super) struct WireRun {
    idx: u32,
    cell: u32,
    revision: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u32>,
    class: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_count: Option<u32>,
    started_nanos: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_nanos: Option<u64>,
    status: &'static str,
    levels: Vec<WireRunLevels>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oom: Option<WireOutOfMemory>,
}

#[derive(Serialize)]
struct WireRunLevels {
    device: u32,
    before: WireReading,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<WireReading>,
    peak_reset: bool,
}

#[derive(Serialize)]
pub(super) struct WireMissing {
    words: String,
}

#[derive(Serialize)]
pub(super) struct WireFinish {
    at_nanos: u64,
}

impl From<&Header> for WireHeader {
    fn from(header: &Header) -> Self {
        let state = |state: &SourceState| WireSourceState {
            source: state.source.name().to_owned(),
            used: state.used,
            reason: state.reason.clone(),
        };
        Self {
            format: VERSION,
            session: header.session.clone(),
            wall_anchor_nanos: header.wall_anchor.get(),
            versions: header.versions.iter().cloned().collect(),
            sources: header.sources.iter().map(state).collect(),
            rules: Threshold::ALL
                .map(|threshold| (threshold.name(), header.rules.get(threshold)))
                .into(),
        }
    }
}

/// A header, and the version of what follows it.
#[derive(Default)]
pub(super) struct FoundHeader {
    format: u32,
    header: Header,
}

impl FoundHeader {
    pub(super) fn known(self) -> Result<Header, Fault> {
        match self.format {
            VERSION => Ok(self.header),
            0 => Err(Fault::Payload(
                "recording of format 0, which never was".to_owned(),
            )),
            newer => Err(Fault::TooNew(newer)),
        }
    }
}

impl DecodeFields for FoundHeader {
    fn required(&self) -> &'static [&'static str] {
        &["format"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        let header = &mut self.header;
        match name {
            "format" => self.format.fill(value),
            "session" => header.session.fill(value),
            "wall_anchor_nanos" => header.wall_anchor.fill(value),
            "versions" => header.versions.fill(value),
            "sources" => value.list_of(&mut header.sources, FoundSource::known),
            "rules" => header.rules.fill(value),
            _ => value.skip(),
        }
    }
}

impl DecodeFields for Rules {
    /// A recording that does not have one was judged by the default.
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        let Some(threshold) = Threshold::from_name(name) else {
            return value.skip();
        };
        let mut number = 0.0;
        number.fill(value)?;
        self.set(threshold, number).map_err(Refused::because)
    }
}

/// The state of a source, which this version may not know.
#[derive(Default)]
struct FoundSource {
    source: Option<Source>,
    used: bool,
    reason: String,
}

impl FoundSource {
    fn known(self) -> Option<SourceState> {
        Some(SourceState {
            source: self.source?,
            used: self.used,
            reason: self.reason,
        })
    }
}

impl DecodeFields for FoundSource {
    fn required(&self) -> &'static [&'static str] {
        &["source"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "source" => value.name(Source::from_name, &mut self.source),
            "used" => self.used.fill(value),
            "reason" => self.reason.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&Device> for WireDevice {
    fn from(device: &Device) -> Self {
        Self {
            idx: device.idx.0,
            key: device.key.as_str().to_owned(),
            label: device.label.clone(),
            name: device.name.clone(),
            class: name_of(&DEVICE_KINDS, device.kind),
        }
    }
}

impl DecodeFields for Device {
    fn required(&self) -> &'static [&'static str] {
        &["idx", "key", "class"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "idx" => self.idx.fill(value),
            "key" => self.key.fill(value),
            "label" => self.label.fill(value),
            "name" => self.name.fill(value),
            "class" => value.named(&DEVICE_KINDS, &mut self.kind),
            _ => value.skip(),
        }
    }
}

impl From<&Cell> for WireCell {
    fn from(cell: &Cell) -> Self {
        let revision = |revision: &Revision| WireRevision {
            hash: revision.hash.0,
            text: revision.text.as_deref().map(fitting),
        };
        Self {
            idx: cell.idx.0,
            id: cell.id.clone(),
            revisions: cell.revisions.iter().map(revision).collect(),
        }
    }
}

impl DecodeFields for Cell {
    fn required(&self) -> &'static [&'static str] {
        &["idx", "id"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "idx" => self.idx.fill(value),
            "id" => self.id.fill(value),
            "revisions" => self.revisions.fill(value),
            _ => value.skip(),
        }
    }
}

impl DecodeFields for Revision {
    fn required(&self) -> &'static [&'static str] {
        &["hash"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "hash" => self.hash.fill(value),
            "text" => self.text.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&Run> for WireRun {
    fn from(run: &Run) -> Self {
        Self {
            idx: run.idx.0,
            cell: run.cell.0,
            revision: run.revision.0,
            parent: run.parent.map(|parent| parent.0),
            class: name_of(&RUN_KINDS, run.kind),
            label: run.label.clone(),
            execution_count: run.execution_count,
            started_nanos: run.started.get(),
            ended_nanos: run.ended.map(Nanos::get),
            status: name_of(&STATUSES, run.status),
            levels: run.levels.iter().map(WireRunLevels::from).collect(),
            oom: run.oom.as_deref().map(WireOutOfMemory::from),
        }
    }
}

impl DecodeFields for Run {
    fn required(&self) -> &'static [&'static str] {
        &["idx", "cell", "class", "started_nanos", "status"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "idx" => self.idx.fill(value),
            "cell" => self.cell.fill(value),
            "revision" => self.revision.fill(value),
            "parent" => self.parent.fill(value),
            "class" => value.named(&RUN_KINDS, &mut self.kind),
            "label" => self.label.fill(value),
            "execution_count" => self.execution_count.fill(value),
            "started_nanos" => self.started.fill(value),
            "ended_nanos" => self.ended.fill(value),
            "status" => value.named(&STATUSES, &mut self.status),
            "levels" => self.levels.fill(value),
            "oom" => self.oom.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&RunLevels> for WireRunLevels {
    fn from(levels: &RunLevels) -> Self {
        Self {
            device: levels.device.0,
            before: (&levels.before).into(),
            after: levels.after.as_ref().map(WireReading::from),
            peak_reset: levels.peak_reset,
        }
    }
}

impl DecodeFields for RunLevels {
    fn required(&self) -> &'static [&'static str] {
        &["device", "before"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "device" => self.device.fill(value),
            "before" => self.before.fill(value),
            "after" => self.after.fill(value),
            "peak_reset" => self.peak_reset.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&Missing> for WireMissing {
    fn from(missing: &Missing) -> Self {
        Self {
            words: missing.words.clone(),
        }
    }
}

impl DecodeFields for Missing {
    fn required(&self) -> &'static [&'static str] {
        &["words"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "words" => self.words.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&Finish> for WireFinish {
    fn from(finish: &Finish) -> Self {
        Self {
            at_nanos: finish.at.get(),
        }
    }
}

impl DecodeFields for Finish {
    fn required(&self) -> &'static [&'static str] {
        &["at_nanos"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "at_nanos" => self.at.fill(value),
            _ => value.skip(),
        }
    }
}
