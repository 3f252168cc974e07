//! The text file that describes the machine.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The variable that names the file.
const VARIABLE: &str = "PLAYED_CUDA_STATE";

/// When the file was changed, its length and its number: together another for each content.
type Stamp = (i64, i64, u64, u64);

/// What the file says at an instant: lines of `key = value`, and comments after `#`.
#[derive(Debug, Clone, Default)]
pub struct State(Arc<HashMap<String, String>>);

impl State {
    /// What the file says now. It is parsed again only if it has changed: a
    /// driver's calls are cheap, or what gpumem adds to a cell could not be measured.
    pub fn now() -> Self {
        static LAST: Mutex<Option<(Stamp, State)>> = Mutex::new(None);
        let Some(path) = Self::path() else {
            return Self::default();
        };
        let stamp = fs::metadata(path).map_or((0, 0, 0, 0), |it| {
            (it.mtime(), it.mtime_nsec(), it.len(), it.ino())
        });
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, state)) = last.as_ref()
            && *of == stamp
        {
            return state.clone();
        }
        let state = Self::of_text(&fs::read_to_string(path).unwrap_or_default());
        *last = Some((stamp, state.clone()));
        state
    }

    /// The file's path; `None` if no file describes the machine.
    pub fn path() -> Option<&'static Path> {
        static PATH: LazyLock<Option<PathBuf>> =
            LazyLock::new(|| std::env::var_os(VARIABLE).map(PathBuf::from));
        PATH.as_deref()
    }

    /// What a text says.
    pub fn of_text(text: &str) -> Self {
        let line = |line: &str| {
            let line = line.split('#').next()?;
            let (key, value) = line.split_once('=')?;
            Some((key.trim().to_owned(), value.trim().to_owned()))
        };
        Self(Arc::new(text.lines().filter_map(line).collect()))
    }

    /// The value of a key.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The value of a key, if it is a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    /// Bytes, written as a number of MiB, or as `all`: the figure for "not available".
    pub fn n_bytes(&self, key: &str) -> Option<u64> {
        self.text(key).map(size)
    }
}

/// Bytes of a number of MiB.
pub(crate) fn size(n_mib: &str) -> u64 {
    let n_mib: Result<u64, _> = n_mib.parse();
    n_mib.map_or(u64::MAX, |n| n << 20)
}
