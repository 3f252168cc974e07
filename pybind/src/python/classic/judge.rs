//! The classic rules on results in Python. What was read and judged last is kept,
//! for people ask for patterns, insights and report of the same results, and again
//! with another threshold.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gpumem_classic as classic;
use gpumem_classic::{Calls, Insight, Pattern, Thresholds};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList};

use super::number::epoch;
use super::{answers, read_thresholds, reading};

/// Dicts, and a sentence for each thing that could not be judged.
type Told<'py> = (Bound<'py, PyList>, Vec<String>);

/// Judges profile results by the classic rules.
#[pyclass(frozen, module = "gpumem._gpumem")]
#[derive(Default)]
pub(crate) struct Judge {
    latest: Mutex<Option<Judged>>,
}

#[pymethods]
impl Judge {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// The patterns of profile results.
    fn patterns<'py>(
        &self,
        results: &Bound<'py, PyAny>,
        thresholds: &Bound<'py, PyDict>,
    ) -> PyResult<Told<'py>> {
        let py = results.py();
        let mut judged = self.judged(results, thresholds)?;
        py.detach(|| judged.judge_patterns());
        let told = answers::list(py, judged.judge_patterns(), answers::pattern)?;
        let left_out = judged.calls.left_out();
        self.keep(py, judged);
        Ok((told, left_out))
    }

    /// The insights into profile results.
    fn insights<'py>(
        &self,
        results: &Bound<'py, PyAny>,
        thresholds: &Bound<'py, PyDict>,
    ) -> PyResult<Told<'py>> {
        let py = results.py();
        let mut judged = self.judged(results, thresholds)?;
        py.detach(|| judged.judge_insights());
        let (insights, unattributed) = judged.judge_insights();
        let told = answers::list(py, insights, answers::insight)?;
        let unattributed = unattributed.clone();
        let left_out = [judged.calls.left_out(), unattributed].concat();
        self.keep(py, judged);
        Ok((told, left_out))
    }

    /// The report on profile results.
    fn report<'py>(
        &self,
        results: &Bound<'py, PyAny>,
        thresholds: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let py = results.py();
        let mut judged = self.judged(results, thresholds)?;
        let report = py.detach(|| {
            let patterns = judged.judge_patterns().clone();
            let insights = judged.judge_insights().clone();
            classic::report_on(&judged.calls, patterns, insights)
        });
        self.keep(py, judged);
        answers::report(py, &report)
    }
}

impl Judge {
    /// The results as they were read last, where they are the same; else read anew.
    ///
    /// No lock is held while they are read: that may run Python code.
    fn judged(
        &self,
        results: &Bound<'_, PyAny>,
        thresholds: &Bound<'_, PyDict>,
    ) -> PyResult<Judged> {
        let thresholds = read_thresholds(thresholds)?;
        let latest = self.locked(results.py()).take();
        if let Some(judged) = latest.filter(|it| it.seen.as_ref().is_some_and(|it| it.are(results)))
        {
            return Ok(judged.with(thresholds));
        }
        let (calls, is_plain) = reading::calls(results)?;
        Ok(Judged {
            calls,
            seen: is_plain.then(|| Seen::new(results)).flatten(),
            thresholds,
            patterns: None,
            insights: None,
        })
    }

    fn keep(&self, py: Python<'_>, judged: Judged) {
        if judged.seen.is_some() {
            *self.locked(py) = Some(judged);
        }
    }

    fn locked(&self, py: Python<'_>) -> MutexGuard<'_, Option<Judged>> {
        let locked = self.latest.lock_py_attached(py);
        locked.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls, and what was told of them so far.
struct Judged {
    calls: Calls,
    /// The records that they were read from, where one can tell whether they are the same.
    seen: Option<Seen>,
    thresholds: Thresholds,
    patterns: Option<Vec<Pattern>>,
    insights: Option<(Vec<Insight>, Vec<String>)>,
}

impl Judged {
    fn with(self, thresholds: Thresholds) -> Self {
        if self.thresholds == thresholds {
            return self;
        }
        Self {
            thresholds,
            patterns: None,
            insights: None,
            ..self
        }
    }

    fn judge_patterns(&mut self) -> &Vec<Pattern> {
        self.patterns
            .get_or_insert_with(|| classic::patterns(&self.calls, &self.thresholds))
    }

    fn judge_insights(&mut self) -> &(Vec<Insight>, Vec<String>) {
        self.insights
            .get_or_insert_with(|| classic::insights(&self.calls, &self.thresholds))
    }
}

/// A list of records: where each was, and how often any record had changed by then.
struct Seen {
    epoch: u64,
    addresses: Vec<usize>,
}

impl Seen {
    /// Of a list; other iterables are read anew each time.
    fn new(results: &Bound<'_, PyAny>) -> Option<Self> {
        let results = results.cast::<PyList>().ok()?;
        Some(Self {
            epoch: epoch(),
            addresses: addresses(results).collect(),
        })
    }

    /// The list holds the same records, unchanged: none was made, written to or dropped since, so
    /// what is at an address now was there then.
    fn are(&self, results: &Bound<'_, PyAny>) -> bool {
        results.cast::<PyList>().is_ok_and(|results| {
            self.epoch == epoch()
                && self.addresses.len() == results.len()
                && self.addresses.iter().copied().eq(addresses(results))
        })
    }
}

/// Where the items of a list are, without touching them.
#[expect(
    unsafe_code,
    reason = "counting references would touch each of a million items"
)]
fn addresses(list: &Bound<'_, PyList>) -> impl Iterator<Item = usize> {
    (0..list.len()).map(|idx| {
        // SAFETY: the GIL is held and nothing runs between asking for the length and for the
        // items, so the index is in range. The borrowed item is never looked into.
        let item = unsafe { ffi::PyList_GetItem(list.as_ptr(), idx.cast_signed()) };
        item as usize
    })
}
