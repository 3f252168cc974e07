//! Processes side by side, as one page shows them: the ranks of a job, or the child processes of a session.
//!
//! A page is made where recordings are read, and goes as [bytes](ProcessPage::to_bytes) to where it is shown.
//!
//! ```
//! use gpumem_explorer::process_page::ProcessPage;
//! use gpumem_jobs::ranks::ranks;
//!
//! let page = ProcessPage::of_ranks(&[], &ranks(&[]));
//! assert_eq!(page.title, "0 ranks");
//! assert_eq!(ProcessPage::from_bytes(&page.to_bytes())?, page);
//! # Ok::<(), gpumem_explorer::process_page::PageError>(())
//! ```

mod band;
mod build;
mod bytes;
mod column;
#[cfg(test)]
mod tests;

pub use band::{LevelBand, bands, middle};
pub(crate) use bytes::BEGINS;
pub use bytes::PageError;
pub use column::{PageColumn, RowOrder};

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use gpumem_analyzer::Severity;
use gpumem_model::downsample::LevelPoint;
use gpumem_model::named;
use gpumem_model::units::{ByteDelta, Bytes, Nanos, Units};

/// A page has no more rows than these, those that matter most.
pub const MAX_ROWS: usize = 4096;

/// Processes side by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessPage {
    /// What one of them is: `rank`, `process`.
    pub noun: String,
    /// `4 ranks on 2 machines · job 4711`
    pub title: String,
    /// What is said if nothing is found.
    pub healthy: String,
    /// What their steps are: `step` or `run`.
    pub step: String,
    /// What stands for instants in `span` and in the rows.
    #[serde(default)]
    pub axis: PageAxis,
    /// The time that all of them share, from the beginning of the first one.
    pub span: Nanos,
    /// What is found, the worst first: one for each cause.
    pub causes: Vec<PageCause>,
    /// The processes; those of the worst cause come first.
    pub rows: Vec<PageRow>,
    /// What else is known, in sentences.
    pub notes: Vec<String>,
}

/// A cause that is seen in some of the processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageCause {
    /// How much it matters.
    pub severity: Severity,
    /// One sentence.
    pub words: String,
    /// The command that tells more; empty if there is none.
    pub command: String,
    /// The rows in which it is seen.
    pub rows: Vec<usize>,
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PageRow {
    /// `rank 2`, `DataLoader worker 3`
    pub name: String,
    /// Its machine; empty if that is not known.
    pub machine: String,
    /// Its device; empty if that is not known.
    pub device: String,
    /// The number of the process.
    pub pid: Option<u32>,
    /// Its latest level.
    pub latest: Option<Bytes>,
    /// Its highest level.
    pub peak: Option<Bytes>,
    /// Its latest level less its first.
    pub grew: Option<ByteDelta>,
    /// What the process uses beside what its frameworks reserved.
    pub outside: Option<Bytes>,
    /// What it used of GPUs when this was last listed.
    pub gpu_used: Option<Bytes>,
    /// How many steps it ended.
    pub n_steps: Option<u64>,
    /// `+40 MiB a step`; empty if it does not grow.
    pub growth: String,
    /// What each step keeps, by which rows are sorted.
    pub per_step: Option<ByteDelta>,
    /// `out of memory at 31 s`
    pub ending: String,
    /// It ended badly.
    pub end: Option<BadEnd>,
    /// The last instant that is known of it.
    pub until: Nanos,
    /// Of the worst cause that is seen in it; `None` if none is.
    pub severity: Option<Severity>,
    /// Its level over time: at most [`MAX_LEVELS`](gpumem_model::downsample::MAX_LEVELS) points.
    pub levels: Vec<LevelPoint>,
}

named! {
    /// Over what levels are shown.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum PageAxis {
        /// Over time.
        #[default]
        Time = "time",
        /// Over steps, each by its number. Levels are what a process has more than after its first step.
        Steps = "steps",
    }
}

named! {
    /// How a process ended that did not end in order.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum BadEnd {
        /// Its memory ran out.
        OutOfMemory = "out_of_memory",
        /// It failed, was killed, or stopped.
        Died = "died",
    }
}

impl ProcessPage {
    /// `12.3 s`, `step 212`
    pub fn place_words(&self, at: Nanos) -> String {
        match self.axis {
            PageAxis::Time => at.to_string(),
            PageAxis::Steps => format!("{} {}", self.step, at.get()),
        }
    }

    /// What the charts have in common: `each from 0 to 3.13 GiB, over 400 steps`
    pub fn scale_words(&self, units: Units) -> String {
        let highest = units.size(self.highest());
        match self.axis {
            PageAxis::Time => format!("each from 0 to {highest}, over {}", self.span),
            PageAxis::Steps => {
                let n_steps = self.span.get();
                let step = &self.step;
                format!("each +0 to +{highest} since its first {step}, over {n_steps} {step}s")
            }
        }
    }

    /// How many rows come first because something is found in them.
    pub fn n_outliers(&self) -> usize {
        let rows = self.rows.iter();
        rows.take_while(|row| row.severity.is_some()).count()
    }

    /// The highest level of all.
    pub fn highest(&self) -> Bytes {
        let levels = self.rows.iter().flat_map(|row| &row.levels);
        levels.map(|point| point.level).max().unwrap_or_default()
    }

    /// Puts the rows of causes first, in the order of the causes; tells each row how bad it is.
    fn sorted(mut self) -> Self {
        let named = self.causes.iter().flat_map(|it| &it.rows).copied();
        let mut seen = BTreeSet::new();
        let all = named.chain(0..self.rows.len());
        let mut order: Vec<usize> = all.filter(|idx| seen.insert(*idx)).collect();
        order.truncate(MAX_ROWS);
        let mut places = vec![None; self.rows.len()];
        for (place, row) in order.iter().enumerate() {
            places[*row] = Some(place);
        }
        for cause in &mut self.causes {
            for row in &cause.rows {
                let severity = &mut self.rows[*row].severity;
                *severity = (*severity).max(Some(cause.severity));
            }
            cause.rows = cause.rows.iter().filter_map(|row| places[*row]).collect();
        }
        let n_left_out = self.rows.len() - order.len();
        if n_left_out > 0 {
            self.notes
                .push(format!("{n_left_out} more have no room on this page."));
        }
        let mut rows: Vec<Option<PageRow>> = self.rows.into_iter().map(Some).collect();
        self.rows = order.iter().filter_map(|row| rows[*row].take()).collect();
        self
    }
}

impl PageRow {
    /// Its level at an instant; `None` before its first reading and after its end.
    pub fn level_at(&self, at: Nanos) -> Option<Bytes> {
        let n_before = self.levels.partition_point(|point| point.at <= at);
        let last = n_before.checked_sub(1)?;
        (at <= self.end_of_levels()).then(|| self.levels[last].level)
    }

    /// The last level holds on until the process ends.
    pub(crate) fn end_of_levels(&self) -> Nanos {
        let last = self.levels.last().map(|point| point.at);
        self.until.max(last.unwrap_or_default())
    }

    /// What stands below its chart: what is wrong with it, else where it runs.
    pub fn caption(&self) -> String {
        let ending = match self.end {
            None => "",
            // When it was, the chart shows.
            Some(BadEnd::OutOfMemory) => "out of memory",
            Some(BadEnd::Died) => &self.ending,
        };
        let wrong = joined(&[ending, &self.growth]);
        if wrong.is_empty() {
            joined(&[&self.machine, &self.device])
        } else {
            wrong
        }
    }
}

/// Those that are not empty.
fn joined(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|it| !it.is_empty()).collect();
    parts.join(" · ")
}
