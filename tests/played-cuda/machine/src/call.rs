//! A call to a played library: noted, delayed, failed on purpose, or answered.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use crate::State;

/// The variable that names the log of calls.
const LOG: &str = "PLAYED_CUDA_LOG";

/// The name of the failure that a call is to have: an error's name or its number.
pub type Failure = String;

/// A call that is to be answered.
#[derive(Debug, Clone)]
pub struct Call {
    /// The machine at this instant.
    pub state: State,
    wrong_size: Option<u64>,
}

impl Call {
    /// Notes a call and waits as long as it is to take. `Err`: it is to fail that way.
    ///
    /// `NAME = hang` never returns, `NAME = wait 50` takes 50 ms, `NAME = size 7`
    /// makes 7 of every size that the call returns, anything else is a failure.
    pub fn begin(name: &str) -> Result<Self, Failure> {
        note(name);
        let state = State::now();
        if let Some(n_millis) = state.number("delay_millis") {
            wait(n_millis);
        }
        let fault = state.text(name).filter(|_| is_met_here(&state));
        let (word, figure) = fault.map_or((None, None), |fault| {
            let mut words = fault.split_ascii_whitespace();
            (words.next(), words.next().and_then(|it| it.parse().ok()))
        });
        let mut wrong_size = None;
        match (word, figure) {
            (Some("hang"), _) => loop {
                thread::park();
            },
            (Some("wait"), n_millis) => wait(n_millis.unwrap_or_default()),
            (Some("size"), n_bytes) => wrong_size = Some(n_bytes.unwrap_or_default()),
            (Some(failure), _) => return Err(failure.to_owned()),
            (None, _) => {}
        }
        Ok(Self { state, wrong_size })
    }

    /// A size in bytes that the call returns, which may have to be wrong.
    pub fn size(&self, n_bytes: u64) -> u64 {
        self.wrong_size.unwrap_or(n_bytes)
    }
}

fn wait(n_millis: u64) {
    thread::sleep(Duration::from_millis(n_millis));
}

/// Whether faults are for this thread: `faults.thread` is the start of a thread's name.
fn is_met_here(state: &State) -> bool {
    state
        .text("faults.thread")
        .is_none_or(|start| own_name().starts_with(start))
}

/// The kernel's name of this thread, in one word.
fn own_name() -> String {
    let name = fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
    name.trim().replace(' ', "_")
}

/// One line for each call: which thread of which process made it.
fn note(name: &str) {
    static FILE: LazyLock<Option<File>> = LazyLock::new(|| {
        let path = std::env::var_os(LOG)?;
        OpenOptions::new().create(true).append(true).open(path).ok()
    });
    if let Some(mut log) = FILE.as_ref() {
        let line = format!("{} {} {name}\n", std::process::id(), own_name());
        let _ = log.write_all(line.as_bytes());
    }
}
