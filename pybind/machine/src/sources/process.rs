//! Where this process stands among the others of its machine.

#[cfg(target_os = "linux")]
use std::sync::OnceLock;

/// The process `pid` was started by `ancestor`, or by one that it started.
#[cfg(target_os = "linux")]
pub(crate) fn descends_from(pid: u32, ancestor: u32) -> bool {
    // As many generations as no family has, should the parents change while they are read.
    let parents = std::iter::successors(parent_of(pid), |pid| parent_of(*pid));
    parents.take(64).any(|parent| parent == ancestor)
}

#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    stat(pid).ok().map(|stat| stat.parent)
}

/// The fields of `/proc/PID/stat`.
#[cfg(target_os = "linux")]
pub struct Stat {
    /// The program's name, at most 15 bytes.
    pub name: String,
    /// It has ended, and its parent has not asked how.
    pub is_zombie: bool,
    /// The number of the process that began it.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// When it began, in ticks since the machine did.
    pub began: u64,
    /// Its parent can wait for it as for others: a copy of gpumem's ends without a signal.
    pub(crate) signals_its_end: bool,
}

/// Reads the fields; fails if the process is gone or hidden.
#[cfg(target_os = "linux")]
pub fn stat(pid: u32) -> std::io::Result<Stat> {
    let text = std::fs::read(format!("/proc/{pid}/stat"))?;
    parsed(&String::from_utf8_lossy(&text)).ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

/// The name, in brackets, may hold brackets and blanks itself: `12 (a b) S 7 …`.
#[cfg(target_os = "linux")]
fn parsed(text: &str) -> Option<Stat> {
    let (before, after) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let field = |idx: usize| fields.get(idx)?.parse().ok();
    Some(Stat {
        name: before.split_once('(')?.1.to_owned(),
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        parent: field(1)?,
        group: field(2)?,
        session: field(3)?,
        began: fields.get(19)?.parse().ok()?,
        signals_its_end: *fields.get(35)? != "0",
    })
}

/// Whether this process is outside containers with their own process ids.
#[cfg(target_os = "linux")]
pub(crate) fn is_in_first_pid_namespace() -> bool {
    static IS_FIRST: OnceLock<bool> = OnceLock::new();
    // A constant of the kernel, `PROC_PID_INIT_INO`.
    let first = "pid:[4026531836]";
    *IS_FIRST.get_or_init(|| {
        std::fs::read_link("/proc/self/ns/pid").is_ok_and(|it| it.as_os_str() == first)
    })
}

/// In Linux that Windows runs.
#[cfg(target_os = "linux")]
pub(super) fn is_in_wsl() -> bool {
    static IS_WSL: OnceLock<bool> = OnceLock::new();
    *IS_WSL.get_or_init(|| {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
        release.is_ok_and(|release| release.to_ascii_lowercase().contains("microsoft"))
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn descends_from(_pid: u32, _ancestor: u32) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_in_first_pid_namespace() -> bool {
    true
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_in_wsl() -> bool {
    false
}
