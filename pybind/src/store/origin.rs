//! Where a session comes from: its notebook, its kernel, its process.

use std::process;

use gpumem_core::company::kernel_id;

use super::file::Facts;
use super::remains;

/// Whose sessions a process writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The notebook's path, where the frontend tells it.
    pub(crate) notebook: Option<String>,
    /// The machine's name.
    pub(crate) host: Option<String>,
    /// Jupyter's id of the kernel; it stays when the kernel is restarted.
    pub(crate) kernel: Option<String>,
}

impl Origin {
    /// Of a process that was started by this command.
    pub(crate) fn new(notebook: Option<String>, host: Option<String>, command: &[String]) -> Self {
        let filled = |text: &String| !text.is_empty();
        Self {
            notebook: notebook.filter(filled),
            host: host.filter(filled),
            kernel: kernel_id(command).map(str::to_owned),
        }
    }

    /// What stands in the file of a session that begins now.
    pub(super) fn facts(&self, session: &str, started_nanos: u64) -> Facts {
        let known = [
            ("notebook", self.notebook.clone()),
            ("host", self.host.clone()),
            ("kernel", self.kernel.clone()),
            ("session", Some(session.to_owned())),
            ("started", Some(started_nanos.to_string())),
            ("gpumem", Some(env!("CARGO_PKG_VERSION").to_owned())),
            ("pid", Some(process::id().to_string())),
        ];
        let mut facts = Facts::new();
        let known = known.into_iter();
        facts.extend(known.filter_map(|(name, value)| Some((name.to_owned(), value?))));
        facts.extend(remains::facts());
        facts
    }

    /// A session with these facts is of the same notebook, or else of the same kernel.
    pub(super) fn is_of(&self, facts: &Facts) -> bool {
        let same = |own: &Option<String>, name: &str| own.as_ref() == facts.get(name);
        if self.notebook.is_some() || facts.contains_key("notebook") {
            return same(&self.notebook, "notebook");
        }
        same(&self.kernel, "kernel") && same(&self.host, "host")
    }
}
