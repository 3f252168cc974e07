//! Memory that is free in the allocator, but in pieces.

use super::{Teller, Words};
use gpumem_analyzer::{FragmentationDetails, SeriesGrowth};
use gpumem_model::recording::DeviceKind;
use gpumem_model::units::ByteDelta;
use gpumem_model::units::count;

pub(super) fn words(teller: &Teller<'_>, details: &FragmentationDetails) -> Words {
    let size = |bytes| teller.units.size(bytes);
    let share = details.inactive_split.as_f64() / details.reserved.as_f64().max(1.0);
    let largest = details.largest_free.map_or_else(String::new, |largest| {
        format!(" of {} at most", size(largest))
    });
    let order = "allocate long-lived tensors first, so that they do not share segments with short-lived ones";
    let segments = "before the kernel starts, set \
                    `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: segments then grow in place";
    let advice: &[&str] = match details.device_kind {
        DeviceKind::Gpu => &[order, segments],
        _ => &[order],
    };
    let title = format!(
        "{} of {} is free, but in pieces{largest}",
        size(details.inactive_split),
        teller.device()
    );
    let words = Words::new(title, "").detail(format!(
        "{:.0} % of the {} reserved, between blocks in use · `empty_cache()` would give back {}",
        100.0 * share,
        size(details.reserved),
        size(details.reclaimable)
    ));
    Words {
        suggestions: advice.iter().map(|&advice| advice.to_owned()).collect(),
        ..words
    }
}

/// Reserved grows over a flat allocated.
pub(super) fn of_reserved(teller: &Teller<'_>, growth: &SeriesGrowth) -> Words {
    let size = |change: ByteDelta| teller.units.size(change.magnitude());
    let title = format!(
        "{} reserves {} more a run, and its tensors take no more{}",
        teller.cell(),
        size(growth.bytes_per_run),
        teller.on_device()
    );
    Words::new(title, format!("**{}** so far", size(growth.total)))
        .detail(format!(
            "over {}; free blocks do not fit the requests of the next run",
            count(teller.finding.n_runs, "run")
        ))
        .advice(
            "use few different sizes (pad batches to a few lengths): then freed blocks fit again",
        )
}
