//! What fills a device: its levels taken apart, and what is free.

use super::gaps::Gap;
use super::levels::DeviceSummary;
use crate::holders::Part as Purpose;
use crate::units::{ByteDelta, Bytes};
use crate::wording;

/// What a part of a device is taken up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PartKind {
    /// What tensors hold, or the narrowest level that is known in its place.
    Held,
    /// Reserved by the allocator and free in it.
    Cache,
    /// This process's use beyond its allocator: context, libraries, their workspaces.
    Context,
    /// The use of other processes.
    Others,
    /// What nobody uses.
    Free,
}

/// A part of what a device has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What takes it up.
    pub kind: PartKind,
    /// The same in words: `context and libraries`.
    pub words: String,
    /// How much it is.
    pub size: Bytes,
}

impl DeviceSummary {
    /// The parts that make up the device, from what is held to what is free.
    ///
    /// A negative gap (memory that is reserved but not mapped, managed or shared) is
    /// no part: the parts are then more than the device's use.
    pub fn composition(&self) -> Vec<Part> {
        let Some((name, held)) = self.narrowest() else {
            return Vec::new();
        };
        let part = |kind, words: &str, size| Part {
            kind,
            words: words.to_owned(),
            size,
        };
        let gaps = self.gaps();
        let between = gaps.iter().filter(|gap| gap.size > ByteDelta::ZERO);
        let free = self.free().map(|free| part(PartKind::Free, "free", free));
        std::iter::once(part(PartKind::Held, held_words(name), held))
            .chain(between.map(|gap| part(kind(gap), wording::gap(gap), gap.size.magnitude())))
            .chain(free)
            .filter(|part| part.size > Bytes::ZERO)
            .collect()
    }
}

impl DeviceSummary {
    /// The same, with what is allocated taken apart by what it is for: each purpose, and unnamed
    /// what no look has found. As it was where no allocator tells, or the look found more.
    pub fn composition_by_purpose(&self, purposes: &[(Purpose, Bytes)]) -> Vec<Part> {
        if self.allocated.is_none() {
            return self.composition();
        }
        let requested = self.requested;
        let parts = self.composition().into_iter();
        parts
            .flat_map(|part| taken_apart(part, requested, purposes))
            .collect()
    }
}

/// Objects were asked how much they hold, and blocks are larger: what was lost to that is no
/// object's, and no secret either.
fn taken_apart(part: Part, requested: Option<Bytes>, purposes: &[(Purpose, Bytes)]) -> Vec<Part> {
    let found: Bytes = purposes.iter().map(|(_, size)| *size).sum();
    if part.kind != PartKind::Held || found > part.size {
        return vec![part];
    }
    let named = purposes.iter().filter(|(it, _)| *it != Purpose::Unnamed);
    let known: Bytes = named.clone().map(|(_, size)| *size).sum();
    let held = |words: &str, size| Part {
        kind: PartKind::Held,
        words: words.to_owned(),
        size,
    };
    let rest = part.size.saturating_sub(known);
    let rounding = requested.map_or(Bytes::ZERO, |asked| part.size.saturating_sub(asked));
    let rounding = rounding.min(rest);
    let mut parts: Vec<Part> = named
        .map(|(purpose, size)| held(purpose.words(), *size))
        .chain([
            held(Purpose::Unnamed.words(), rest.saturating_sub(rounding)),
            held(ROUNDING, rounding),
        ])
        .filter(|part| part.size > Bytes::ZERO)
        .collect();
    // Of less nobody wants to read: it goes to the largest part, which has most of the blocks.
    if rounding.get() < part.size.get() / 1000 {
        parts.retain(|part| part.words != ROUNDING);
        if let Some(largest) = parts.iter_mut().max_by_key(|part| part.size) {
            largest.size += rounding;
        }
    }
    parts
}

/// What blocks are larger than what was asked for.
const ROUNDING: &str = "rounding";

fn held_words(level: &str) -> &'static str {
    match level {
        "allocated" => "allocated",
        "reserved" => "reserved by the allocator",
        "process_used" => "this process",
        _ => "in use",
    }
}

