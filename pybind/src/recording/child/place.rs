//! Where the children of a session record themselves, and by which clock.

use std::path::{Path, PathBuf};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use gpumem_base::clock::Clock;

/// Read without a lock, which a fork could find held. What it pointed to before is never freed: there is
/// one for each session of the process.
static PLACE: AtomicPtr<ChildFolder> = AtomicPtr::new(ptr::null_mut());

/// Where children of a session record themselves.
#[derive(Debug, Clone)]
pub(crate) struct ChildFolder {
    /// The process whose session it is.
    pub(super) session_pid: u32,
    pub(super) session: String,
    pub(super) folder: PathBuf,
    /// The session's clock.
    pub(super) clock: Clock,
}

impl ChildFolder {
    /// For the children of this process.
    pub(crate) fn new(session: &str, folder: &Path, clock: Clock) -> Self {
        Self {
            session_pid: process::id(),
            session: session.to_owned(),
            folder: folder.to_owned(),
            clock,
        }
    }

    /// `1 PID SESSION MONOTONIC WALL FOLDER`
    pub(crate) fn to_text(&self) -> Option<String> {
        let folder = self.folder.to_str()?;
        let clock = self.clock.to_text();
        Some(format!(
            "1 {} {} {clock} {folder}",
            self.session_pid, self.session
        ))
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        let mut fields = text.splitn(6, ' ');
        let mut next = || fields.next();
        if next()? != "1" {
            return None;
        }
        let (session_pid, session) = (next()?.parse().ok()?, next()?.to_owned());
        let clock = format!("{} {}", next()?, next()?);
        Some(Self {
            session_pid,
            session,
            clock: Clock::from_text(&clock)?,
            folder: PathBuf::from(next()?),
        })
    }
}

/// Children record themselves there from now on; `None`: they do not.
pub(crate) fn move_to(place: Option<ChildFolder>) {
    let place = place.map_or(ptr::null_mut(), |place| Box::into_raw(Box::new(place)));
    PLACE.store(place, Ordering::Release);
}

#[expect(unsafe_code, reason = "what is behind the pointer is never freed")]
pub(super) fn current() -> Option<&'static ChildFolder> {
    // SAFETY: it is null or was leaked by `move_to`.
    unsafe { PLACE.load(Ordering::Acquire).as_ref() }
}
