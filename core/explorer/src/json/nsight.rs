//! An export of Nsight Systems as JSON.

use serde::Serialize;

use crate::json::level_log::JsonLog;
use gpumem_readers::nsight::NsightExport;

/// An export as JSON: a log of levels with `failed_calls` and `ranges`. Fields named `*_bytes` are bytes,
/// `*_nanos` nanoseconds since the capture's start; unknown is `null`.
pub fn nsight_json(export: &NsightExport) -> String {
    let json = JsonExport {
        log: JsonLog(&export.log),
        export,
    };
    serde_json::to_string(&json).expect("an export holds strings and numbers only")
}

#[derive(Serialize)]
struct JsonExport<'a> {
    #[serde(flatten)]
    log: JsonLog<'a>,
    #[serde(flatten)]
    export: &'a NsightExport,
}
