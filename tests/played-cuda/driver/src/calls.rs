//! How every call of the interface is declared, begun and answered.

use std::ffi::{c_int, c_void};

use played_machine::Call;

use crate::code::Code;

/// What a call comes to.
pub(crate) type Answer = Result<(), Code>;

/// A function as `cuGetProcAddress` knows it.
pub(crate) struct EntryPoint {
    pub(crate) symbol: &'static str,
    /// The CUDA version that gave it this form, such as 12000.
    pub(crate) since: c_int,
    pub(crate) address: fn() -> *const c_void,
}

impl EntryPoint {
    /// The symbol without the suffix of its version.
    pub(crate) fn name(&self) -> &str {
        let stem = self.symbol.trim_end_matches(|it: char| it.is_ascii_digit());
        stem.strip_suffix("_v").unwrap_or(self.symbol)
    }
}

/// Begins a call and gives its answer as the interface does.
pub(crate) fn answer(name: &str, body: impl FnOnce(&Call) -> Answer) -> c_int {
    let answer = match Call::begin(name) {
        Err(failure) => Err(Code::named(&failure)),
        Ok(call) => body(&call),
    };
    answer.map_or_else(|code| code.0, |()| 0)
}

/// Exports functions: `[version] symbol(call, arguments) { answer }`.
macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        $([$since:literal])?
        $symbol:ident($call:ident $(, $argument:ident: $type:ty)* $(,)?) $body:block
    )*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            extern "C" fn $symbol($($argument: $type),*) -> std::ffi::c_int {
                $crate::calls::answer(stringify!($symbol), |$call| $body)
            }
        )*

        pub(crate) const ENTRY_POINTS: &[$crate::calls::EntryPoint] = &[
            $($crate::calls::EntryPoint {
                symbol: stringify!($symbol),
                since: 0 $(+ $since)?,
                address: || $symbol as *const std::ffi::c_void,
            },)*
        ];
    };
}
