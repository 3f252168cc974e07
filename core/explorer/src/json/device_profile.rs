//! A device memory profile as JSON.

use serde::Serialize;

use gpumem_readers::device_profile::{DeviceProfile, TITLE};

/// A profile as JSON. Fields named `*_bytes` are bytes; unknown is `null`.
pub fn device_profile_json(profile: &DeviceProfile) -> String {
    let json = JsonProfile {
        title: TITLE,
        // Nanoseconds since 1970 do not fit a JavaScript number.
        taken_nanos: profile.taken_nanos.map(|nanos| nanos.to_string()),
        profile,
    };
    serde_json::to_string(&json).expect("a profile holds strings and numbers only")
}

#[derive(Serialize)]
struct JsonProfile<'a> {
    title: &'static str,
    taken_nanos: Option<String>,
    #[serde(flatten)]
    profile: &'a DeviceProfile,
}
