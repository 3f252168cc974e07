//! How calls of the runtime are declared and answered.

use std::ffi::{c_char, c_int};

use played_machine::{Call, read_text};

use crate::error::{self, Error};

/// What a call comes to.
pub(crate) type Answer = Result<(), Error>;

/// Gives the answer of a call, and keeps its failure as the thread's last error.
pub(crate) fn answer(body: impl FnOnce() -> Answer) -> c_int {
    body().map_or_else(error::note, |()| 0)
}

/// Exports functions of the runtime: `symbol(arguments) { answer }`.
macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        $symbol:ident($($argument:ident: $type:ty),* $(,)?) $body:block
    )*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            extern "C" fn $symbol($($argument: $type),*) -> std::ffi::c_int {
                $crate::calls::answer(|| $body)
            }
        )*
    };
}

/// Called by the stubs of functions of the runtime: logs which function is missing.
#[unsafe(no_mangle)]
extern "C" fn played_missing(name: *const c_char) -> c_int {
    let name = read_text(name).unwrap_or_default();
    let _ = Call::begin(&format!("missing {name}"));
    error::note(Error::NOT_SUPPORTED)
}
