//! The figures behind verdicts.

/// One figure behind a verdict. [`wording::evidence`](crate::wording::evidence()) explains it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// The name of the statistic: `block_t`. Sizes end in `_bytes`.
    pub name: &'static str,
    /// Its value; a size in bytes.
    pub value: f64,
    /// The threshold that it was compared with, if there is one.
    pub threshold: Option<f64>,
    /// Whether it supports the finding.
    pub holds: bool,
}

impl Evidence {
    /// A figure that no threshold applies to.
    pub(super) fn figure(name: &'static str, value: f64) -> Self {
        Self {
            name,
            value,
            threshold: None,
            holds: true,
        }
    }

    /// A figure that supports the finding because it meets its threshold.
    pub(super) fn met(name: &'static str, value: f64, threshold: f64) -> Self {
        Self {
            name,
            value,
            threshold: Some(threshold),
            holds: true,
        }
    }

    /// A figure that supports the finding if it is above its threshold.
    pub(super) fn above(name: &'static str, value: f64, threshold: f64) -> Self {
        Self {
            holds: value > threshold,
            ..Self::met(name, value, threshold)
        }
    }
}
