//! Memory that is free in the allocator, but in pieces.

use super::{Presentation, Teller, code, figure, prose};
use gpumem_analyzer::{FragmentationDetails, SeriesGrowth};
use gpumem_model::recording::DeviceKind;
use gpumem_model::units::{ByteDelta, count};

/// What lets PyTorch's segments grow.
pub const EXPANDABLE: &str = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";

pub(super) fn present(teller: &Teller<'_>, details: &FragmentationDetails) -> Presentation {
    let size = |bytes| teller.units.size(bytes);
    let share = details.inactive_split.as_f64() / details.reserved.as_f64().max(1.0);
    let largest = details.largest_free.map_or_else(String::new, |largest| {
        format!(" of {} at most", size(largest))
    });
    let title = format!(
        "{} of {} is free, but in pieces{largest}",
        size(details.inactive_split),
        teller.device()
    );
    let own = Presentation::new(title, "")
        .fact(format!(
            "{:.0} % of the {} reserved, between blocks in use",
            100.0 * share,
            size(details.reserved)
        ))
        .fact(prose![
            code("empty_cache()"),
            format!(" would give back {}", size(details.reclaimable))
        ])
        .advice("allocate long-lived tensors first, so that they do not share segments with short-lived ones");
    match details.device_kind {
        DeviceKind::Gpu => own.advice(prose![
            "before the kernel starts, set ",
            code(EXPANDABLE),
            ": segments then grow in place"
        ]),
        _ => own,
    }
}

/// Reserved grows over a flat allocated.
pub(super) fn of_reserved(teller: &Teller<'_>, growth: &SeriesGrowth) -> Presentation {
    let size = |change: ByteDelta| teller.units.size(change.magnitude());
    let title = prose![
        teller.cell(),
        format!(
            " reserves {} more a run, and its tensors take no more",
            size(growth.bytes_per_run)
        ),
        teller.on_device()
    ];
    Presentation::new(title, prose![figure(size(growth.total)), " so far"])
        .fact(format!(
            "over {}; free blocks do not fit the requests of the next run",
            count(teller.finding.n_runs, "run")
        ))
        .advice(
            "use few different sizes (pad batches to a few lengths): then freed blocks fit again",
        )
}

/// Why there is no map of the blocks.
pub fn no_map(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("No map of the blocks: {reason}."),
        None => "Where each block lies is not in this recording, only their sums.".to_owned(),
    }
}
