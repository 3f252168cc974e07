//! A memory timeline of `PyTorch` as text.

use gpumem_model::units::count;
use gpumem_model::units::{ByteDelta, Bytes};
use gpumem_readers::memory_timeline::MemoryTimeline;
use gpumem_report::columns::{cut, in_parts};

/// The peak and when it was, and the bytes of each category at the start, at the peak and at the end.
///
/// Lines are at most `width` columns long.
pub fn memory_timeline(timeline: &MemoryTimeline, width: usize) -> String {
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
