//! What each process has of each device, in a file that all of them map.
//!
//! A process that ended, however it did, has nothing any more.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::{Device, MAX_GPUS, MAX_PARTS, State};

const N_PLACES: usize = MAX_GPUS * (MAX_PARTS + 1);
const N_ROWS: usize = 128;

/// A device's column.
#[derive(Debug, Clone, Copy)]
pub struct Place(usize);

impl Place {
    pub(crate) fn new(device: Device) -> Self {
        let part = device.part.map_or(0, |part| part + 1);
        Self(device.gpu * (MAX_PARTS + 1) + part)
    }
}

/// What one process has. The pages of a file that nobody wrote to are zeros: a free row.
#[repr(C)]
struct Row {
    pid: AtomicU32,
    used: [AtomicU64; N_PLACES],
}

/// What all processes have.
pub struct Ledger {
    /// Locked while memory is taken; `None` if the ledger is this process's own.
    file: Option<File>,
    rows: &'static [Row],
}

/// The ledger of the machine that the state file describes.
pub fn of_machine() -> &'static Ledger {
    static LEDGER: LazyLock<Ledger> = LazyLock::new(|| {
        let shared = State::path().and_then(|path| Ledger::shared(&path.with_extension("ledger")));
        shared.unwrap_or_else(Ledger::own)
    });
    &LEDGER
}

impl Ledger {
    fn shared(path: &Path) -> Option<Self> {
        let mut open = OpenOptions::new();
        let file = open.read(true).write(true).create(true).truncate(false);
        let file = file.open(path).ok()?;
        file.set_len(size_of::<[Row; N_ROWS]>() as u64).ok()?;
        let rows = map(Some(&file))?;
        let file = Some(file);
        Some(Self { file, rows })
    }

    fn own() -> Self {
        let rows = map(None).unwrap_or(&[]);
        Self { file: None, rows }
    }

    /// Bytes that all processes have of a device.
    pub fn used(&self, place: Place) -> u64 {
        self.processes(place).map(|(_, n_bytes)| n_bytes).sum()
    }

    /// The processes that have something of a device, and how many bytes.
    pub fn processes(&self, place: Place) -> impl Iterator<Item = (u32, u64)> {
        let living = self.rows.iter().filter_map(move |row| {
            let pid = row.pid.load(Ordering::SeqCst);
            let n_bytes = row.used[place.0].load(Ordering::SeqCst);
            (pid != 0 && n_bytes != 0).then_some((pid, n_bytes))
        });
        living.filter(|(pid, _)| is_alive(*pid))
    }

    pub(crate) fn take(&self, place: Place, n_bytes: u64, limit: u64) -> bool {
        self.locked(|| {
            let used = self.used(place);
            let fits = used.checked_add(n_bytes).is_some_and(|sum| sum <= limit);
            let row = if fits { self.own_row() } else { None };
            if let Some(row) = row {
                row.used[place.0].fetch_add(n_bytes, Ordering::SeqCst);
            }
            row.is_some()
        })
    }

    pub(crate) fn give(&self, place: Place, n_bytes: u64) {
        self.locked(|| {
            if let Some(row) = self.own_row() {
                row.used[place.0].fetch_sub(n_bytes, Ordering::SeqCst);
            }
        });
    }

    /// This process's row, which may have been that of one that ended.
    fn own_row(&self) -> Option<&Row> {
        let own = std::process::id();
        let is_own = |row: &&Row| row.pid.load(Ordering::SeqCst) == own;
        let is_free = |row: &&Row| {
            let pid = row.pid.load(Ordering::SeqCst);
            pid == 0 || !is_alive(pid)
        };
        if let Some(row) = self.rows.iter().find(is_own) {
            return Some(row);
        }
        let row = self.rows.iter().find(is_free)?;
        for used in &row.used {
            used.store(0, Ordering::SeqCst);
        }
        row.pid.store(own, Ordering::SeqCst);
        Some(row)
    }

    fn locked<T>(&self, action: impl FnOnce() -> T) -> T {
        let lock = |operation| {
            if let Some(file) = &self.file {
                // SAFETY: the file is open as long as this is.
                unsafe { libc::flock(file.as_raw_fd(), operation) };
            }
        };
        lock(libc::LOCK_EX);
        let done = action();
        lock(libc::LOCK_UN);
        done
    }
}

fn map(file: Option<&File>) -> Option<&'static [Row]> {
    let flags = match file {
        Some(_) => libc::MAP_SHARED,
        None => libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let fd = file.map_or(-1, AsRawFd::as_raw_fd);
    let n_bytes = size_of::<[Row; N_ROWS]>();
    // SAFETY: a new mapping, of a file of that length or of none.
    let place = unsafe { libc::mmap(ptr::null_mut(), n_bytes, access, flags, fd, 0) };
    if place == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: it is never unmapped, and rows are atomics for which any bytes are valid.
    Some(unsafe { std::slice::from_raw_parts(place.cast(), N_ROWS) })
}

/// Whether a process runs: one that has ended and waits for its parent does not.
fn is_alive(pid: u32) -> bool {
    if pid == std::process::id() {
        return true;
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // The state follows the name, which may itself hold parentheses.
    status.is_ok_and(|it| {
        it.rsplit_once(") ")
            .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place(3);

    #[test]
    fn what_was_taken_is_given_back_and_limited() {
        let ledger = Ledger::own();
        assert!(ledger.take(PLACE, 60, 100));
        assert!(!ledger.take(PLACE, 41, 100));
        assert!(ledger.take(PLACE, 40, 100));
        ledger.give(PLACE, 60);
        assert_eq!(ledger.used(PLACE), 40);
        assert_eq!(ledger.used(Place(4)), 0);
    }

    #[test]
    fn a_process_that_ended_has_nothing_though_not_waited_for() {
        let ledger = Ledger::own();
        let mut sleeper = std::process::Command::new("sleep");
        let mut child = sleeper.arg("600").spawn().expect("a process");
        ledger.rows[0].pid.store(child.id(), Ordering::SeqCst);
        ledger.rows[0].used[PLACE.0].store(7, Ordering::SeqCst);
        let holders: Vec<_> = ledger.processes(PLACE).collect();
        assert_eq!(holders, [(child.id(), 7)]);
        assert!(!ledger.take(PLACE, 94, 100));

        child.kill().expect("it runs");
        while is_alive(child.id()) {
            std::thread::yield_now();
        }
        assert_eq!(ledger.used(PLACE), 0);
        assert!(ledger.take(PLACE, 94, 100));
        child.wait().expect("it has ended");
    }
}
