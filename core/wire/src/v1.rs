//! Version 1 of the wire: what is written today.
//!
//! Every field has a name and a default; sizes are bytes, times nanoseconds
//! since the recording's start. The module above lists them for other readers.
//! Each `wire!` lists the fields of a map once, for writing and reading.

mod columns;
mod holders;
mod loops;
mod oom;
mod reading;
mod samples;
mod segments;
mod trace;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serializer;

use super::messagepack::Reader;
use super::record::{Decode, Encode, decoded_lists, encoded_as, wire, wire_names};
use super::refused::{DecodeError, ReadResult};
use super::{MAX_TEXT, WireFault};
use gpumem_model::recording::{
    Cell, Device, DeviceKind, Finish, Header, Missing, OutsideReading, Revision, Run, RunKind,
    RunLevels, Source, SourceState, Status,
};
use gpumem_model::rules::{Rules, Threshold};

pub(super) use holders::bounded;
pub(super) use loops::WireLoop;
pub(super) use samples::WireSamples;
pub(super) use segments::WireSegments;
pub(super) use trace::WireTrace;

/// The version that this file reads and writes.
const VERSION: u32 = 1;

wire_names! { DeviceKind RunKind Status }

/// A header, and the version of what follows it.
#[derive(Default)]
pub(super) struct WireHeader<H> {
    format: u32,
    header: H,
}

wire! { WireHeader<&Header> => WireHeader<Header> {
    required "format" => format,
    "session" => header.session,
    "wall_anchor_nanos" => header.wall_anchor,
    "versions" => header.versions,
    "sources" => header.sources,
    "rules" => header.rules,
    "process" => header.process,
    sparse "expected" => header.expected,
}}

encoded_as! { Header: header => WireHeader { format: VERSION, header }; }

impl WireHeader<Header> {
    pub(super) fn known(self) -> Result<Header, WireFault> {
        match self.format {
            VERSION => Ok(self.header),
            0 => Err(WireFault::Payload(
                "recording of format 0, which never was".to_owned(),
            )),
            newer => Err(WireFault::TooNew(newer)),
        }
    }
}

/// In the order of their names.
impl Encode for Rules {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rules = Threshold::ALL.map(|threshold| (threshold.name(), self.get(threshold)));
        serializer.collect_map(BTreeMap::from(rules))
    }
}

impl Decode for Rules {
    /// A recording that does not have one was judged by the default.
    fn fill(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
        reader.fields(&mut |name, value| {
            let Some(threshold) = Threshold::from_name(name) else {
                return value.skip();
            };
            let mut number = 0.0;
            number.fill(value)?;
            self.set(threshold, number).map_err(DecodeError::because)
        })
    }
}

/// The state of a source, which this version may not know.
#[derive(Default)]
struct WireSource {
    source: Option<Source>,
    used: bool,
    reason: String,
}

wire! { SourceState => WireSource {
    required "source" => source,
    "used" => used,
    "reason" => reason,
}}

impl WireSource {
    fn known(self) -> Option<SourceState> {
        Some(SourceState {
            source: self.source?,
            used: self.used,
            reason: self.reason,
        })
    }
}

decoded_lists! { SourceState: WireSource::known; }

wire! { Device {
    required "idx" => idx,
    required "key" => key,
    "label" => label,
    "name" => name,
    required "class" => kind,
    sparse "outside" => outside,
}}

wire! { OutsideReading {
    "at_nanos" => at,
    "reading" => reading,
}}

wire! { Cell {
    required "idx" => idx,
    required "id" => id,
    "revisions" => revisions,
}}

wire! { Revision {
    required "hash" => hash,
    sparse "text" => text,
    sparse "file" => file,
}}

/// A cell with its texts as far as they are written.
pub(super) fn fitting(cell: &Cell) -> Cow<'_, Cell> {
    let is_long = |it: &Revision| it.text.as_ref().is_some_and(|text| text.len() > MAX_TEXT);
    if !cell.revisions.iter().any(is_long) {
        return Cow::Borrowed(cell);
    }
    let mut cell = cell.clone();
    for text in cell.revisions.iter_mut().filter_map(|it| it.text.as_mut()) {
        cut(text);
    }
    Cow::Owned(cell)
}

fn cut(text: &mut String) {
    if text.len() <= MAX_TEXT {
        return;
    }
    let mut ends = (0..=MAX_TEXT).rev();
    let end = ends.find(|at| text.is_char_boundary(*at));
    let kept = &text[..end.unwrap_or_default()];
    let n_bytes = text.len() - kept.len();
    *text = format!("{kept}\n# … {n_bytes} bytes more, left out by gpumem");
}

wire! { Run {
    required "idx" => idx,
    required "cell" => cell,
    "revision" => revision,
    sparse "parent" => parent,
    required "class" => kind,
    sparse "label" => label,
    sparse "execution_count" => execution_count,
    required "started_nanos" => started,
    sparse "ended_nanos" => ended,
    required "status" => status,
    "levels" => levels,
    sparse "oom" => oom,
    sparse "overlaps" => overlaps,
    sparse "beside_unrecorded" => beside_unrecorded,
}}

wire! { RunLevels {
    required "device" => device,
    required "before" => before,
    sparse "after" => after,
    "peak_reset" => peak_reset,
}}

wire! { Missing {
    required "words" => words,
}}

wire! { Finish {
    required "at_nanos" => at,
}}
