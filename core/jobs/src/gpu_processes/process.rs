//! One process on a device, from the driver, the system and Jupyter.

use super::command::shortened;
use super::family::Family;
use super::jupyter::{kernel_id, notebook, server};
use super::{GpuProcess, ProcessFacts, ProcessKind, ProcessTable};
use gpumem_model::printable::printable;
use gpumem_model::recording::Level;

/// Joins the facts about a process on a driver's list.
pub(super) fn process(pid: u32, used: &Level, table: &ProcessTable) -> GpuProcess {
    let family = Family::new(table);
    let kind = family.kind(pid);
    let is_known = !matches!(
        kind,
        ProcessKind::Outside | ProcessKind::Gone | ProcessKind::Hidden
    );
    let facts = family.facts(pid).filter(|_| is_known);
    let own_user = family.facts(table.own_pid).and_then(|it| it.user.as_ref());
    let user = facts.and_then(|it| it.user.as_ref());
    let is_own_users = kind == ProcessKind::Own || (user.is_some() && user == own_user);
    GpuProcess {
        pid,
        used: used.clone(),
        kind,
        user: user.map(|it| printable(it)),
        is_own_users,
        command: facts.and_then(|it| command(it, is_own_users)),
        age: facts.and_then(|it| it.age),
        notebook: facts.and_then(|it| notebook(it, table)),
        kernel_id: facts
            .and_then(|it| kernel_id(&it.command))
            .map(ToOwned::to_owned),
        server: facts
            .filter(|_| kind != ProcessKind::OrphanedKernel)
            .and_then(|it| server(it, table))
            .map(|server| printable(&server.url)),
        words: family.describe(pid, kind, facts, is_own_users),
    }
}

/// Program and script, else what the process calls itself.
pub(super) fn command(facts: &ProcessFacts, is_own_users: bool) -> Option<String> {
    let named = || (!facts.name.is_empty()).then(|| printable(&facts.name));
    shortened(&facts.command, is_own_users).or_else(named)
}