fn kind(gap: &Gap) -> PartKind {
    match (gap.from, gap.to) {
        ("allocated", "reserved") => PartKind::Cache,
        (_, "process_used") => PartKind::Context,
        _ => PartKind::Others,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::limits::{Limit, LimitedBy};
    use crate::recording::{DeviceIdx, Reading};

    #[track_caller]
    fn check(levels: [Option<u64>; 5], expected: &[(&str, u64)]) {
        let [allocated, reserved, process_used, device_used, capacity] =
            levels.map(|n| n.map(Bytes::new));
        let limit = capacity.map(|bytes| Limit {
            by: LimitedBy::Device,
            bytes,
            used: device_used.or(process_used).or(reserved),
        });
        let summary = DeviceSummary {
            allocated,
            reserved,
            process_used,
            device_used,
            limits: limit.into_iter().collect(),
            capacity,
            ..DeviceSummary::now(DeviceIdx(0), &Reading::default())
        };
        let parts = summary.composition();
        let found: Vec<(&str, u64)> = parts
            .iter()
            .map(|part| (part.words.as_str(), part.size.get()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_parts_are_what_lies_between_the_levels() {
        check(
            [Some(40), Some(50), Some(55), Some(70), Some(100)],
            &[
                ("allocated", 40),
                ("cache", 10),
                ("context and libraries", 5),
                ("other processes", 15),
                ("free", 30),
            ],
        );
        check(
            [None, None, Some(20), Some(70), None],
            &[("this process", 20), ("other processes", 50)],
        );
        check([None; 5], &[]);
    }

    #[track_caller]
    fn check_purposes(allocated: Option<u64>, found: &[(Purpose, u64)], expected: &[(&str, u64)]) {
        let summary = DeviceSummary {
            allocated: allocated.map(Bytes::new),
            process_used: Some(Bytes::new(50)),
            ..DeviceSummary::now(DeviceIdx(0), &Reading::default())
        };
        let found: Vec<(Purpose, Bytes)> = found
            .iter()
            .map(|(purpose, n)| (*purpose, Bytes::new(*n)))
            .collect();
        let parts = summary.composition_by_purpose(&found);
        let parts: Vec<(&str, u64)> = parts
            .iter()
            .map(|part| (part.words.as_str(), part.size.get()))
            .collect();
        assert_eq!(parts, expected);
    }

    #[test]
    fn what_is_allocated_is_told_by_what_it_is_for() {
        let context = ("cache, context and libraries", 10);
        let model = [(Purpose::Parameters, 30), (Purpose::Unnamed, 4)];
        check_purposes(
            Some(40),
            &model,
            &[("parameters", 30), ("unnamed", 10), context],
        );
        check_purposes(Some(40), &[], &[("unnamed", 40), context]);
        check_purposes(
            Some(40),
            &[(Purpose::Names, 41)],
            &[("allocated", 40), context],
        );
        check_purposes(None, &model, &[("this process", 50)]);
    }

    #[test]
    fn what_blocks_are_larger_than_asked_for_is_rounding() {
        let check = |requested: u64, expected: &[(&str, u64)]| {
            let summary = DeviceSummary {
                allocated: Some(Bytes::new(10_000)),
                requested: Some(Bytes::new(requested)),
                ..DeviceSummary::now(DeviceIdx(0), &Reading::default())
            };
            let found = [(Purpose::Graphs, 7000), (Purpose::Names, 2000)];
            let found = found.map(|(purpose, n)| (purpose, Bytes::new(n)));
            let parts = summary.composition_by_purpose(&found);
            let parts: Vec<(&str, u64)> = parts
                .iter()
                .map(|part| (part.words.as_str(), part.size.get()))
                .collect();
            assert_eq!(parts, expected);
        };
        let (graphs, names) = (("graphs", 7000), ("your names", 2000));
        check(9000, &[graphs, names, ("rounding", 1000)]);
        check(9400, &[graphs, names, ("unnamed", 400), ("rounding", 600)]);
        // Too little for a word of its own.
        check(9995, &[("graphs", 7005), names, ("unnamed", 995)]);
        // What was asked for is less than what was found: the look was at another instant.
        check(8000, &[graphs, names, ("rounding", 1000)]);
    }

    #[test]
    fn what_is_nothing_or_less_is_no_part() {
        check(
            [Some(0), Some(90), Some(60), Some(60), Some(100)],
            &[("cache", 90), ("free", 40)],
        );
    }
}
