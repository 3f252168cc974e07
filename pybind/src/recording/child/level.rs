//! How much memory a child holds.

use gpumem_model::units::Bytes;

/// What a child holds at an instant.
pub(super) struct MemoryLevels {
    /// What it shares with no other process.
    pub(super) own: Bytes,
    /// What it allocated and did not free: memory of its parent that it copies counts before and after.
    /// `None` if the system does not report it.
    pub(super) allocated: Option<Bytes>,
}

#[cfg(target_os = "linux")]
pub(super) use linux::LevelReader;
#[cfg(not(target_os = "linux"))]
pub(super) use portable::LevelReader;

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::time::{Duration, Instant};

    use super::{Bytes, MemoryLevels};
    use gpumem_base::cpu_time::Expense;
    use gpumem_base::pages;
    use gpumem_machine::processes::children::own_bytes;

    /// Minimum time between two readings of shares, in multiples of what one takes: 1 % of a core.
    const REST_PER_ROLLUP: u32 = 100;
    const SHORTEST_REST: Duration = Duration::from_millis(20);

    /// Reads this process's level.
    ///
    /// What is shared takes the kernel a walk over all pages. Between two walks only the number of
    /// anonymous pages is read, which tells what was allocated and freed since, but not what was copied:
    /// a page of the parent is one before and after.
    pub(in crate::recording::child) struct LevelReader {
        rollup: File,
        statm: File,
        buffer: Vec<u8>,
        /// The level and the anonymous memory at the last walk.
        known: Option<(u64, u64)>,
        next_walk: Instant,
        expense: Expense,
    }

    impl LevelReader {
        pub(in crate::recording::child) fn open() -> Option<Self> {
            Some(Self {
                rollup: File::open("/proc/self/smaps_rollup").ok()?,
                statm: File::open("/proc/self/statm").ok()?,
                buffer: vec![0; 1 << 12],
                known: None,
                next_walk: Instant::now(),
                expense: Expense::new(1),
            })
        }

        /// What it has written and no other process maps. Pages that it shares with its parent since
        /// the fork count there, and in the child once it has written them; so does shared memory once
        /// it is the last to map it.
        pub(in crate::recording::child) fn read(&mut self) -> Option<MemoryLevels> {
            let now = self.anonymous()?;
            let own = match self.known {
                Some((own, then)) if Instant::now() < self.next_walk => {
                    (own + now).saturating_sub(then)
                }
                _ => {
                    let own = self.walk()?;
                    self.known = Some((own, now));
                    self.expense.note_turn();
                    let rest = self.expense.per_turn() * REST_PER_ROLLUP;
                    self.next_walk = Instant::now() + rest.max(SHORTEST_REST);
                    own
                }
            };
            Some(MemoryLevels {
                own: Bytes::new(own),
                allocated: Some(Bytes::new(now)),
            })
        }

        fn walk(&mut self) -> Option<u64> {
            let text = text(&self.rollup, &mut self.buffer)?;
            Some(own_bytes(text)?.get())
        }

        fn anonymous(&mut self) -> Option<u64> {
            let text = text(&self.statm, &mut self.buffer)?;
            Some(pages::anonymous(text)?.get())
        }
    }

    fn text<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a str> {
        let n_read = file.read_at(buffer, 0).ok()?;
        std::str::from_utf8(&buffer[..n_read]).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use super::{Bytes, MemoryLevels};

    /// Reads this process's level.
    pub(in crate::recording::child) struct LevelReader;

    impl LevelReader {
        #[expect(clippy::unnecessary_wraps, reason = "as where a file may be missing")]
        pub(in crate::recording::child) fn open() -> Option<Self> {
            Some(Self)
        }

        /// Its resident memory: shares are unknown here.
        #[expect(clippy::unused_self, reason = "as where a file is kept open")]
        pub(in crate::recording::child) fn read(&mut self) -> Option<MemoryLevels> {
            let stats = memory_stats::memory_stats()?;
            Some(MemoryLevels {
                own: Bytes::new(stats.physical_mem as u64),
                allocated: None,
            })
        }
    }
}
