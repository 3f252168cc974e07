//! What names a device from one session to the next.

use std::fmt;
use std::sync::Arc;

/// A key of a device that outlives the session, the same from every source: `GPU-<uuid>`, `sim:0`,
/// `host`.
///
/// A type of its own, because the label (`cuda:0`) is a text as well: it may change while the key
/// stays.
///
/// ```
/// use gpumem_core::recording::DeviceKey;
///
/// let key = DeviceKey::from("sim:0");
/// assert_eq!(key.as_str(), "sim:0");
/// assert_eq!(key, DeviceKey::from("sim:0".to_owned()));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKey(Arc<str>);

impl DeviceKey {
    /// As it is written.
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
