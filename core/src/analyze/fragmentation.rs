//! Findings of this kind.

use super::finding::Finding;
use super::levels::{DeviceSummary, RunRow};
use super::rules::Rules;
use crate::recording::Recording;

pub(super) fn findings(
    _recording: &Recording,
    _rows: &[RunRow],
    _devices: &[DeviceSummary],
    _rules: &Rules,
) -> Vec<Finding> {
    Vec::new()
}
