//! Identifies a device across sessions.

use std::fmt;
use std::sync::Arc;

/// A key that identifies a device in every session and source: `GPU-<uuid>`, `sim:0`, `host`.
///
/// It is not the label (`cuda:0`), which depends on the order of the visible devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKey(Arc<str>);

impl DeviceKey {
    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for DeviceKey {
    fn from(key: &str) -> Self {
        Self(key.into())
    }
}

impl From<String> for DeviceKey {
    fn from(key: String) -> Self {
        Self(key.into())
    }
}

impl fmt::Display for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
