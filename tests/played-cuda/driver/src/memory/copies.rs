//! Copies. `copies = none` drops what is written to a device: all that is read back is 0.

use std::ffi::c_void;

use played_machine::Call;

use crate::calls::Answer;
use crate::graphs::NodeKind;
use crate::handles::Handle;
use crate::process::{initialised, process};
use crate::streams::enqueue;

/// Whether an address is a device's.
pub(super) fn is_on_device(address: usize) -> bool {
    let area = process().ok().and_then(|it| it.areas.at(address));
    area.is_some_and(|area| !area.kind.is_on_host())
}

pub(super) fn are_dropped(call: &Call) -> bool {
    call.state.text("copies") == Some("none")
}

fn copy(call: &Call, to: usize, from: usize, n_bytes: usize) -> Answer {
    initialised()?;
    let (to_pointer, from_pointer) = (to as *mut u8, from as *const c_void);
    match are_dropped(call) {
        _ if n_bytes == 0 => {}
        true if is_on_device(to) => {}
        true if is_on_device(from) => {
            // SAFETY: the caller gives `n_bytes`, as the interface demands.
            unsafe { to_pointer.write_bytes(0, n_bytes) };
        }
        _ => {
            // SAFETY: the caller gives `n_bytes` at both, as the interface demands.
            unsafe { to_pointer.copy_from(from_pointer.cast(), n_bytes) };
        }
    }
    Ok(())
}

macro_rules! copies {
    ($($symbol:ident $asynchronous_symbol:ident,)*) => {
        calls! {
            $(
                $symbol(call, to: usize, from: usize, n_bytes: usize) {
                    copy(call, to, from, n_bytes)
                }

                $asynchronous_symbol(call, to: usize, from: usize, n_bytes: usize, stream: Handle) {
                    enqueue(stream, NodeKind::COPY, || copy(call, to, from, n_bytes))
                }
            )*

            cuMemcpyPeer(call, to: usize, _of: Handle, from: usize, _by: Handle, n_bytes: usize) {
                copy(call, to, from, n_bytes)
            }

            cuMemcpyPeerAsync(
                call, to: usize, _of: Handle, from: usize, _by: Handle, n_bytes: usize, stream: Handle,
            ) {
                enqueue(stream, NodeKind::COPY, || copy(call, to, from, n_bytes))
            }
        }
    };
}

copies! {
    cuMemcpy cuMemcpyAsync,
    cuMemcpyHtoD_v2 cuMemcpyHtoDAsync_v2,
    cuMemcpyDtoH_v2 cuMemcpyDtoHAsync_v2,
    cuMemcpyDtoD_v2 cuMemcpyDtoDAsync_v2,
}
