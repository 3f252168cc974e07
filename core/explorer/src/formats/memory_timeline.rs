//! Memory timelines of `PyTorch`.

use gpumem_model::units::{ByteDelta, Bytes, count};
use gpumem_readers::container::Container;
use gpumem_readers::memory_timeline::{MemoryTimeline, is_picture, is_timeline, timeline};
use gpumem_report::columns::{cut, in_parts};

use super::{Content, ReadMethod, RegistryEntry, into_content};

/// Figures, in JSON.
pub(super) struct TimelineFormat;

/// A picture in a page: there is nothing to read.
pub(super) struct TimelinePicture;

impl RegistryEntry for TimelineFormat {
    const NAME: Option<&'static str> = Some("a memory timeline of PyTorch");
    const MAY_BE_PACKED: bool = true;
    const READING: ReadMethod = ReadMethod::Bytes(|file| into_content(timeline(file.bytes)));

    fn recognises(container: Container, head: &[u8]) -> bool {
        container == Container::Json && is_timeline(head)
    }
}

impl RegistryEntry for TimelinePicture {
    const READING: ReadMethod = ReadMethod::Elsewhere(|_| {
        "byte 0: a page of PyTorch's export_memory_timeline, which holds a picture and no figures\n\
         hint: export to a name that ends in .json or .raw.json.gz"
            .to_owned()
    });

    fn recognises(container: Container, head: &[u8]) -> bool {
        container == Container::Html && is_picture(head)
    }
}

impl Content for MemoryTimeline {
    fn kind(&self) -> &'static str {
        "a memory timeline of PyTorch"
    }

    /// The peak and when it was, and the bytes of each category at the start, at the peak and at the end.
    fn text(&self, width: usize) -> String {
        text(self, width)
    }

    /// Fields named `*_bytes` are bytes, `*_nanos` nanoseconds; unknown is `null`.
    fn json(&self) -> String {
        serde_json::to_string(self).expect("a timeline holds names and numbers only")
    }

    fn repr(&self) -> String {
        format!("<MemoryTimeline with {} rows>", self.n_rows)
    }
}

fn text(timeline: &MemoryTimeline, width: usize) -> String {
    let title = [
        "PyTorch memory timeline".to_owned(),
        count(timeline.n_rows, "row"),
        timeline.duration.to_string(),
    ];
    let when = match timeline.peak_after {
        Some(after) => format!("after {after}"),
        None => "at the start".to_owned(),
    };
    let levels = [
        format!("peak {}, {when}", size(timeline.peak)),
        format!("at the start {}", size(timeline.at_start)),
        format!("at the end {}", size(timeline.at_end)),
    ];
    let mut lines = vec![
        in_parts(&title, width, "  "),
        in_parts(&levels, width, "  "),
    ];
    lines.extend([
        String::new(),
        row(
            ["at peak", "at start", "at end", "own peak"],
            "category",
            width,
        ),
    ]);
    let mut categories: Vec<_> = timeline.categories.iter().collect();
    categories.sort_by_key(|category| std::cmp::Reverse(category.at_peak));
    for category in categories {
        let levels = [
            category.at_peak,
            category.at_start,
            category.at_end,
            category.peak,
        ];
        if levels.iter().any(|level| level.get() != 0) {
            let [at_peak, at_start, at_end, peak] = levels.map(size);
            lines.push(row(
                [&at_peak, &at_start, &at_end, &peak],
                category.name,
                width,
            ));
        }
    }
    lines.join("\n")
}

fn row(figures: [&str; 4], name: &str, width: usize) -> String {
    let [at_peak, at_start, at_end, peak] = figures;
    cut(
        &format!("  {at_peak:>10} {at_start:>10} {at_end:>10} {peak:>10}  {name}"),
        width,
    )
}

fn size(level: ByteDelta) -> String {
    match u64::try_from(level.get()) {
        Ok(0) => "–".to_owned(),
        Ok(bytes) => Bytes::new(bytes).to_string(),
        Err(_) => level.to_string(),
    }
}
