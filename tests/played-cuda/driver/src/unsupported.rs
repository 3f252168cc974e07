//! Calls that torch looks up and that are not played: they are there and say so.

use crate::code::Code;

macro_rules! unsupported {
    ($($symbol:ident,)*) => {
        calls! {
            $($symbol(_call) { Err(Code::NOT_SUPPORTED) })*
        }
    };
}

// Shared handles, memory of several cards at once, parts of a card's multiprocessors,
// linking code, tensor maps.
unsupported! {
    cuMemExportToShareableHandle,
    cuMemImportFromShareableHandle,
    cuMulticastCreate,
    cuMulticastAddDevice,
    cuMulticastBindMem,
    cuMulticastUnbind,
    cuDeviceGetDevResource,
    cuDevSmResourceSplitByCount,
    cuDevResourceGenerateDesc,
    cuGreenCtxCreate,
    cuGreenCtxDestroy,
    cuGreenCtxStreamCreate,
    cuCtxFromGreenCtx,
    cuLogsRegisterCallback,
    cuLogsUnregisterCallback,
    cuLinkCreate_v2,
    cuLinkAddData_v2,
    cuLinkComplete,
    cuTensorMapEncodeTiled,
    cuIpcGetMemHandle,
    cuIpcOpenMemHandle_v2,
    cuIpcCloseMemHandle,
    cuIpcGetEventHandle,
    cuIpcOpenEventHandle,
}
