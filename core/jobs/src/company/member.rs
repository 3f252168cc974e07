//! One process on a device: what the driver, the system and Jupyter tell of it.

use super::command::shortened;
use super::family::Family;
use super::jupyter::{kernel_id, notebook, server};
use super::{Facts, Kind, Member, ProcessTable};
use gpumem_model::printable::printable;
use gpumem_model::recording::Level;

/// Puts together what is known of a process on a driver's list.
pub(super) fn member(pid: u32, used: &Level, sightings: &ProcessTable) -> Member {
    let family = Family::of(sightings);
    let kind = family.kind(pid);
    let is_known = !matches!(kind, Kind::Outside | Kind::Gone | Kind::Hidden);
    let facts = family.facts(pid).filter(|_| is_known);
    let own_user = family
        .facts(sightings.own_pid)
        .and_then(|it| it.user.as_ref());
    let user = facts.and_then(|it| it.user.as_ref());
    let is_own_users = kind == Kind::Own || (user.is_some() && user == own_user);
    Member {
        pid,
        used: used.clone(),
        kind,
        user: user.map(|it| printable(it)),
        is_own_users,
        command: facts.and_then(|it| command(it, is_own_users)),
        age: facts.and_then(|it| it.age),
        notebook: facts.and_then(|it| notebook(it, sightings)),
        kernel_id: facts
            .and_then(|it| kernel_id(&it.command))
            .map(ToOwned::to_owned),
        server: facts
            .filter(|_| kind != Kind::OrphanedKernel)
            .and_then(|it| server(it, sightings))
            .map(|server| printable(&server.url)),
        words: family.words(pid, kind, facts, is_own_users),
    }
}

/// Program and script, else what the process calls itself.
pub(super) fn command(facts: &Facts, is_own_users: bool) -> Option<String> {
    let named = || (!facts.name.is_empty()).then(|| printable(&facts.name));
    shortened(&facts.command, is_own_users).or_else(named)
}
