//! Modules of one folder that use each other in a circle.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

type Uses = BTreeMap<String, Vec<String>>;

/// The modules that are left when those are taken away, again and again, that use no other.
pub(crate) fn circles(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(folder);
    let mut uses = uses(&folder);
    assert!(uses.len() > 3, "{} has modules", folder.display());
    while let Some(free) = uses.iter().find(|(_, used)| used.is_empty()) {
        let free = free.0.clone();
        uses.remove(&free);
        for used in uses.values_mut() {
            used.retain(|name| *name != free);
        }
    }
    uses.into_keys().collect()
}

/// What each module of the folder uses of its neighbours, tests aside.
fn uses(folder: &Path) -> Uses {
    let files = fs::read_dir(folder).expect("the folder is there");
    let sources: BTreeMap<String, String> = files
        .filter_map(|file| {
            let path = file.ok()?.path();
            let name = path.file_name()?.to_str()?.strip_suffix(".rs")?.to_owned();
            let text = fs::read_to_string(&path).ok()?;
            let code = text.split("#[cfg(test)]").next()?.to_owned();
            let is_module = !["mod", "tests"].contains(&name.as_str());
            is_module.then_some((name, code))
        })
        .collect();
    let names: Vec<&String> = sources.keys().collect();
    let used = |code: &str| -> Vec<String> {
        let braced = code.split("use super::{").skip(1);
        let braced: String = braced.filter_map(|it| it.split("};").next()).collect();
        let is_used = |name: &&&String| {
            code.contains(&format!("super::{name}::"))
                || code.contains(&format!("use super::{name};"))
                || braced.split([',', ' ', '\n', ':']).any(|it| it == **name)
        };
        let used = names.iter().filter(is_used);
        used.map(|name| (*name).clone()).collect()
    };
    let of_each = sources.iter().map(|(name, code)| {
        let others = used(code).into_iter().filter(|other| other != name);
        (name.clone(), others.collect())
    });
    of_each.collect()
}
