//! Two memory snapshots of `PyTorch` compared.

use std::sync::Arc;

use gpumem_model::units::count;
use gpumem_model::units::{ByteDelta, Bytes};
use gpumem_readers::code_line::CodeLine;
use gpumem_readers::torch_snapshot::{ByteChange, DeviceChange, SnapshotChange};
use gpumem_report::columns::{cut, in_parts, to_text};

use super::Content;

/// At most this many stacks and holders are listed, those that changed most.
const N_CHANGES: usize = 15;

impl Content for SnapshotChange {
    fn kind(&self) -> &'static str {
        "a comparison of memory snapshots"
    }

    /// The levels of each device before and after, and which stacks and holders have other bytes.
    fn text(&self, width: usize) -> String {
        text(self, width)
    }

    /// Fields named `*_bytes` are bytes: in the earlier snapshot, and in the later one.
    fn json(&self) -> String {
        serde_json::to_string(self).expect("a comparison holds strings and numbers only")
    }

    fn repr(&self) -> String {
        format!("<TorchChange of {}>", count(self.devices.len(), "device"))
    }
}

fn text(change: &SnapshotChange, width: usize) -> String {
    let title = match change.devices.len() {
        0 => "no memory reserved in either".to_owned(),
        n => count(n, "device"),
    };
    let mut lines = vec![format!("Two PyTorch memory snapshots · {title}")];
    for device in &change.devices {
        lines.push(String::new());
        lines.extend(device_lines(device, width));
    }
    to_text(&lines)
}

fn device_lines(device: &DeviceChange, width: usize) -> Vec<String> {
    let level = |name: &str, (before, after): (Bytes, Bytes)| {
        if before == after {
            format!("{name} {after} in both")
        } else {
            format!("{name} {before} → {after} ({})", after - before)
        }
    };
    let levels = [
        format!("  {}", level("allocated", device.allocated)),
        level("reserved", device.reserved),
        level("largest hole", device.largest_hole),
    ];
    let mut lines = vec![device.device.to_string(), in_parts(&levels, width, "    ")];
    if device.stacks.is_empty() && device.holders.is_empty() {
        lines.push("  no stack has other bytes".to_owned());
    }
    lines.extend(change_lines(
        "by holder",
        &device.holders,
        Clone::clone,
        width,
    ));
    let of_stack = |frames: &Vec<Arc<CodeLine>>| {
        let frames: Vec<String> = frames.iter().map(|it| it.short()).collect();
        match frames.as_slice() {
            [] => "no stack was recorded".to_owned(),
            frames => frames.join(" ← "),
        }
    };
    lines.extend(change_lines("by stack", &device.stacks, of_stack, width));
    lines
}

fn change_lines<W>(
    title: &str,
    changes: &[ByteChange<W>],
    words: impl Fn(&W) -> String,
    width: usize,
) -> Vec<String> {
    let row = |grown: ByteDelta, n_blocks: (usize, usize), words: &str| {
        let (grown, blocks) = (
            grown.to_string(),
            format!("{} → {}", n_blocks.0, n_blocks.1),
        );
        cut(&format!("    {grown:>10} {blocks:>13}  {words}"), width)
    };
    let mut lines = Vec::new();
    if !changes.is_empty() {
        lines.push(format!("  {title}: bytes, blocks before and after"));
    }
    let shown = changes.iter().take(N_CHANGES);
    lines.extend(shown.map(|it| row(it.grown(), it.n_blocks, &words(&it.whose))));
    let rest = changes.get(N_CHANGES..).unwrap_or_default();
    if !rest.is_empty() {
        let grown = rest
            .iter()
            .fold(ByteDelta::ZERO, |sum, it| sum + it.grown());
        let blocks = |of: fn(&ByteChange<W>) -> usize| rest.iter().map(of).sum();
        let n_blocks = (blocks(|it| it.n_blocks.0), blocks(|it| it.n_blocks.1));
        lines.push(row(grown, n_blocks, &format!("{} more", rest.len())));
    }
    lines
}
