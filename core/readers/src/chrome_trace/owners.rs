//! Which operators allocated the live memory, at the peak and at the end.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

use super::level_series::TraceLevelSeries;
use super::model::ChromeTrace;
use super::nesting::Nesting;
use gpumem_model::units::Bytes;

/// Bytes that calls of an operator allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperatorOwner {
    /// The outermost operator; `None` outside of operators.
    pub operator: Option<String>,
    /// The innermost operator, if it is another one.
    pub allocated_by: Option<String>,
    /// The innermost module, if recorded. Modules whose names differ only in their number are one: `Linear_0 … 39`.
    pub module: Option<String>,
    /// The innermost Python function outside of torch, if recorded: `step (In [3]:9)`, with the line where it
    /// begins.
    pub function: Option<String>,
    /// Their bytes.
    pub bytes: Bytes,
    /// Number of allocations.
    pub n_blocks: usize,
}

/// Numbers of the live allocations at a series' peak and at its end.
pub(super) struct LiveAllocations {
    pub(super) at_peak: Vec<u32>,
    pub(super) at_end: Vec<u32>,
}

impl LiveAllocations {
    /// `None` if the trace has no addresses.
    pub(super) fn new(trace: &ChromeTrace, series: &TraceLevelSeries) -> Option<Self> {
        let (_, peak) = series.peak();
        let mut live: HashMap<i64, u32> = HashMap::new();
        let mut at_peak = Vec::new();
        let mut has_addresses = false;
        for (position, number) in series.changes.iter().enumerate() {
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
pub(super) fn owners(trace: &ChromeTrace, nesting: &Nesting, alive: &[u32]) -> Vec<OperatorOwner> {
    let name = |span: u32| {
        let span = trace.spans.get(span as usize)?;
        Some(trace.label_of(span).name)
    };
    let text = |name: u32| trace.names.text(name);
    let mut sums: HashMap<_, OwnerSum> = HashMap::new();
    for number in alive {
        let place = nesting.changes[*number as usize];
        let module = name(place.module).map(|name| without_number(text(name)));
        let key = (
            name(place.outermost),
            name(place.operator),
            module.map(|(module, _)| module),
            name(place.function),
        );
        let sum = sums.entry(key).or_default();
        let bytes = trace.changes[*number as usize].bytes;
        sum.bytes += Bytes::new(u64::try_from(bytes).unwrap_or(0));
        sum.n_blocks += 1;
        sum.numbers.extend(module.and_then(|(_, number)| number));
    }
    let owned = |name: u32| text(name).to_owned();
    let sums = sums.into_iter();
    let mut owners: Vec<OperatorOwner> = sums
        .map(
            |((outermost, innermost, module, function), sum)| OperatorOwner {
                operator: outermost.map(owned),
                allocated_by: innermost.filter(|_| innermost != outermost).map(owned),
                module: module.map(|module| numbered(module, &sum.numbers)),
                function: function.map(owned),
                bytes: sum.bytes,
                n_blocks: sum.n_blocks,
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

#[derive(Default)]
struct OwnerSum {
    bytes: Bytes,
    n_blocks: usize,
    numbers: BTreeSet<u32>,
}

/// `Linear` and 39, of `Linear_39`: the profiler counts the modules of a class.
fn without_number(module: &str) -> (&str, Option<u32>) {
    let numbered = module.rsplit_once('_');
    let numbered = numbered.and_then(|(class, number)| Some((class, number.parse().ok()?)));
    numbered.map_or((module, None), |(class, number)| (class, Some(number)))
}

fn numbered(class: &str, numbers: &BTreeSet<u32>) -> String {
    match (numbers.first(), numbers.last()) {
        (Some(first), Some(last)) if first < last => format!("{class}_{first} … {last}"),
        (Some(only), _) => format!("{class}_{only}"),
        _ => class.to_owned(),
    }
}
