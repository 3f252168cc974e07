//! Memory that ran out: recognised in the exception that ended a run, or as an
//! allocator reported it while the run went on.

mod chain;
pub(crate) mod holders;
pub(crate) mod observer;

use std::time::Instant;

use gpumem_heap::HeldBy;
use gpumem_model::segments::Segments;
use gpumem_model::units::Bytes;
use gpumem_readers::oom::{OomMessage, of_exception, within};
use pyo3::prelude::*;

/// What a recording keeps of an error's words.
const LONGEST_TEXT: usize = 2048;

/// An out-of-memory error, as far as it is known.
#[derive(Debug, Clone)]
pub(crate) struct OomReport {
    pub(crate) message: OomMessage,
    /// The error's own words; none if an allocator reported it.
    pub(crate) text: Option<String>,
    /// The run went on after it.
    pub(crate) survived: bool,
    /// When; `None` where only the run's end is known.
    pub(crate) at: Option<Instant>,
    /// Who held memory of any device then, the most first.
    pub(crate) holders: Vec<HeldBy>,
    /// The device's segments at that moment, or why they were not read; `None` if they cannot be.
    pub(crate) segments: Option<Result<Segments, String>>,
}

/// The out-of-memory report in `error`, in its causes or in the errors that it groups.
///
/// Goes by the names of classes, so that no framework is imported, and by what
/// `BaseException` itself keeps: a `__str__` or a property is the user's code.
pub(crate) fn of_error(error: &Bound<'_, PyAny>) -> PyResult<Option<OomReport>> {
    for link in chain::error_chain(error)? {
        let text = chain::text(&link)?;
        if let Some(message) = of_exception(&chain::classes(&link), &text) {
            return Ok(Some(OomReport {
                message,
                text: Some(within(&text, LONGEST_TEXT).to_owned()),
                survived: false,
                at: None,
                holders: Vec::new(),
                segments: None,
            }));
        }
    }
    Ok(None)
}

impl OomReport {
    /// What the allocator saw is known to the byte: it comes before the message, which rounds.
    pub(crate) fn completed_by(mut self, seen: Option<Self>) -> Self {
        let is_same = |seen: &Self| {
            let (reported, seen) = (&self.message, &seen.message);
            reported.framework == seen.framework
                && is_near(reported.figures.wanted, seen.figures.wanted)
        };
        if let Some(seen) = seen.filter(is_same) {
            let (figures, exact) = (&mut self.message.figures, seen.message.figures);
            for (figure, exact) in [
                (&mut figures.wanted, exact.wanted),
                (&mut figures.free, exact.free),
                (&mut figures.total, exact.total),
                (&mut figures.limit, exact.limit),
                (&mut figures.allocated, exact.allocated),
                (&mut figures.reserved, exact.reserved),
                (&mut figures.unallocated, exact.unallocated),
                (&mut figures.largest_free, exact.largest_free),
            ] {
                *figure = exact.or(*figure);
            }
            self.message.device = seen.message.device.or(self.message.device);
            self.at = seen.at;
            self.segments = seen.segments;
        }
        self
    }
}

/// They differ by no more than a message rounds.
fn is_near(reported: Option<Bytes>, seen: Option<Bytes>) -> bool {
    let (Some(reported), Some(seen)) = (reported, seen) else {
        return true;
    };
    reported.since(seen).magnitude().as_f64() <= 0.01 * seen.as_f64()
}
