//! Files of PyTorch's `prof.export_memory_timeline(path)`: bytes by category over time.
//!
//! A name that ends in `.raw.json.gz` makes rows of time, action, bytes and category; `.json` and
//! `.json.gz` a list of times and one of sizes by category; `.html` a picture only.
//!
//! ```
//! use gpumem_readers::memory_timeline::timeline;
//! use gpumem_model::units::{ByteDelta, Nanos};
//!
//! // [time, action, bytes, category]: a parameter is there, an activation comes and goes
//! let file = b"[[-1, 1, 100, 0], [5000, 2, 30, 4], [5400, 4, -30, 4]]";
//! let timeline = timeline(file)?;
//! assert_eq!((timeline.at_start, timeline.peak), (ByteDelta::new(100), ByteDelta::new(130)));
//! assert_eq!(timeline.duration, Nanos::new(400));
//! assert_eq!(timeline.categories[4].at_peak, ByteDelta::new(30));
//! # Ok::<(), gpumem_readers::json_file::JsonError>(())
//! ```

mod model;
mod read;
#[cfg(test)]
mod tests;

pub use model::{CategoryLevels, MemoryTimeline};

use read::TimelineSeed;

use super::json_file::{self, JsonError};

/// The title of the pages that PyTorch writes.
const PAGE: &[u8] = b"<title>GPU Memory Timeline HTML</title>";

/// Reads a timeline's file.
///
/// # Errors
///
/// [`JsonError`] if the file is damaged or not a timeline, with the offset at which reading stopped.
pub fn timeline(bytes: &[u8]) -> Result<MemoryTimeline, JsonError> {
    let n_left = json_file::max_memory(bytes.len());
    json_file::read(bytes, || TimelineSeed { n_left })
}

/// Whether a JSON file with this beginning may be a timeline: a list of lists.
pub fn is_timeline(head: &[u8]) -> bool {
    let mut bytes = head.iter().filter(|byte| !byte.is_ascii_whitespace());
    bytes.next() == Some(&b'[') && matches!(bytes.next(), None | Some(b'[' | b']'))
}

/// Whether a page with this beginning is a timeline's picture. It has no figures to read.
pub fn is_picture(head: &[u8]) -> bool {
    head.windows(PAGE.len()).any(|at| at == PAGE)
}
