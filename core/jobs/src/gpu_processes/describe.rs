//! Descriptions of processes with their evidence.

use super::family::Family;
use super::jupyter::{kernel_id, notebook, server, shown_path};
use super::process::command;
use super::{ProcessFacts, ProcessKind};
use gpumem_model::printable::printable;

impl Family<'_> {
    /// A description of a process, with the evidence for its kind.
    pub(super) fn describe(
        &self,
        pid: u32,
        kind: ProcessKind,
        facts: Option<&ProcessFacts>,
        is_own_users: bool,
    ) -> String {
        let command = facts.and_then(|it| command(it, is_own_users));
        let command = command.unwrap_or_else(|| "a process".to_owned());
        let of_kernel = facts.and_then(|it| self.shown_notebook(it));
        let own_id = self.kernel_id(self.table.own_pid);
        match (kind, of_kernel) {
            (ProcessKind::Own, Some(notebook)) if own_id.is_some() => {
                format!("this kernel · {notebook}")
            }
            (ProcessKind::Own, _) if own_id.is_some() => "this kernel".to_owned(),
            (ProcessKind::Own, _) => "this process".to_owned(),
            (ProcessKind::Child, _) if own_id.is_some() => {
                with_command("child of this kernel", facts, &command)
            }
            (ProcessKind::Child, _) => with_command("child of this process", facts, &command),
            (ProcessKind::Kernel, Some(notebook)) => format!("kernel of {notebook}"),
            (ProcessKind::Kernel, None) => format!("kernel{}", self.started_by(facts)),
            (ProcessKind::KernelsChild, Some(notebook)) => with_command(
                &format!("child of the kernel of {notebook}"),
                facts,
                &command,
            ),
            (ProcessKind::KernelsChild, None) => with_command("child of a kernel", facts, &command),
            (ProcessKind::OrphanedKernel, notebook) => {
                let notebook = notebook.map_or_else(String::new, |it| format!(" of {it}"));
                let why = match facts.and_then(|it| it.server_pid) {
                    Some(server) => format!("its Jupyter server (pid {server}) is gone"),
                    None => "what started it is gone".to_owned(),
                };
                format!("orphaned kernel{notebook}: {why}")
            }
            (ProcessKind::LeftOver, Some(notebook)) => {
                format!("left over by the kernel of {notebook}: what started it is gone")
            }
            (ProcessKind::LeftOver, None)
                if facts.is_some_and(|it| kernel_id(&it.command).is_some()) =>
            {
                "left over by a kernel: what started it is gone".to_owned()
            }
            (ProcessKind::LeftOver, None) => {
                format!("{command} · left over: what started it is gone")
            }
            (ProcessKind::Zombie, _) => {
                let parent = facts.and_then(|it| it.parent).unwrap_or(0);
                format!("{command} · has ended, but its parent (pid {parent}) has not taken note")
            }
            (ProcessKind::Gone, _) => {
                format!("has ended: there is no process {pid}, but the driver still lists it")
            }
            (ProcessKind::Hidden, _) => "of another user, hidden by this system".to_owned(),
            (ProcessKind::Outside, _) if pid == 0 => {
                "a process that the driver does not name here".to_owned()
            }
            (ProcessKind::Outside, _) => {
                "outside of this container: its id means nothing here".to_owned()
            }
            (ProcessKind::Process, Some(notebook)) => {
                format!("{command} · started from {notebook}")
            }
            (ProcessKind::Process, None) => command,
        }
    }

    fn shown_notebook(&self, facts: &ProcessFacts) -> Option<String> {
        let path = notebook(facts, self.table)?;
        let server = server(facts, self.table);
        let shown = shown_path(&path, server, self.table.home.as_deref());
        Some(printable(&shown))
    }

    /// For a kernel without a known notebook: its starter.
    fn started_by(&self, facts: Option<&ProcessFacts>) -> String {
        let parent = facts.and_then(|it| self.facts(it.parent?));
        let program = parent.and_then(|it| command(it, false));
        program.map_or_else(String::new, |it| format!(" · started by {it}"))
    }
}

/// A child that was forked has its kernel's command line, which says nothing of it.
fn with_command(words: &str, facts: Option<&ProcessFacts>, command: &str) -> String {
    let is_forked = facts.is_some_and(|it| kernel_id(&it.command).is_some());
    if is_forked {
        return words.to_owned();
    }
    format!("{words} · {command}")
}
