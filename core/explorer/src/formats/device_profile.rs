//! Device memory profiles of JAX.

use gpumem_model::units::{Bytes, count, count_of};
use gpumem_readers::code_line::CodeLine;
use gpumem_readers::container::Container;
use gpumem_readers::device_profile::{
    self, DeviceProfile, ProfileOwner, ProfilePart, TITLE, is_profile,
};
use gpumem_readers::level_log::WallTime;
use gpumem_report::columns::{cut, in_parts, to_text};
use serde::Serialize;

use super::{Content, FileFigure, ReadMethod, RegistryEntry, into_content};

/// At most this many devices with their kinds are listed, those with most bytes.
const N_PARTS: usize = 16;

/// At most this many lines of code are listed, those with most bytes.
const N_OWNERS: usize = 15;

/// In the registry.
pub(super) struct JaxProfile;

impl RegistryEntry for JaxProfile {
    const NAME: Option<&'static str> = Some("a device memory profile");
    const LISTED: Option<&'static str> = Some("memory profiles of JAX");
    const MAY_BE_PACKED: bool = true;
    const READING: ReadMethod =
        ReadMethod::Bytes(|file| into_content(device_profile::read(file.bytes)));

    fn recognises(container: Container, head: &[u8]) -> bool {
        container == Container::Unknown && is_profile(head)
    }
}

impl Content for DeviceProfile {
    fn kind(&self) -> &'static str {
        "a device memory profile"
    }

    /// How much is alive, on which devices, and which lines allocated it.
    fn text(&self, width: usize) -> String {
        text(self, width)
    }

    /// Fields named `*_bytes` are bytes; unknown is `null`.
    fn json(&self) -> String {
        let json = JsonProfile {
            title: TITLE,
            // Nanoseconds since 1970 do not fit a JavaScript number.
            taken_nanos: self.taken_nanos.map(|nanos| nanos.to_string()),
            profile: self,
        };
        serde_json::to_string(&json).expect("a profile holds strings and numbers only")
    }

    fn measures(&self) -> Option<Vec<FileFigure>> {
        let part = |part: &ProfilePart| {
            let device = part.device.as_deref().unwrap_or("no device");
            FileFigure::level(
                device,
                part.kind.as_deref().unwrap_or("unknown kind"),
                part.bytes,
            )
        };
        let owner = |owner: &ProfileOwner| {
            let line = owner.line.as_ref().map(CodeLine::short);
            let line = line.unwrap_or_else(|| "no stack was recorded".to_owned());
            FileFigure::owner("by the line that allocated it", line, owner.bytes)
        };
        let owners = self.owners.iter().map(owner);
        Some(self.parts.iter().map(part).chain(owners).collect())
    }

    fn repr(&self) -> String {
        format!("<DeviceProfile {}>", self.bytes)
    }
}

#[derive(Serialize)]
struct JsonProfile<'a> {
    title: &'static str,
    taken_nanos: Option<String>,
    #[serde(flatten)]
    profile: &'a DeviceProfile,
}

fn text(profile: &DeviceProfile, width: usize) -> String {
    let in_allocations = |n: Option<u64>, n_unknown: u64| {
        let n = n.map(|n| count_of(n, "allocation"));
        let words = n.map_or_else(String::new, |n| format!(" in {n}"));
        match n_unknown {
            0 => words,
            n => format!("{words}, {n} of unknown size"),
        }
    };
    let all = in_allocations(profile.n_allocations, profile.n_unknown);
    let all = format!(
        "{}{all}",
        known(profile.bytes, profile.n_allocations, profile.n_unknown)
    );
    let mut title = vec![TITLE.to_owned(), all];
    let taken = profile.taken_nanos.map(WallTime::unix_nanos);
    title.extend(taken.map(|at| format!("taken {at}")));
    let mut lines = vec![in_parts(&title, width, "  ")];
    for part in profile.parts.iter().take(N_PARTS) {
        let device = part.device.as_deref().unwrap_or("no device");
        let kind = part.kind.as_deref().unwrap_or("unknown kind");
        let bytes = known(part.bytes, part.n_allocations, part.n_unknown);
        let n = in_allocations(part.n_allocations, part.n_unknown);
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
    let row = |bytes: String, n: Option<u64>, line: &str| {
        let n = n.map_or_else(String::new, |n| n.to_string());
        cut(&format!("  {bytes:>9} {n:>8}  {line}"), width)
    };
    for owner in profile.owners.iter().take(N_OWNERS) {
        let line = owner.line.as_ref().map(CodeLine::short);
        let line = line.unwrap_or_else(|| "no stack was recorded".to_owned());
        let bytes = known(owner.bytes, owner.n_allocations, owner.n_unknown);
        lines.push(row(bytes, owner.n_allocations, &line));
    }
    let rest = profile.owners.get(N_OWNERS..).unwrap_or_default();
    if !rest.is_empty() {
        let bytes: Bytes = rest.iter().map(|owner| owner.bytes).sum();
        lines.push(row(
            bytes.to_string(),
            None,
            &count(rest.len(), "more line"),
        ));
    }
    to_text(&lines)
}

/// Bytes; of allocations none of which has a known size, that they are unknown.
fn known(bytes: Bytes, n_allocations: Option<u64>, n_unknown: u64) -> String {
    if n_allocations == Some(n_unknown) && n_unknown > 0 {
        "unknown".to_owned()
    } else {
        bytes.to_string()
    }
}
