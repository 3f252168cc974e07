//! The crates of `core` in their order, as ARCHITECTURE.md lists them: arrows point down.

use std::fs;

use crate::sources::{root, text};

/// Each crate, after those that it may depend on.
const ORDER: [&str; 15] = [
    "model",
    "process",
    "heap",
    "wire",
    "sim",
    "classic",
    "footprint",
    "analyzer",
    "wording",
    "scene",
    "charts",
    "readers",
    "jobs",
    "report",
    "explorer",
];

/// The packages of `core`.
pub(crate) fn of_core() -> Vec<String> {
    let folders = fs::read_dir(root().join("core")).expect("the folder is there");
    let names = folders.map(|it| {
        it.expect("a folder")
            .file_name()
            .into_string()
            .expect("its name")
    });
    let mut names: Vec<String> = names
        .filter(|name| root().join(format!("core/{name}/Cargo.toml")).exists())
        .collect();
    let mut listed = ORDER.map(str::to_owned).to_vec();
    names.sort();
    listed.sort();
    assert_eq!(names, listed, "each crate has its place in the order");
    ORDER.map(|name| format!("gpumem-{name}")).to_vec()
}

/// The folder of a package of `core`.
pub(crate) fn folder(package: &str) -> String {
    format!("core/{}", package.trim_start_matches("gpumem-"))
}

/// Dependencies against the order, as `crate: dependency`. Those of tests may point anywhere.
pub(crate) fn upward() -> Vec<String> {
    let mut found = Vec::new();
    for (idx, name) in ORDER.iter().enumerate() {
        let manifest = text(&format!("core/{name}/Cargo.toml"));
        let below = &ORDER[..idx];
        let section = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let section = section.split("\n[").next().unwrap_or_default();
        let used = section
            .lines()
            .filter_map(|line| line.strip_prefix("gpumem-"));
        let used = used.map(|line| line.split(['.', ' ']).next().unwrap_or_default());
        found.extend(
            used.filter(|it| !below.contains(it))
                .map(|it| format!("{name}: {it}")),
        );
    }
    found
}
