//! Calls that torch looks up and that are not played: they are there and say so.

use crate::code::Code;

macro_rules! unsupported {
    ($($name:ident $symbol:ident,)*) => {
        calls! {
            $([$name] $symbol(_call) { Err(Code::NOT_SUPPORTED) })*
        }
    };
}

// Shared handles, memory of several cards at once, parts of a card's multiprocessors,
// linking code, tensor maps.
unsupported! {
    cuMemExportToShareableHandle cuMemExportToShareableHandle,
    cuMemImportFromShareableHandle cuMemImportFromShareableHandle,
    cuMulticastCreate cuMulticastCreate,
    cuMulticastAddDevice cuMulticastAddDevice,
    cuMulticastBindMem cuMulticastBindMem,
    cuMulticastUnbind cuMulticastUnbind,
    cuDeviceGetDevResource cuDeviceGetDevResource,
    cuDevSmResourceSplitByCount cuDevSmResourceSplitByCount,
    cuDevResourceGenerateDesc cuDevResourceGenerateDesc,
    cuGreenCtxCreate cuGreenCtxCreate,
    cuGreenCtxDestroy cuGreenCtxDestroy,
    cuGreenCtxStreamCreate cuGreenCtxStreamCreate,
    cuCtxFromGreenCtx cuCtxFromGreenCtx,
    cuLogsRegisterCallback cuLogsRegisterCallback,
    cuLogsUnregisterCallback cuLogsUnregisterCallback,
    cuLinkCreate cuLinkCreate_v2,
    cuLinkAddData cuLinkAddData_v2,
    cuLinkComplete cuLinkComplete,
    cuTensorMapEncodeTiled cuTensorMapEncodeTiled,
    cuIpcGetMemHandle cuIpcGetMemHandle,
    cuIpcOpenMemHandle cuIpcOpenMemHandle_v2,
    cuIpcCloseMemHandle cuIpcCloseMemHandle,
    cuIpcGetEventHandle cuIpcGetEventHandle,
    cuIpcOpenEventHandle cuIpcOpenEventHandle,
}
