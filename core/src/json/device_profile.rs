//! A device memory profile as JSON.

use serde::Serialize;

use crate::read::device_profile::{DeviceProfile, ProfileOwner, ProfilePart, TITLE};

/// A profile as JSON. Fields named `*_bytes` are bytes; unknown is `null`.
pub fn device_profile_json(profile: &DeviceProfile) -> String {
    let json = JsonProfile {
        title: TITLE,
        // Nanoseconds since 1970 do not fit a JavaScript number.
        taken_nanos: profile.taken_nanos.map(|nanos| nanos.to_string()),
        bytes: profile.bytes.get(),
        n_allocations: profile.n_allocations,
        parts: profile.parts.iter().map(JsonPart::of).collect(),
        owners: profile.owners.iter().map(JsonOwner::of).collect(),
    };
    serde_json::to_string(&json).expect("a profile holds strings and numbers only")
}

#[derive(Serialize)]
struct JsonProfile<'a> {
    title: &'static str,
    taken_nanos: Option<String>,
    bytes: u64,
    n_allocations: Option<u64>,
    parts: Vec<JsonPart<'a>>,
    owners: Vec<JsonOwner<'a>>,
}

#[derive(Serialize)]
struct JsonPart<'a> {
    device: Option<&'a str>,
    kind: Option<&'a str>,
    bytes: u64,
    n_allocations: Option<u64>,
}

#[derive(Serialize)]
struct JsonOwner<'a> {
    line: Option<JsonLine<'a>>,
    bytes: u64,
    n_allocations: Option<u64>,
}

#[derive(Serialize)]
struct JsonLine<'a> {
    file: &'a str,
    line: Option<u32>,
    function: &'a str,
}

impl<'a> JsonPart<'a> {
    fn of(part: &'a ProfilePart) -> Self {
        Self {
            device: part.device.as_deref(),
            kind: part.kind.as_deref(),
            bytes: part.bytes.get(),
            n_allocations: part.n_allocations,
        }
    }
}

impl<'a> JsonOwner<'a> {
    fn of(owner: &'a ProfileOwner) -> Self {
        let line = owner.line.as_ref().map(|line| JsonLine {
            file: &line.file,
            line: line.line,
            function: &line.function,
        });
        Self {
            line,
            bytes: owner.bytes.get(),
            n_allocations: owner.n_allocations,
        }
    }
}
