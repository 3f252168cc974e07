// What the two fake libraries share: the state of the machine that they play, read again from a
// text file whenever that has changed, and a log of the calls.
//
//     gpu0.uuid = GPU-00000000-0000-0000-0000-000000000000
//     gpu0.total_mib = 16384
//     nvmlDeviceGetMemoryInfo_v2 = lost          # that call fails
//     nvmlInit_v2 = hang                         # that call never returns
//     delay_millis = 50                          # every call takes so long
//
// Both libraries take this file in with `mod state`, each for itself.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

/// The machine that is played, as it is at this instant.
#[derive(Clone)]
pub(crate) struct State(Arc<HashMap<String, String>>);

impl State {
    /// Notes the call and reads what the machine is now. `Err`: this call is to fail that way.
    pub(crate) fn at(call: &str) -> Result<Self, String> {
        static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
            std::env::var_os("GPUMEM_FAKE_STATE")
                .unwrap_or_default()
                .into()
        });
        note(call);
        let state = Self::of_file(&PATH);
        if let Some(n_millis) = state.number("delay_millis") {
            thread::sleep(Duration::from_millis(n_millis));
        }
        match state.text(call) {
            None => Ok(state),
            Some("hang") => loop {
                thread::park();
            },
            Some(failure) => Err(failure.to_owned()),
        }
    }

    /// Parsed anew only where the file is another than at the last call: a driver's own calls cost
    /// little, and so must these, or what gpumem adds to a cell could not be measured with them.
    fn of_file(path: &Path) -> Self {
        static LAST: Mutex<Option<((SystemTime, u64), State)>> = Mutex::new(None);
        let stamp = fs::metadata(path).and_then(|it| Ok((it.modified()?, it.len())));
        let stamp = stamp.unwrap_or((SystemTime::UNIX_EPOCH, 0));
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, state)) = last.as_ref()
            && *of == stamp
        {
            return state.clone();
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = |line: &str| {
            let line = line.split('#').next()?;
            let (key, value) = line.split_once('=')?;
            Some((key.trim().to_owned(), value.trim().to_owned()))
        };
        let state = Self(Arc::new(text.lines().filter_map(line).collect()));
        *last = Some((stamp, state.clone()));
        state
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    /// A size in bytes that is written in MiB, or `all`: the figure for "not available".
    pub(crate) fn n_bytes(&self, key: &str) -> u64 {
        size(self.text(key).unwrap_or("0"))
    }
}

/// Bytes of a number of MiB.
pub(crate) fn size(n_mib: &str) -> u64 {
    let n_mib: Result<u64, _> = n_mib.parse();
    n_mib.map_or(u64::MAX, |n| n << 20)
}

/// One line for each call: which thread of which process made it.
fn note(call: &str) {
    static PATH: LazyLock<Option<OsString>> = LazyLock::new(|| std::env::var_os("GPUMEM_FAKE_LOG"));
    let Some(path) = PATH.as_ref() else {
        return;
    };
    let thread = fs::read_to_string("/proc/thread-self/comm").unwrap_or_default();
    let line = format!("{} {} {call}\n", std::process::id(), thread.trim());
    if let Ok(mut log) = OpenOptions::new().create(true).append(true).open(path) {
        let _ = log.write_all(line.as_bytes());
    }
}
