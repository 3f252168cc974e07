//! Events, with the time at which they were recorded.

use std::ffi::c_uint;
use std::time::Instant;

use played_machine::put;

use crate::calls::Answer;
use crate::code::Code;
use crate::handles::Handle;
use crate::process::process;

/// An event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    recorded: Option<Instant>,
    /// The capture of the stream that it was recorded in.
    pub(crate) capture: Option<Handle>,
}

calls! {
    cuEventCreate(_call, event: *mut Handle, _flags: c_uint) {
        let mut process = process()?;
        process.context(0)?;
        Ok(put(event, process.events.add(Event::default()))?)
    }

    cuEventDestroy_v2(_call, event: Handle) {
        process()?.events.remove(event).map(|_| ())
    }

    cuEventRecord(_call, event: Handle, stream: Handle) {
        record(event, stream)
    }

    cuEventRecordWithFlags(_call, event: Handle, stream: Handle, _flags: c_uint) {
        record(event, stream)
    }

    cuEventQuery(_call, event: Handle) {
        process()?.events.get(event).map(|_| ())
    }

    cuEventSynchronize(_call, event: Handle) {
        process()?.events.get(event).map(|_| ())
    }

    cuEventElapsedTime(_call, millis: *mut f32, start: Handle, end: Handle) {
        let process = process()?;
        let at = |event| process.events.get(event)?.recorded.ok_or(Code::INVALID_HANDLE);
        let elapsed = at(end)?.duration_since(at(start)?);
        Ok(put(millis, elapsed.as_secs_f32() * 1e3)?)
    }
}

fn record(event: Handle, stream: Handle) -> Answer {
    let mut process = process()?;
    let capture = process.stream(stream)?.capture;
    let event = process.events.get_mut(event)?;
    (event.recorded, event.capture) = (Some(Instant::now()), capture);
    Ok(())
}
