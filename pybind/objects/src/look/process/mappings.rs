//! The mappings of this process, as the kernel lists them.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gpumem_process::mappings::{Mapping, read};

/// Copying this many takes 50 ms: 2 to 4 µs each on a virtual machine with Linux 6.18.
const MANY: usize = 12_000;
/// Minimum time between two counts.
const COUNTED_FOR: Duration = Duration::from_secs(10);

/// A copy would take long for their number alone. False where they cannot be counted.
pub(in crate::look) fn are_many() -> bool {
    static COUNTED: Mutex<Option<(Instant, bool)>> = Mutex::new(None);
    // In a forked process the lock may never be released.
    let Ok(mut counted) = COUNTED.try_lock() else {
        return false;
    };
    let known = counted.filter(|(at, _)| at.elapsed() < COUNTED_FOR);
    let (at, are_many) = known.unwrap_or_else(|| {
        let list = File::open("/proc/self/maps").map(BufReader::new);
        let n = list.map(|list| {
            let lines = list.split(b'\n').map_while(Result::ok);
            lines.take(MANY).count()
        });
        (Instant::now(), n.is_ok_and(|n| n >= MANY))
    });
    *counted = Some((at, are_many));
    are_many
}

/// Every mapping, quickly: a microsecond for each.
pub(super) fn all() -> io::Result<Vec<Mapping>> {
    read(BufReader::new(File::open("/proc/self/maps")?))
}

/// Every mapping, and whether it was referenced: the kernel visits every page.
pub(super) fn with_references() -> io::Result<Vec<Mapping>> {
    read(BufReader::new(File::open("/proc/self/smaps")?))
}
