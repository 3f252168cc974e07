//! Which GPUs CUDA shows to this process, and under which numbers, before CUDA is started.

use std::env;

/// Visibility as set by the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Visibility {
    /// `CUDA_VISIBLE_DEVICES`, where it is set.
    pub devices: Option<String>,
    /// `CUDA_DEVICE_ORDER=PCI_BUS_ID`: CUDA counts as NVML does.
    pub(crate) by_bus: bool,
}

impl Visibility {
    /// Reads the environment. With the GIL held: Python changes it under the GIL.
    pub(crate) fn of_environment() -> Self {
        let read = |name| env::var_os(name).map(|it| it.to_string_lossy().into_owned());
        Self {
            devices: read("CUDA_VISIBLE_DEVICES"),
            by_bus: read("CUDA_DEVICE_ORDER").as_deref() == Some("PCI_BUS_ID"),
        }
    }
}

/// A GPU, or a part of one, as NVML lists it.
pub(super) struct Unit<'a> {
    /// `GPU-<uuid>` or `MIG-<uuid>`.
    pub(super) uuid: &'a str,
    pub(super) name: &'a str,
}

/// What CUDA makes of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitVisibility {
    Hidden,
    /// `cuda:<ordinal>`.
    Numbered(usize),
    /// It may be shown; CUDA alone knows its number. Without `PCI_BUS_ID` it puts the fastest
    /// first, by a measure of its own, and of parts of GPUs it takes one that nobody named.
    Unnumbered,
}

/// The visibility of each unit.
///
/// Reads the list as CUDA does: an entry that names nothing hides all that follow it, and a unit
/// named twice hides everything.
pub(super) fn visibilities(units: &[Unit<'_>], visibility: &Visibility) -> Vec<UnitVisibility> {
    let is_part = |unit: &Unit<'_>| unit.uuid.starts_with("MIG-");
    let are_alike = units.windows(2).all(|pair| pair[0].name == pair[1].name);
    let is_order_known =
        units.len() <= 1 || ((visibility.by_bus || are_alike) && !units.iter().any(is_part));
    let Some(list) = &visibility.devices else {
        let number = |idx| {
            if is_order_known {
                UnitVisibility::Numbered(idx)
            } else {
                UnitVisibility::Unnumbered
            }
        };
        return (0..units.len()).map(number).collect();
    };
    let named = match list.trim().get(..4) {
        Some(prefix @ ("GPU-" | "MIG-")) => by_uuid(units, list, prefix),
        _ if !is_order_known && index(list).is_some() => {
            return vec![UnitVisibility::Unnumbered; units.len()];
        }
        _ => by_index(units.len(), list),
    };
    let mut seen = vec![UnitVisibility::Hidden; units.len()];
    for (ordinal, idx) in named.into_iter().enumerate() {
        if seen[idx] != UnitVisibility::Hidden {
            return vec![UnitVisibility::Hidden; units.len()];
        }
        seen[idx] = UnitVisibility::Numbered(ordinal);
    }
    seen
}

fn by_index(n_units: usize, list: &str) -> Vec<usize> {
    list.split(',')
        .map_while(index)
        .take_while(|idx| *idx < n_units)
        .collect()
}

/// The number that an entry begins with, as C's `strtoul` reads it.
fn index(entry: &str) -> Option<usize> {
    let digits = entry.trim_start();
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}

/// Units by UUIDs, or beginnings of them that fit one unit only.
fn by_uuid(units: &[Unit<'_>], list: &str, prefix: &str) -> Vec<usize> {
    let find = |entry: &str| {
        let entry = entry.trim();
        let fits = |unit: &Unit<'_>| entry.starts_with(prefix) && unit.uuid.starts_with(entry);
        let idx = units.iter().position(fits)?;
        (!units[idx + 1..].iter().any(fits)).then_some(idx)
    };
    list.split(',').map_while(find).collect()
}
