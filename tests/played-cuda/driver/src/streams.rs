//! Streams: nothing is asynchronous, so each is always idle.

use std::ffi::{c_int, c_uint, c_void};

use played_machine::put;

use crate::calls::Answer;
use crate::code::Code;
use crate::graphs::NodeKind;
use crate::handles::{Handle, fresh};
use crate::process::{Process, process};

/// A stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// CUDA's number of its device.
    ordinal: c_int,
    flags: c_uint,
    priority: c_int,
    /// The capture that takes its work.
    pub(crate) capture: Option<Handle>,
}

/// Up to this one nobody makes them: 0 and 1 are a device's stream of all threads, 2 a thread's own.
const PER_THREAD: Handle = 2;
/// Below the handles of streams that somebody made.
const FIRST_OF_DEVICES: Handle = 0x100;

impl Process {
    /// The handle of a stream; default streams differ by device.
    fn stream_handle(&self, stream: Handle) -> Handle {
        if stream > PER_THREAD {
            return stream;
        }
        let ordinal = self.context(0).map_or(0, |context| context.ordinal) as usize;
        let is_per_thread = usize::from(stream == PER_THREAD);
        FIRST_OF_DEVICES + 2 * ordinal + is_per_thread
    }

    /// A stream, made now if nobody makes it.
    pub(crate) fn stream(&mut self, stream: Handle) -> Result<&mut Stream, Code> {
        let handle = self.stream_handle(stream);
        if stream <= PER_THREAD && self.streams.get(handle).is_err() {
            let ordinal = self.context(0).map_or(0, |context| context.ordinal);
            self.streams.put(
                handle,
                Stream {
                    ordinal,
                    ..Stream::default()
                },
            );
        }
        self.streams.get_mut(handle)
    }

    /// Gives a stream work. `true`: a capture has taken it, and it is not to be done.
    pub(crate) fn enqueue(&mut self, stream: Handle, work: NodeKind) -> Result<bool, Code> {
        let Some(capture) = self.stream(stream)?.capture else {
            return Ok(false);
        };
        self.add_captured(capture, work)?;
        Ok(true)
    }
}

/// Gives a stream work, and does it unless a capture has taken it.
pub(crate) fn enqueue(stream: Handle, work: NodeKind, action: impl FnOnce() -> Answer) -> Answer {
    // The action may be the caller's: nothing is locked while it runs.
    let is_captured = process()?.enqueue(stream, work)?;
    if is_captured { Ok(()) } else { action() }
}

calls! {
    cuStreamCreate(_call, stream: *mut Handle, flags: c_uint) {
        create(stream, flags, 0)
    }

    cuStreamCreateWithPriority(_call, stream: *mut Handle, flags: c_uint, priority: c_int) {
        create(stream, flags, priority)
    }

    cuStreamDestroy_v2(_call, stream: Handle) {
        process()?.streams.remove(stream).map(|_| ())
    }

    cuStreamQuery(_call, stream: Handle) {
        process()?.stream(stream).map(|_| ())
    }

    cuStreamSynchronize(_call, stream: Handle) {
        process()?.stream(stream).map(|_| ())
    }

    cuStreamGetPriority(_call, stream: Handle, priority: *mut c_int) {
        Ok(put(priority, process()?.stream(stream)?.priority)?)
    }

    cuStreamGetFlags(_call, stream: Handle, flags: *mut c_uint) {
        Ok(put(flags, process()?.stream(stream)?.flags)?)
    }

    cuStreamGetId(_call, stream: Handle, id: *mut u64) {
        Ok(put(id, process()?.stream_handle(stream) as u64)?)
    }

    cuStreamGetDevice(_call, stream: Handle, device: *mut c_int) {
        Ok(put(device, process()?.stream(stream)?.ordinal)?)
    }

    [9020]
    cuStreamGetCtx(_call, stream: Handle, context: *mut Handle) {
        context_of(stream, context)
    }

    [12050]
    cuStreamGetCtx_v2(_call, stream: Handle, context: *mut Handle, green: *mut Handle) {
        put(green, 0)?;
        context_of(stream, context)
    }

    /// If the event belongs to a capture, the stream joins it.
    cuStreamWaitEvent(_call, stream: Handle, event: Handle, _flags: c_uint) {
        let mut process = process()?;
        let capture = process.events.get(event)?.capture;
        let stream = process.stream(stream)?;
        stream.capture = capture.or(stream.capture);
        Ok(())
    }

    cuStreamAddCallback(
        _call,
        stream: Handle,
        callback: extern "C" fn(Handle, c_int, *mut c_void),
        argument: *mut c_void,
        _flags: c_uint,
    ) {
        enqueue(stream, NodeKind::HOST, || {
            callback(stream, 0, argument);
            Ok(())
        })
    }

    cuStreamAttachMemAsync(_call, stream: Handle, _pointer: usize, _n_bytes: usize, _flags: c_uint) {
        process()?.stream(stream).map(|_| ())
    }

    cuStreamWriteValue32_v2(_call, stream: Handle, place: *mut u32, value: u32, _flags: c_uint) {
        enqueue(stream, NodeKind::BATCH, || Ok(put(place, value)?))
    }

    cuStreamWriteValue64_v2(_call, stream: Handle, place: *mut u64, value: u64, _flags: c_uint) {
        enqueue(stream, NodeKind::BATCH, || Ok(put(place, value)?))
    }

    cuStreamWaitValue32_v2(_call, stream: Handle, _place: usize, _value: u32, _flags: c_uint) {
        process()?.stream(stream).map(|_| ())
    }
}

fn create(place: *mut Handle, flags: c_uint, priority: c_int) -> Answer {
    let mut process = process()?;
    let ordinal = process.context(0)?.ordinal;
    let handle = fresh();
    process.streams.put(
        handle,
        Stream {
            ordinal,
            flags,
            priority,
            capture: None,
        },
    );
    Ok(put(place, handle)?)
}

fn context_of(stream: Handle, context: *mut Handle) -> Answer {
    let mut process = process()?;
    let ordinal = process.stream(stream)?.ordinal;
    let primary = process.contexts.primary(ordinal);
    Ok(put(context, primary.ok_or(Code::INVALID_CONTEXT)?)?)
}
