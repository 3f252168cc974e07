//! Where a session comes from: its notebook, its kernel, its process.

use gpumem_jobs::company::kernel_id;
use gpumem_model::recording::Header;

use super::file::Facts;
use super::remains;

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

/// Whose sessions a process writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The notebook's path, where the frontend tells it.
    pub(crate) notebook: Option<String>,
    /// The machine's name.
    pub(crate) machine: Option<String>,
    /// Jupyter's id of the kernel; it stays when the kernel is restarted.
    pub(crate) kernel: Option<String>,
}

impl Origin {
    /// Of a process that was started by this command.
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
    pub(super) fn facts(&self, kept: &str) -> Facts {
        let known = [
            (KEPT, Some(kept.to_owned())),
            ("notebook", self.notebook.clone()),
            ("machine", self.machine.clone()),
            ("kernel", self.kernel.clone()),
        ];
        let known = known.into_iter();
        let known = known.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        known.chain(remains::facts()).collect()
    }

    /// A session with these facts is of the same notebook, or else of the same kernel.
    pub(super) fn is_of(&self, facts: &Facts) -> bool {
        let same = |own: &Option<String>, name: &str| own.as_ref() == facts.get(name);
        if self.notebook.is_some() || facts.contains_key("notebook") {
            return same(&self.notebook, "notebook");
        }
        same(&self.kernel, "kernel") && same(&self.machine, "machine")
    }
}

/// The header of a recording with these facts in it.
pub(super) fn with_facts(header: &Header, facts: &Facts) -> Header {
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
