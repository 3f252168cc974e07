//! Failures that a test orders of the next look's process.
#![expect(unsafe_code, reason = "a process that is meant to fail")]

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{FaultPoint, process};

/// No failure is ordered.
const NONE: u8 = u8::MAX;

static POINT: AtomicU8 = AtomicU8::new(NONE);
static HOW: AtomicU8 = AtomicU8::new(0);

const WAYS: [&str; 5] = ["segfault", "kill", "hang", "garbage", "full"];

const POINTS: [FaultPoint; 10] = [
    FaultPoint::Begun,
    FaultPoint::Isolated,
    FaultPoint::MallocProbed,
    FaultPoint::ReadySent,
    FaultPoint::RootsFound,
    FaultPoint::HeapWalked,
    FaultPoint::AdaptersQueried,
    FaultPoint::AnswerFound,
    FaultPoint::HalfSent,
    FaultPoint::AnswerSent,
];

/// Has the processes of the next look fail at a point, named as in [`FaultPoint`]; `how` is `"segfault"`, `"kill"`,
/// `"hang"`, `"garbage"` or `"full"`.
#[pyfunction]
pub fn fail_look(point: &str, how: &str) -> PyResult<()> {
    let Some(point) = POINTS.iter().find(|it| format!("{it:?}") == point) else {
        let message = format!("{point:?} is none of {POINTS:?}");
        return Err(PyValueError::new_err(message));
    };
    let Some(way) = WAYS.iter().position(|way| *way == how) else {
        return Err(PyValueError::new_err(format!(
            "{how:?} is none of {WAYS:?}"
        )));
    };
    HOW.store(way as u8, Ordering::Relaxed);
    POINT.store(*point as u8, Ordering::Relaxed);
    Ok(())
}

/// What is ordered is ordered for one look: it is over when this goes.
pub(super) struct Ordered;

pub(super) fn for_one_look() -> Ordered {
    Ordered
}

impl Drop for Ordered {
    fn drop(&mut self) {
        POINT.store(NONE, Ordering::Relaxed);
    }
}

/// The line of this process, if it is a child: what it says instead of its answer, it says there.
static LINE: AtomicI32 = AtomicI32::new(-1);

/// In the child: from here on failures that are ordered happen.
pub(super) fn begin(line: RawFd) {
    LINE.store(line, Ordering::Relaxed);
}

/// Fails here, if that is ordered and this is a child.
pub fn at(point: FaultPoint) {
    let line = LINE.load(Ordering::Relaxed);
    if line < 0 || POINT.load(Ordering::Relaxed) != point as u8 {
        return;
    }
    let garbage = [0xA5_u8; 4096];
    let send = || {
        // SAFETY: the bytes are borrowed for the call; who is gone raises no signal.
        let n = unsafe {
            libc::send(
                line,
                garbage.as_ptr().cast(),
                garbage.len(),
                libc::MSG_NOSIGNAL,
            )
        };
        n > 0
    };
    match WAYS[usize::from(HOW.load(Ordering::Relaxed))] {
        "segfault" => {
            // SAFETY: none: this is what is ordered.
            unsafe { std::ptr::null_mut::<u8>().write_volatile(1) }
        }
        // SAFETY: the process kills itself.
        "kill" => unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
        },
        "garbage" => {
            send();
            process::leave();
        }
        "full" => while send() {},
        _ => {}
    }
    loop {
        // SAFETY: it waits for a signal, and all are blocked.
        unsafe { libc::pause() };
    }
}

static PAUSE_MICROS: AtomicU32 = AtomicU32::new(0);

/// Lets so much time pass whenever a copy is made, while memory is left out of it.
#[pyfunction]
pub fn slow_copies(microseconds: u32) {
    PAUSE_MICROS.store(microseconds, Ordering::Relaxed);
}

pub(super) fn pause_in_copy() {
    // SAFETY: it only waits.
    unsafe { libc::usleep(PAUSE_MICROS.load(Ordering::Relaxed)) };
}

/// Forks as C code does, over and over without the GIL; each copy reads a byte of every page of this
/// memory. Returns how many did so to the end.
#[pyfunction]
pub fn fork_and_read(py: Python<'_>, address: usize, n_bytes: usize, times: u32) -> u32 {
    let fork = |_| {
        // SAFETY: the copy reads what this process has, and ends without running anything else.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            for offset in (0..n_bytes).step_by(4096) {
                // SAFETY: the test that calls this has memory of that address and size.
                unsafe { ((address + offset) as *const u8).read_volatile() };
            }
            process::leave();
        }
        let mut status = 1;
        // SAFETY: a child of this thread that only this code waits for.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        u32::from(status == 0)
    };
    py.detach(|| (0..times).map(fork).sum())
}
