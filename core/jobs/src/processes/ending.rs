//! How a child process ended.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::ChildProcess;
use crate::fact;
use gpumem_model::units::Nanos;

/// How a process exited, as its parent saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// Since the parent's recording began.
    pub at: Nanos,
    /// The exit code, or the signal that killed it, as a negative number, as in Python; `None` if
    /// another process waited for it.
    pub code: Option<i32>,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEnding {
    /// It is alive.
    Running,
    /// It returned.
    InOrder,
    /// It exited with this code, which is not 0.
    Failed(i32),
    /// The system ran out of memory and killed it.
    KilledBySystem,
    /// It was killed by this signal.
    Killed(i32),
    /// It is gone, and its end was not seen.
    Lost,
}

/// Its name, and the exit code.
impl Serialize for ChildEnding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Ending", 2)?;
        fields.serialize_field("ending", self.name())?;
        fields.serialize_field("exit_code", &self.exit_code())?;
        fields.end()
    }
}

impl ChildEnding {
    /// The ending of a child.
    pub fn for_child(child: &ChildProcess) -> Self {
        match child.exit.and_then(|exit| exit.code) {
            Some(0) => Self::InOrder,
            // Ray ends all its workers with this signal.
            Some(1) if fact(&child.recording, "runtime") == Some("ray") => Self::Lost,
            Some(-9) if child.was_killed => Self::KilledBySystem,
            Some(code) if code < 0 => Self::Killed(-code),
            Some(code) => Self::Failed(code),
            None if child.is_running => Self::Running,
            None if child.recording.finish().is_some() => Self::InOrder,
            None if child.was_killed => Self::KilledBySystem,
            None => Self::Lost,
        }
    }

    /// Whether to report it. A pool ends its workers with SIGTERM.
    pub fn is_bad(self) -> bool {
        match self {
            Self::Running | Self::InOrder | Self::Lost => false,
            Self::Killed(signal) => signal != 15,
            Self::Failed(_) | Self::KilledBySystem => true,
        }
    }

    /// The name in JSON and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::InOrder => "in_order",
            Self::Failed(_) => "failed",
            Self::KilledBySystem => "killed_by_system",
            Self::Killed(_) => "killed",
            Self::Lost => "lost",
        }
    }

    /// The exit code or, as a negative number, the signal, if it is known.
    pub const fn exit_code(self) -> Option<i32> {
        match self {
            Self::Running | Self::Lost => None,
            Self::InOrder => Some(0),
            Self::Failed(code) => Some(code),
            Self::KilledBySystem => Some(-9),
            Self::Killed(signal) => Some(-signal),
        }
    }
}
