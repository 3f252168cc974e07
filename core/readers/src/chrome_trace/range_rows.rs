//! Steps and labelled ranges as rows: ranges with the same label inside one range share a row.

use std::collections::HashMap;

use super::summary::{RangeMemory, TraceRange};
use gpumem_model::units::{ByteDelta, Nanos};

/// A step, or the ranges with one label inside a step or range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeRow {
    /// Its label.
    pub name: String,
    /// How many rows are around it.
    pub depth: usize,
    /// Number of ranges in it.
    pub n_ranges: usize,
    /// When the first one starts after the trace's start, and when the last one ends.
    pub extent: (Nanos, Nanos),
    /// Sum of their durations.
    pub time: Nanos,
    /// By device: the sum of what was kept, and the highest peak.
    pub memory: Vec<RangeMemory>,
}

/// Rows of a trace's ranges, each before those inside of it. A range of another thread, which has none around
/// it, is inside of the step during which it starts. Ranges that are inside of nothing have a row each.
pub fn range_rows(ranges: &[TraceRange]) -> Vec<RangeRow> {
    let mut rows: Vec<RangeRow> = Vec::new();
    let mut inside: Vec<Vec<usize>> = Vec::new();
    let mut outermost = Vec::new();
    // By range: its row.
    let mut row_of: Vec<usize> = Vec::new();
    let mut numbers: HashMap<(usize, &str), usize> = HashMap::new();
    let mut step: Option<usize> = None;
    for (idx, range) in ranges.iter().enumerate() {
        let end = range.start + range.duration;
        let in_step = step.filter(|step| !range.is_step && range.start < rows[*step].extent.1);
        let around = range.parent_idx.and_then(|parent| row_of.get(parent));
        let around = around.copied().or(in_step);
        let same = around.filter(|_| !range.is_step);
        let same = same.and_then(|around| numbers.get(&(around, &*range.name)));
        if let Some(&row) = same {
            row_of.push(row);
            add(&mut rows[row], range);
            continue;
        }
        let row = rows.len();
        rows.push(RangeRow {
            name: range.name.clone(),
            depth: around.map_or(0, |around| rows[around].depth + 1),
            n_ranges: 1,
            extent: (range.start, end),
            time: range.duration,
            memory: range.memory.clone(),
        });
        inside.push(Vec::new());
        row_of.push(row);
        match around {
            Some(around) => {
                inside[around].push(row);
                numbers.insert((around, &ranges[idx].name), row);
            }
            None => outermost.push(row),
        }
        if range.is_step {
            step = Some(row);
        }
    }
    nested(rows, &inside, outermost)
}

fn add(row: &mut RangeRow, range: &TraceRange) {
    row.n_ranges += 1;
    row.extent.1 = row.extent.1.max(range.start + range.duration);
    row.time += range.duration;
    for more in &range.memory {
        let mut memory = row.memory.iter_mut();
        match memory.find(|memory| memory.device_idx == more.device_idx) {
            Some(memory) => {
                memory.kept = ByteDelta::new(memory.kept.get().saturating_add(more.kept.get()));
                memory.peak = memory.peak.max(more.peak);
            }
            None => row.memory.push(*more),
        }
    }
}

/// Each row before those inside of it.
fn nested(rows: Vec<RangeRow>, inside: &[Vec<usize>], outermost: Vec<usize>) -> Vec<RangeRow> {
    let mut waiting = outermost;
    waiting.reverse();
    let mut rows: Vec<Option<RangeRow>> = rows.into_iter().map(Some).collect();
    let mut ordered = Vec::new();
    while let Some(row) = waiting.pop() {
        ordered.extend(rows[row].take());
        waiting.extend(inside[row].iter().rev());
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(name: &str, parent_idx: Option<usize>, start: u64, kept: i64) -> TraceRange {
        let memory = RangeMemory {
            device_idx: 0,
            kept: ByteDelta::new(kept),
            peak: ByteDelta::new(kept.abs() * 2),
        };
        TraceRange {
            name: name.to_owned(),
            is_step: name.starts_with("step"),
            parent_idx,
            depth: 0,
            start: Nanos::new(start),
            duration: Nanos::new(10),
            memory: vec![memory],
        }
    }

    #[test]
    fn ranges_of_one_label_in_one_range_are_summed_up() {
        let ranges = [
            range("step", None, 0, 0),
            range("loss", Some(0), 1, 5),
            range("log", Some(1), 2, 0),
            range("save", Some(0), 3, 0),
            range("loss", Some(0), 4, -2),
            range("log", Some(4), 5, 0),
        ];
        let rows = range_rows(&ranges);
        let shown: Vec<_> = rows
            .iter()
            .map(|row| (&*row.name, row.depth, row.n_ranges))
            .collect();
        assert_eq!(
            shown,
            [
                ("step", 0, 1),
                ("loss", 1, 2),
                ("log", 2, 2),
                ("save", 1, 1)
            ]
        );
        let loss = &rows[1];
        assert_eq!(loss.extent, (Nanos::new(1), Nanos::new(14)));
        assert_eq!(loss.time, Nanos::new(20));
        let memory = (loss.memory[0].kept.get(), loss.memory[0].peak.get());
        assert_eq!(memory, (3, 10));
    }

    #[test]
    fn outside_of_steps_each_range_has_its_row() {
        let ranges = [range("train", None, 0, 0), range("train", None, 20, 0)];
        assert_eq!(range_rows(&ranges).len(), 2);
        let ranges = [range("step", None, 0, 0), range("late", None, 10, 0)];
        let depths: Vec<_> = range_rows(&ranges).iter().map(|row| row.depth).collect();
        assert_eq!(depths, [0, 0]);
    }
}
