//! Filling memory with a value.

use played_machine::Call;

use super::copies::{are_dropped, is_on_device};
use super::mapping::{PAGE, clear_pages};
use crate::calls::Answer;
use crate::graphs::NodeKind;
use crate::handles::Handle;
use crate::process::initialised;
use crate::streams::enqueue;

fn fill<T: Copy + Default + PartialEq>(
    call: &Call,
    start: usize,
    value: T,
    n_values: usize,
) -> Answer {
    initialised()?;
    if are_dropped(call) && is_on_device(start) {
        return Ok(());
    }
    let n_bytes = n_values * size_of::<T>();
    if value == T::default() && n_bytes >= 2 * PAGE && is_on_device(start) {
        clear(start, n_bytes);
        return Ok(());
    }
    let place = start as *mut T;
    for idx in 0..n_values {
        // SAFETY: the caller gives room for all values, as the interface demands.
        unsafe { place.add(idx).write_unaligned(value) };
    }
    Ok(())
}

/// Zeros, with no page touched that lies inside.
fn clear(start: usize, n_bytes: usize) {
    let end = start + n_bytes;
    let (first, last) = (start.next_multiple_of(PAGE), end / PAGE * PAGE);
    clear_pages(first, last - first);
    for (from, to) in [(start, first), (last, end)] {
        // SAFETY: a part of what the caller gives.
        unsafe { (from as *mut u8).write_bytes(0, to - from) };
    }
}

macro_rules! fills {
    ($($symbol:ident $asynchronous_symbol:ident $type:ty,)*) => {
        calls! {
            $(
                $symbol(call, start: usize, value: $type, n_values: usize) {
                    fill(call, start, value, n_values)
                }

                $asynchronous_symbol(call, start: usize, value: $type, n_values: usize, stream: Handle) {
                    enqueue(stream, NodeKind::FILL, || fill(call, start, value, n_values))
                }
            )*
        }
    };
}

fills! {
    cuMemsetD8_v2 cuMemsetD8Async u8,
    cuMemsetD16_v2 cuMemsetD16Async u16,
    cuMemsetD32_v2 cuMemsetD32Async u32,
}
