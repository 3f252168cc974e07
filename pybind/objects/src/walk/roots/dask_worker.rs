//! What a worker of dask.distributed keeps by name: attributes that the user set, results, actors, plugins.

use gpumem_jobs::tasks;
use gpumem_model::holders::RootKind;

use super::Roots;
use crate::still::{Dict, Object, Section};

/// Our module on a worker; it names the worker and what of it is dask's own.
const MODULE: &str = "gpumem.dask._worker";
/// The most characters of a key that are shown.
const MAX_KEY: usize = 60;

/// Adds them, if this process is a worker that gpumem records. The worker itself is not entered: it leads
/// to all that dask keeps.
pub(super) fn add<'s>(roots: &mut Roots<'s>, section: &'s Section<'s>) {
    let modules = section.modules();
    let Some(known) = modules.and_then(|modules| modules.get(MODULE)?.globals()) else {
        return;
    };
    let Some(worker) = known.get("WORKER").filter(|it| !it.is_none()) else {
        return;
    };
    let own = known.get("OWN").and_then(|it| it.dict());
    let attributes = worker.attributes().into_iter();
    for (name, value) in attributes.flat_map(|it| it.named()) {
        let is_own = own.as_ref().is_some_and(|own| own.get(&name).is_some());
        if !is_own && !name.starts_with('_') {
            let path = format!("get_worker().{name}");
            roots.add_named(RootKind::Variable, &path, value);
        }
    }
    if let Some(plugins) = worker.attribute("plugins").and_then(|it| it.dict()) {
        for (name, plugin) in plugins.named().filter(|(name, _)| name != "gpumem") {
            let path = format!("get_worker().plugins[{name:?}]");
            roots.add_named(RootKind::Variable, &path, plugin);
        }
        roots.close(plugins.object().clone());
    }
    for (place, what, attribute) in [
        ("RESULTS", "results of", "data"),
        ("ACTORS", "actor", "actors"),
    ] {
        if let Some(kept) = known.get(place).and_then(|it| it.dict()) {
            add_kept(roots, &kept, what, attribute);
        }
    }
    roots.close(worker);
}

fn add_kept<'s>(roots: &mut Roots<'s>, kept: &Dict<'s>, what: &str, attribute: &str) {
    for (key, value) in kept.items() {
        let Some((shown, prefix)) = named(&key) else {
            continue;
        };
        let path = format!("get_worker().{attribute}[{shown}]");
        roots.add(RootKind::Variable, &format!("{what} {prefix}"), path, value);
    }
    roots.close(kept.object().clone());
}

/// A key as people write it, and its prefix: `'load-3f9a…'` is of `load`, and so is `('load-3f9a…', 0)`.
fn named(key: &Object<'_>) -> Option<(String, String)> {
    if let Some(text) = key.text() {
        return Some((quoted(&text), tasks::prefix(&text).to_owned()));
    }
    let text = key.tuple()?.next()?.text()?;
    let prefix = tasks::prefix(&text).to_owned();
    Some((format!("({}, …)", quoted(&text)), prefix))
}

fn quoted(key: &str) -> String {
    let shown: String = key.chars().take(MAX_KEY).collect();
    let cut = if shown.len() < key.len() { "…" } else { "" };
    format!("'{shown}{cut}'")
}
