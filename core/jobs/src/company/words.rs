//! What a process is, in words that carry their evidence.

use super::family::Family;
use super::jupyter::{kernel_id, notebook, server, shown_path};
use super::member::command;
use super::{Facts, Kind};
use gpumem_model::printable::printable;

impl Family<'_> {
    /// What a process of that kind is, and how that is known.
    pub(super) fn words(
        &self,
        pid: u32,
        kind: Kind,
        facts: Option<&Facts>,
        is_own_users: bool,
    ) -> String {
        let command = facts.and_then(|it| command(it, is_own_users));
        let command = command.unwrap_or_else(|| "a process".to_owned());
        let of_kernel = facts.and_then(|it| self.shown_notebook(it));
        let own_id = self.kernel_id(self.sightings.own_pid);
        match (kind, of_kernel) {
            (Kind::Own, Some(notebook)) if own_id.is_some() => format!("this kernel · {notebook}"),
            (Kind::Own, _) if own_id.is_some() => "this kernel".to_owned(),
            (Kind::Own, _) => "this process".to_owned(),
            (Kind::Child, _) if own_id.is_some() => {
                with_command("child of this kernel", facts, &command)
            }
            (Kind::Child, _) => with_command("child of this process", facts, &command),
            (Kind::Kernel, Some(notebook)) => format!("kernel of {notebook}"),
            (Kind::Kernel, None) => format!("kernel{}", self.started_by(facts)),
            (Kind::KernelsChild, Some(notebook)) => with_command(
                &format!("child of the kernel of {notebook}"),
                facts,
                &command,
            ),
            (Kind::KernelsChild, None) => with_command("child of a kernel", facts, &command),
            (Kind::OrphanedKernel, notebook) => {
                let notebook = notebook.map_or_else(String::new, |it| format!(" of {it}"));
                let why = match facts.and_then(|it| it.server_pid) {
                    Some(server) => format!("its Jupyter server (pid {server}) is gone"),
                    None => "what started it is gone".to_owned(),
                };
                format!("orphaned kernel{notebook}: {why}")
            }
            (Kind::LeftOver, Some(notebook)) => {
                format!("left over by the kernel of {notebook}: what started it is gone")
            }
            (Kind::LeftOver, None) if facts.is_some_and(|it| kernel_id(&it.command).is_some()) => {
                "left over by a kernel: what started it is gone".to_owned()
            }
            (Kind::LeftOver, None) => format!("{command} · left over: what started it is gone"),
            (Kind::Zombie, _) => {
                let parent = facts.and_then(|it| it.parent).unwrap_or(0);
                format!("{command} · has ended, but its parent (pid {parent}) has not taken note")
            }
            (Kind::Gone, _) => {
                format!("has ended: there is no process {pid}, but the driver still lists it")
            }
            (Kind::Hidden, _) => "of another user, hidden by this system".to_owned(),
            (Kind::Outside, _) if pid == 0 => {
                "a process that the driver does not name here".to_owned()
            }
            (Kind::Outside, _) => "outside of this container: its id means nothing here".to_owned(),
            (Kind::Process, Some(notebook)) => format!("{command} · started from {notebook}"),
            (Kind::Process, None) => command,
        }
    }

    fn shown_notebook(&self, facts: &Facts) -> Option<String> {
        let path = notebook(facts, self.sightings)?;
        let server = server(facts, self.sightings);
        let shown = shown_path(&path, server, self.sightings.home.as_deref());
        Some(printable(&shown))
    }

    /// Of a kernel without a known notebook: what started it may have.
    fn started_by(&self, facts: Option<&Facts>) -> String {
        let parent = facts.and_then(|it| self.facts(it.parent?));
        let program = parent.and_then(|it| command(it, false));
        program.map_or_else(String::new, |it| format!(" · started by {it}"))
    }
}

/// A child that was forked has its kernel's command line, which says nothing of it.
fn with_command(words: &str, facts: Option<&Facts>, command: &str) -> String {
    let is_forked = facts.is_some_and(|it| kernel_id(&it.command).is_some());
    if is_forked {
        return words.to_owned();
    }
    format!("{words} · {command}")
}
