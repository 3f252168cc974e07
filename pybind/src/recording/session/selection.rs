//! Restricts a run to devices and sources.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use super::reading::with_sources;
use gpumem_base::guard;
use gpumem_machine::sampler::Interval;

/// The devices and sources that a run reads while this lives; empty means all.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(super) devices: Vec<String>,
    /// How often they are sampled at the most; `None` leaves it to the session.
    pub(super) interval: Option<Interval>,
    /// The sources that it asks for, under this number; `None` for those that are read anyway.
    sources: Option<u64>,
}

impl Selection {
    /// Reads from `sources` alone; resets the peak counters first, if the user says so.
    pub(crate) fn begin(
        py: Python<'_>,
        devices: Vec<String>,
        sources: &[String],
        reset_peak: bool,
        interval: Option<Interval>,
    ) -> Self {
        static N_SELECTIONS: AtomicU64 = AtomicU64::new(0);
        let sources = (!sources.is_empty()).then(|| {
            let number = N_SELECTIONS.fetch_add(1, Ordering::Relaxed);
            let chosen = with_sources(py, |all| all.choose_for_run(number, sources).ok());
            chosen.flatten().map(|()| number)
        });
        if reset_peak {
            let failures = with_sources(py, |all| all.reset_peaks(py, &devices));
            for failure in failures.into_iter().flatten() {
                guard::log_once(py, &failure);
            }
        }
        Self {
            devices,
            interval,
            sources: sources.flatten(),
        }
    }
}

impl Drop for Selection {
    /// However the run ended, and also where it did not: the session may have been reset inside it.
    fn drop(&mut self) {
        if let Some(number) = self.sources.take() {
            Python::try_attach(|py| with_sources(py, |all| all.run_is_over(number)));
        }
    }
}
