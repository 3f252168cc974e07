//! Where a session comes from: its notebook, its kernel, its process.

use gpumem_jobs::gpu_processes::kernel_id;
use gpumem_model::recording::Header;

use super::file::SessionFacts;
use super::owner;

/// The fact that says what a file of gpumem's own is: `session`, `baseline` or `process`.
pub(crate) const KEPT: &str = "kept";
/// The fact that names a baseline.
pub(super) const BASELINE: &str = "baseline";

/// Facts that only the file of a session or baseline has: what is read of it goes without.
const ONLY_KEPT: [&str; 10] = [
    KEPT,
    BASELINE,
    "notebook",
    "machine",
    "kernel",
    "boot",
    "pids",
    "began",
    "memory_group",
    "n_kills",
];

/// The origin of the sessions that a process writes: notebook, machine and command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SessionOrigin {
    /// The notebook's path, if the frontend provides it.
    pub(crate) notebook: Option<String>,
    pub(crate) machine: Option<String>,
    /// Jupyter's id of the kernel; it stays when the kernel is restarted.
    pub(crate) kernel: Option<String>,
}

impl SessionOrigin {
    /// The origin of a process that was started by `command`.
    pub(crate) fn new(
        notebook: Option<String>,
        machine: Option<String>,
        command: &[String],
    ) -> Self {
        let filled = |text: &String| !text.is_empty();
        Self {
            notebook: notebook.filter(filled),
            machine: machine.filter(filled),
            kernel: kernel_id(command).map(str::to_owned),
        }
    }

    /// What the header of a file says beside what is recorded.
    pub(super) fn facts(&self, kept: &str) -> SessionFacts {
        let known = [
            (KEPT, Some(kept.to_owned())),
            ("notebook", self.notebook.clone()),
            ("machine", self.machine.clone()),
            ("kernel", self.kernel.clone()),
        ];
        let known = known.into_iter();
        let known = known.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        known.chain(owner::facts()).collect()
    }

    /// A session with these facts is of the same notebook, or else of the same kernel.
    pub(super) fn is_of(&self, facts: &SessionFacts) -> bool {
        let same = |own: &Option<String>, name: &str| own.as_ref() == facts.get(name);
        if self.notebook.is_some() || facts.contains_key("notebook") {
            return same(&self.notebook, "notebook");
        }
        same(&self.kernel, "kernel") && same(&self.machine, "machine")
    }
}

/// The header of a recording with these facts in it.
pub(super) fn with_facts(header: &Header, facts: &SessionFacts) -> Header {
    let mut header = header.clone();
    header.process.retain(|(name, _)| !facts.contains_key(name));
    header.process.extend(facts.clone());
    header
}

/// The header as it was recorded.
pub(super) fn without_facts(header: &Header) -> Header {
    let mut header = header.clone();
    let is_only_kept = |name: &String| ONLY_KEPT.contains(&name.as_str());
    header.process.retain(|(name, _)| !is_only_kept(name));
    header
}
