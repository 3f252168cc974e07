//! One event of the format.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use gpumem_model::units::Nanos;

/// An event as viewers read it.
#[derive(Debug, Serialize)]
pub(super) struct ViewerEvent<'a> {
    pub(super) ph: Phase,
    pub(super) name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cat: Option<&'static str>,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) ts: Micros,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dur: Option<Micros>,
    /// How far an instant reaches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) s: Option<InstantScope>,
    pub(super) args: TraceArgs,
}

/// What viewers list about an event.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum TraceArgs {
    /// The value of a counter.
    Level { bytes: u64 },
    /// The steps of a loop that a slice stands for, from 1.
    Steps { first_step: u64, last_step: u64 },
    /// Of a track.
    Name { name: String },
    /// Where a track stands among the others.
    Place { sort_index: u32 },
    /// Of a run or a finding.
    Other(Value),
}

/// What kind of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Phase {
    /// Something with a beginning and a duration.
    #[serde(rename = "X")]
    Complete,
    #[serde(rename = "C")]
    Counter,
    #[serde(rename = "i")]
    Instant,
    #[serde(rename = "M")]
    Metadata,
}

/// How far an instant reaches.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) enum InstantScope {
    #[serde(rename = "g")]
    Global,
    #[serde(rename = "p")]
    Process,
}

/// The format's unit of time. Whole ones: a sum of fractions may leave a slice that should end with
/// the one around it a little after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Micros(u64);

impl Micros {
    pub(super) const ZERO: Self = Self(0);

    pub(super) fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl From<Nanos> for Micros {
    fn from(at: Nanos) -> Self {
        Self(at.get() / 1000)
    }
}
