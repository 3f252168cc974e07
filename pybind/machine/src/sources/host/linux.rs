//! `/proc` and cgroups, through files that stay open: a reading is one `pread`
//! per figure.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use gpumem_model::units::Bytes;

use super::Freshness;
use super::malloc::{self, Malloc};
use gpumem_base::{own_memory, pages};

/// Why a figure could not be read, in words.
pub(super) struct Failure(pub(super) String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// The machine, or the container that limits this process.
pub(super) struct System {
    statm: KernelFile,
    malloc: Malloc,
    meminfo: KernelFile,
    total: Option<Bytes>,
    /// The tightest control group above this process, where it is tighter than the machine.
    group: Option<Cgroup>,
}

/// A control group whose memory is limited.
struct Cgroup {
    limit: Bytes,
    usage: KernelFile,
    stat: KernelFile,
    /// Version 1 counts a group without its children under that name, and all of it under this.
    inactive_file: &'static str,
}

impl System {
    pub(super) fn new() -> Self {
        let mut meminfo = KernelFile::open("/proc/meminfo");
        let total = meminfo.kib("MemTotal:").ok();
        let group = tightest_group().filter(|it| total.is_none_or(|total| it.limit < total));
        Self {
            statm: KernelFile::open("/proc/self/statm"),
            malloc: Malloc::new(),
            meminfo,
            total,
            group,
        }
    }

    /// What this process keeps: its resident anonymous memory, without what it has given back to
    /// `malloc` and without what gpumem holds. The kernel batches the count of pages per thread, so
    /// that it can lag by some hundred KiB.
    pub(super) fn kept(&mut self, freshness: Freshness) -> Result<Bytes, Failure> {
        let resident = self.anonymous()?;
        let kept = self.malloc.arenas(freshness).map_or(resident, |arenas| {
            // After `malloc_trim`, free blocks are not resident. What is in use is kept in any case.
            let used = arenas.used.min(resident);
            resident.saturating_sub(arenas.free).max(used)
        });
        Ok(kept.saturating_sub(own_memory::allocated_bytes()))
    }

    /// Resident pages that are of no file and not shared.
    fn anonymous(&mut self) -> Result<Bytes, Failure> {
        let text = self.statm.text()?;
        pages::anonymous(text).ok_or_else(|| malformed("/proc/self/statm"))
    }

    /// Freed memory that still counts, if the C library does not report it.
    pub(super) fn note() -> Option<&'static str> {
        (!malloc::is_told()).then_some(
            "freed memory that the C library keeps counts as used: it does not tell how much that is",
        )
    }

    /// Used by all processes, without caches that could be dropped.
    pub(super) fn used(&mut self) -> Result<Bytes, Failure> {
        if let Some(group) = &mut self.group {
            let usage = group.usage.number()?;
            let inactive_file = Bytes::new(group.stat.field(group.inactive_file)?);
            return Ok(usage.saturating_sub(inactive_file));
        }
        let available = self.meminfo.kib("MemAvailable:")?;
        Ok(self.capacity()?.saturating_sub(available))
    }

    pub(super) fn capacity(&self) -> Result<Bytes, Failure> {
        self.total.ok_or_else(|| malformed("/proc/meminfo"))
    }

    /// The limit of the container, where it is below that.
    pub(super) fn limit(&self) -> Option<Bytes> {
        self.group.as_ref().map(|it| it.limit)
    }
}

/// A file of the kernel's that is read again and again.
struct KernelFile {
    path: PathBuf,
    file: io::Result<File>,
    buffer: Vec<u8>,
}

impl KernelFile {
    fn open(path: impl AsRef<Path>) -> Self {
        Self {
            file: File::open(&path),
            path: path.as_ref().to_owned(),
            // Holds the longest of them, `memory.stat`, at once: two reads would not be one instant.
            buffer: vec![0; 1 << 13],
        }
    }

    fn text(&mut self) -> Result<&str, Failure> {
        let at_path = |error: &io::Error| Failure(format!("{}: {error}", self.path.display()));
        let file = self.file.as_ref().map_err(at_path)?;
        let n_read = file
            .read_at(&mut self.buffer, 0)
            .map_err(|error| at_path(&error))?;
        std::str::from_utf8(&self.buffer[..n_read]).map_err(|_| malformed(&self.path))
    }

    /// The number that is all of the file.
    fn number(&mut self) -> Result<Bytes, Failure> {
        let number = self.text()?.trim().parse().ok();
        number.map(Bytes::new).ok_or_else(|| malformed(&self.path))
    }

    /// The number after `name` at the start of a line.
    fn field(&mut self, name: &str) -> Result<u64, Failure> {
        let mut lines = self.text()?.lines();
        let number = lines.find_map(|line| {
            let (of, number) = line.split_once(char::is_whitespace)?;
            (of == name).then(|| number.trim().trim_end_matches(" kB").parse().ok())?
        });
        number.ok_or_else(|| malformed(&self.path))
    }

    fn kib(&mut self, name: &str) -> Result<Bytes, Failure> {
        self.field(name).map(|n| Bytes::new(n << 10))
    }
}

fn malformed(path: impl AsRef<Path>) -> Failure {
    Failure(format!(
        "{} reads unlike what is known of it",
        path.as_ref().display()
    ))
}

/// The group with the smallest limit of those that this process is in.
fn tightest_group() -> Option<Cgroup> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let limited = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next(), fields.next(), fields.next());
        let path = path.unwrap_or("/");
        match controllers {
            Some("") => limited(Path::new("/sys/fs/cgroup"), path, &VERSION_2),
            Some(names) if names.split(',').any(|name| name == "memory") => {
                limited(Path::new("/sys/fs/cgroup/memory"), path, &VERSION_1)
            }
            _ => Vec::new(),
        }
    });
    limited.min_by_key(|it| it.limit)
}

/// What the files of a control group are called.
struct CgroupFiles {
    limit: &'static str,
    usage: &'static str,
    inactive_file: &'static str,
}

const VERSION_1: CgroupFiles = CgroupFiles {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    inactive_file: "total_inactive_file",
};

const VERSION_2: CgroupFiles = CgroupFiles {
    limit: "memory.max",
    usage: "memory.current",
    inactive_file: "inactive_file",
};

/// A group and all above it that have a limit, as far as they are visible: in a container the path may
/// be the host's, and then only the root of the mount (the container's own group) is there.
fn limited(mount: &Path, group: &str, names: &CgroupFiles) -> Vec<Cgroup> {
    let group = mount.join(group.trim_start_matches('/'));
    let ancestors = group.ancestors().take_while(|it| it.starts_with(mount));
    ancestors
        .filter_map(|dir| {
            let limit = fs::read_to_string(dir.join(names.limit)).ok()?;
            Some(Cgroup {
                limit: Bytes::new(limit.trim().parse().ok()?),
                usage: KernelFile::open(dir.join(names.usage)),
                stat: KernelFile::open(dir.join("memory.stat")),
                inactive_file: names.inactive_file,
            })
        })
        .collect()
}
