//! Each device's levels, and what is there at its peak and at the end.

use crate::formats::torch_trace::{count, cut, in_parts, label, level};
use gpumem_model::units::Bytes;
use gpumem_readers::chrome_trace::{OperatorOwner, TraceDeviceLevels, TraceSummary};

/// Devices beyond these are only counted.
const N_DEVICES: usize = 8;

/// Owners that are listed, the largest.
const N_OWNERS: usize = 8;

pub(super) fn lines(summary: &TraceSummary, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for device in summary.devices.iter().take(N_DEVICES) {
        lines.push(String::new());
        lines.push(heading(device, width));
        lines.push(in_parts(&levels(device), width, "    "));
        let owners = [
            ("at the peak", &device.owners_at_peak, device.peak.get()),
            ("at the end", &device.owners_at_end, device.at_end.get()),
        ];
        let has_gpu = !summary
            .devices
            .first()
            .is_some_and(|first| first.device.is_cpu());
        for (when, owners, level) in owners {
            if let Some(owners) = owners
                && !(has_gpu && device.device.is_cpu())
                && !owners.is_empty()
            {
                lines.push(format!("  allocated {when}, by operator"));
                lines.extend(owner_lines(owners, device, level, width));
            }
        }
    }
    let n_more = summary.devices.len().saturating_sub(N_DEVICES);
    if n_more > 0 {
        lines.push(format!("and {}", count(n_more, "more device")));
    }
    lines
}

fn heading(device: &TraceDeviceLevels, width: usize) -> String {
    let mut parts = vec![label(device)];
    parts.extend(device.model.clone());
    parts.extend(device.total.map(|total| total.to_string()));
    in_parts(&parts, width, "  ")
}

fn levels(device: &TraceDeviceLevels) -> Vec<String> {
    let level = |of| level(device, of);
    let mut parts = vec![format!("  peak {}", level(device.peak))];
    if device.is_absolute {
        parts.push(format!("at the start {}", level(device.at_start)));
    }
    parts.push(format!("at the end {}", level(device.at_end)));
    let reserved = device.peak_reserved;
    parts.extend(reserved.map(|reserved| format!("reserved at most {reserved}")));
    parts.push(match device.n_changes {
        1 => "1 allocation or free".to_owned(),
        n => format!("{n} allocations and frees"),
    });
    if !device.is_absolute {
        parts.push("levels are relative: the trace has no totals".to_owned());
    }
    parts
}

fn owner_lines(
    owners: &[OperatorOwner],
    device: &TraceDeviceLevels,
    level: i64,
    width: usize,
) -> Vec<String> {
    let row = |bytes: Bytes, blocks: &str, words: &str| {
        let bytes = bytes.to_string();
        cut(&format!("    {bytes:>9} {blocks:>13}  {words}"), width)
    };
    let mut lines: Vec<String> = Vec::new();
    for owner in owners.iter().take(N_OWNERS) {
        lines.push(row(
            owner.bytes,
            &count(owner.n_blocks, "block"),
            &owner_label(owner),
        ));
    }
    let rest = owners.get(N_OWNERS..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes = rest.iter().map(|owner| owner.bytes).sum();
        let n_blocks = rest.iter().map(|owner| owner.n_blocks).sum();
        lines.push(row(
            bytes,
            &count(n_blocks, "block"),
            &count(rest.len(), "more operator"),
        ));
    }
    let known: Bytes = owners.iter().map(|owner| owner.bytes).sum();
    let level = Bytes::new(u64::try_from(level).unwrap_or(0));
    let before = level.saturating_sub(known);
    if device.is_absolute && before > Bytes::ZERO {
        lines.push(row(before, "", "allocated before the trace"));
    }
    lines
}

pub(super) fn owner_label(owner: &OperatorOwner) -> String {
    let operator = owner.operator.as_deref().unwrap_or("outside of operators");
    let within = owner.allocated_by.as_ref().map(|by| format!(" › {by}"));
    let module = owner.module.as_ref().map(|module| format!(" in {module}"));
    let function = owner.function.as_ref().map(|it| format!("{it} · "));
    let parts = [function, Some(operator.to_owned()), within, module];
    parts.into_iter().flatten().collect()
}
