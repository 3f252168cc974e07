//! A device memory profile as text.

use gpumem_model::units::Bytes;
use gpumem_model::units::count;
use gpumem_readers::code_line::CodeLine;
use gpumem_readers::device_profile::{DeviceProfile, TITLE};
use gpumem_readers::level_log::WallTime;
use gpumem_report::columns::{cut, in_parts, to_text};

/// At most this many devices with their kinds are listed, those with most bytes.
const N_PARTS: usize = 16;

/// At most this many lines of code are listed, those with most bytes.
const N_OWNERS: usize = 15;

/// How much is alive, on which devices, and which lines allocated it.
///
/// Lines are at most `width` columns long.
pub fn device_profile(profile: &DeviceProfile, width: usize) -> String {
    let in_allocations = |n: Option<u64>| {
        let n = n.map(|n| count(usize::try_from(n).unwrap_or(usize::MAX), "allocation"));
        n.map_or_else(String::new, |n| format!(" in {n}"))
    };
    let all = format!("{}{}", profile.bytes, in_allocations(profile.n_allocations));
    let mut title = vec![TITLE.to_owned(), all];
    let taken = profile.taken_nanos.map(WallTime::unix_nanos);
    title.extend(taken.map(|at| format!("taken {at}")));
    let mut lines = vec![in_parts(&title, width, "  ")];
    for part in profile.parts.iter().take(N_PARTS) {
        let device = part.device.as_deref().unwrap_or("no device");
        let kind = part.kind.as_deref().unwrap_or("unknown kind");
        let bytes = part.bytes.to_string();
        let n = in_allocations(part.n_allocations);
        lines.push(cut(&format!("  {bytes:>9}  {device} · {kind}{n}"), width));
    }
    let n_more = profile.parts.len().saturating_sub(N_PARTS);
    if n_more > 0 {
        lines.push(format!("  … and {}", count(n_more, "smaller part")));
    }
    if !profile.owners.is_empty() {
        lines.push(String::new());
        lines.push("alive, by the line that allocated it".to_owned());
    }
    let row = |bytes: Bytes, n: Option<u64>, line: &str| {
        let (bytes, n) = (
            bytes.to_string(),
            n.map_or_else(String::new, |n| n.to_string()),
        );
        cut(&format!("  {bytes:>9} {n:>8}  {line}"), width)
    };
    for owner in profile.owners.iter().take(N_OWNERS) {
        let line = owner.line.as_ref().map(CodeLine::short);
        let line = line.unwrap_or_else(|| "no stack was recorded".to_owned());
        lines.push(row(owner.bytes, owner.n_allocations, &line));
    }
    let rest = profile.owners.get(N_OWNERS..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes = rest.iter().map(|owner| owner.bytes).sum();
        lines.push(row(bytes, None, &count(rest.len(), "more line")));
    }
    to_text(&lines)
}
