//! The classic rules on results in Python. What was read and judged last is kept,
//! for people ask for patterns, insights and report of the same results, and again
//! with another threshold.

use std::sync::Mutex;

use gpumem_classic as classic;
use gpumem_classic::{Calls, ClassicThresholds, Insight, Pattern};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::number::epoch;
use super::{answers, read_thresholds, reading};
use crate::python::list;

use gpumem_base::locks::lock_attached;

/// Dicts, and a sentence for each thing that could not be judged.
type Judgements<'py> = (Bound<'py, PyList>, Vec<String>);

/// Judges profile results by the classic rules.
#[pyclass(frozen, module = "gpumem._gpumem")]
#[derive(Default)]
pub(crate) struct Judge {
    latest: Mutex<Option<Judgement>>,
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
    ) -> PyResult<Judgements<'py>> {
        let (patterns, left_out) = self.judge(results, thresholds, |judged| {
            (judged.judge_patterns().clone(), judged.calls.left_out())
        })?;
        Ok((list(results.py(), &patterns, answers::pattern)?, left_out))
    }

    /// The insights into profile results.
    fn insights<'py>(
        &self,
        results: &Bound<'py, PyAny>,
        thresholds: &Bound<'py, PyDict>,
    ) -> PyResult<Judgements<'py>> {
        let (insights, left_out) = self.judge(results, thresholds, |judged| {
            let (insights, unattributed) = judged.judge_insights().clone();
            (insights, [judged.calls.left_out(), unattributed].concat())
        })?;
        Ok((list(results.py(), &insights, answers::insight)?, left_out))
    }

    /// The report on profile results.
    fn report<'py>(
        &self,
        results: &Bound<'py, PyAny>,
        thresholds: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let report = self.judge(results, thresholds, |judged| {
            let patterns = judged.judge_patterns().clone();
            let insights = judged.judge_insights().clone();
            classic::report_on(&judged.calls, patterns, insights)
        })?;
        answers::report(results.py(), &report)
    }
}

impl Judge {
    /// The results as last read if they have not changed, else read again.
    ///
    /// No lock is held while they are read: that may run Python code.
    fn judged(
        &self,
        results: &Bound<'_, PyAny>,
        thresholds: &Bound<'_, PyDict>,
    ) -> PyResult<Judgement> {
        let thresholds = read_thresholds(thresholds)?;
        let latest = lock_attached(results.py(), &self.latest).take();
        if let Some(judged) = latest.filter(|it| it.seen.as_ref().is_some_and(|it| it.are(results)))
        {
            return Ok(judged.with(thresholds));
        }
        let (calls, is_plain) = reading::calls(results)?;
        Ok(Judgement {
            calls,
            seen: is_plain.then(|| RecordsKey::new(results)).flatten(),
            thresholds,
            patterns: None,
            insights: None,
        })
    }

    /// Judges the results while other threads run Python code, and keeps what was judged.
    fn judge<T: Send>(
        &self,
        results: &Bound<'_, PyAny>,
        thresholds: &Bound<'_, PyDict>,
        body: impl FnOnce(&mut Judgement) -> T + Send,
    ) -> PyResult<T> {
        let py = results.py();
        let mut judged = self.judged(results, thresholds)?;
        let found = py.detach(|| body(&mut judged));
        if judged.seen.is_some() {
            *lock_attached(py, &self.latest) = Some(judged);
        }
        Ok(found)
    }
}

/// Calls, and the insights about them that were reported so far.
struct Judgement {
    calls: Calls,
    /// The records that they were read from, if changes can be detected.
    seen: Option<RecordsKey>,
    thresholds: ClassicThresholds,
    patterns: Option<Vec<Pattern>>,
    insights: Option<(Vec<Insight>, Vec<String>)>,
}

impl Judgement {
    fn with(self, thresholds: ClassicThresholds) -> Self {
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
struct RecordsKey {
    epoch: u64,
    addresses: Vec<usize>,
}

impl RecordsKey {
    /// Remembers a list; other iterables are read each time.
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
        // SAFETY: a list; the borrowed item is never looked into.
        let item = unsafe { ffi::PyList_GetItem(list.as_ptr(), idx.cast_signed()) };
        if item.is_null() {
            // Without a GIL, another thread may have made it shorter: an error is set.
            drop(PyErr::take(list.py()));
        }
        item as usize
    })
}
