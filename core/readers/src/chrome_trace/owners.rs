//! Which operators allocated what is there, at the peak and at the end.

use std::collections::HashMap;

use serde::Serialize;

use super::course::Course;
use super::model::Trace;
use super::nesting::Nesting;
use gpumem_model::units::Bytes;

/// Bytes that calls of an operator allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperatorOwner {
    /// The outermost operator; `None` outside of operators.
    pub operator: Option<String>,
    /// The innermost operator, if it is another one.
    pub allocated_by: Option<String>,
    /// The innermost module, if recorded.
    pub module: Option<String>,
    /// The innermost Python function outside of torch, if recorded: `step (In [3]:9)`, with the line where it
    /// begins.
    pub function: Option<String>,
    /// What they take.
    pub bytes: Bytes,
    /// How many allocations.
    pub n_blocks: usize,
}

/// Allocations that are not freed, by number, at a course's peak and at its end.
pub(super) struct Alive {
    pub(super) at_peak: Vec<u32>,
    pub(super) at_end: Vec<u32>,
}

impl Alive {
    /// `None` if the trace has no addresses.
    pub(super) fn of(trace: &Trace, course: &Course) -> Option<Self> {
        let (_, peak) = course.peak();
        let mut live: HashMap<i64, u32> = HashMap::new();
        let mut at_peak = Vec::new();
        let mut has_addresses = false;
        for (position, number) in course.changes.iter().enumerate() {
            let change = &trace.changes[*number as usize];
            if let Some(address) = change.address {
                has_addresses = true;
                if change.bytes > 0 {
                    live.insert(address, *number);
                } else {
                    live.remove(&address);
                }
            }
            if peak == Some(position) {
                at_peak.extend(live.values());
            }
        }
        let at_end = live.into_values().collect();
        has_addresses.then_some(Self { at_peak, at_end })
    }
}

/// The owners of these allocations, largest first.
pub(super) fn owners(trace: &Trace, nesting: &Nesting, alive: &[u32]) -> Vec<OperatorOwner> {
    let name = |span: u32| {
        let span = trace.spans.get(span as usize)?;
        Some(trace.label_of(span).name)
    };
    let mut sums: HashMap<_, (Bytes, usize)> = HashMap::new();
    for number in alive {
        let place = nesting.changes[*number as usize];
        let key = (
            name(place.outermost),
            name(place.operator),
            name(place.module),
            name(place.function),
        );
        let sum = sums.entry(key).or_default();
        let bytes = trace.changes[*number as usize].bytes;
        sum.0 += Bytes::new(u64::try_from(bytes).unwrap_or(0));
        sum.1 += 1;
    }
    let text = |name: u32| trace.names.text(name).to_owned();
    let sums = sums.into_iter();
    let mut owners: Vec<OperatorOwner> = sums
        .map(
            |((outermost, innermost, module, function), (bytes, n_blocks))| OperatorOwner {
                operator: outermost.map(text),
                allocated_by: innermost.filter(|_| innermost != outermost).map(text),
                module: module.map(text),
                function: function.map(text),
                bytes,
                n_blocks,
            },
        )
        .collect();
    owners.sort_by(|a, b| {
        let names = |owner: &OperatorOwner| {
            (
                owner.operator.clone(),
                owner.allocated_by.clone(),
                owner.module.clone(),
                owner.function.clone(),
            )
        };
        b.bytes.cmp(&a.bytes).then_with(|| names(a).cmp(&names(b)))
    });
    owners
}
