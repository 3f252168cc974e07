//! Each device's levels, and what is there at its peak and at the end.

use crate::formats::torch_snapshot::{listed, row};
use crate::formats::torch_trace::{count, in_parts, label, level};
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
    let of = |it: &OperatorOwner| (it.bytes, it.n_blocks, torch_trace_owner(it));
    let mut lines = listed((owners, N_OWNERS), "more operator", of, |_| None, width);
    let known: Bytes = owners.iter().map(|owner| owner.bytes).sum();
    let level = Bytes::new(u64::try_from(level).unwrap_or(0));
    let before = level.saturating_sub(known);
    if device.is_absolute && before > Bytes::ZERO {
        lines.push(row(before, "", "allocated before the trace", width));
    }
    lines
}

/// Which operator holds memory: `step (train.py:9) · aten::linear › aten::addmm in Linear_0`.
pub fn torch_trace_owner(owner: &OperatorOwner) -> String {
    let operator = owner.operator.as_deref().unwrap_or("outside of operators");
    let within = owner.allocated_by.as_ref().map(|by| format!(" › {by}"));
    let module = owner.module.as_ref().map(|module| format!(" in {module}"));
    let function = owner.function.as_ref().map(|it| format!("{it} · "));
    let parts = [function, Some(operator.to_owned()), within, module];
    parts.into_iter().flatten().collect()
}
