//! The counters of one of torch's allocators.

use gpumem_model::recording::Level;
use gpumem_model::units::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::sources::framework::{known, not_reported};

/// Nested by pool (`stats["allocated_bytes"]["all"]["current"]`), nested without pools (of pinned
/// memory), or flat (`stats["allocated_bytes.all.current"]`). The flat form costs 180 µs more.
pub(super) struct Stats<'a, 'py> {
    stats: &'a Bound<'py, PyDict>,
    is_native: bool,
}

impl<'a, 'py> Stats<'a, 'py> {
    /// Of an allocator that keeps every counter, if it `is_native`.
    pub(super) fn new(stats: &'a Bound<'py, PyDict>, is_native: bool) -> Self {
        Self { stats, is_native }
    }

    pub(super) fn level(&self, counter: &str, which: &str) -> PyResult<Level> {
        let figure = match self.stats.get_item(counter)? {
            Some(figures) => Some(all_pools(&figures)?.get_item(which)?),
            None => self.stats.get_item(format!("{counter}.all.{which}"))?,
        };
        let Some(figure) = figure else {
            return Ok(not_reported());
        };
        let n_bytes: u64 = figure.extract()?;
        Ok(if n_bytes == 0 && !self.keeps(counter, which) {
            not_reported()
        } else {
            known(n_bytes)
        })
    }

    /// A zero of it is none that was never counted: cudaMallocAsync keeps level and peak of two.
    fn keeps(&self, counter: &str, which: &str) -> bool {
        self.is_native
            || matches!(counter, "allocated_bytes" | "reserved_bytes")
                && matches!(which, "current" | "peak")
    }

    pub(super) fn count(&self, counter: &str) -> PyResult<Option<u64>> {
        let count = self.stats.get_item(counter)?;
        let count: Option<u64> = count.map(|count| count.extract()).transpose()?;
        Ok(count.filter(|n| self.is_native || *n > 0))
    }

    /// Allocations that are alive.
    pub(super) fn n_blocks(&self) -> PyResult<Option<u64>> {
        let n_blocks = self.level("allocation", "current")?.known();
        Ok(n_blocks.map(Bytes::get))
    }

    /// Every peak there is, in a fixed order. A reset sets them all, so one that fell tells of it
    /// even where the one of allocated has risen again.
    pub(super) fn peaks(&self) -> PyResult<Vec<u64>> {
        let mut peaks = Vec::new();
        for (name, figures) in self.stats {
            if let Ok(figures) = figures.cast::<PyDict>() {
                for pool in figures.values() {
                    if let Ok(pool) = pool.cast::<PyDict>()
                        && let Some(peak) = pool.get_item("peak")?
                    {
                        peaks.push(peak.extract()?);
                    }
                }
            } else if name.extract::<&str>()?.rsplit('.').next() == Some("peak") {
                peaks.push(figures.extract()?);
            }
        }
        Ok(peaks)
    }
}

fn all_pools<'py>(figures: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let all = figures.cast::<PyDict>()?.get_item("all")?;
    Ok(all.unwrap_or_else(|| figures.clone()))
}
