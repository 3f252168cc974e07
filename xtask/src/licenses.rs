//! The notices of what the wheel contains and others wrote: crates and fonts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::project::Project;
use crate::run;

/// In the folder whose `LICENSE-*` the wheel and the sources carry.
const FILE: &str = "pybind/LICENSE-THIRD-PARTY";

/// What is compiled into the wheel: the extension, and the modules of the pages.
const ROOTS: [&str; 3] = ["gpumem-pybind", "gpumem-widget", "gpumem-files-page"];

const FONTS: (&str, &str) = (
    "DejaVu Sans, DejaVu Sans Bold, DejaVu Sans Mono",
    "core/src/chart/fonts/LICENSE",
);

const SQLITE: (&str, &str) = (
    "SQLite",
    "The authors of SQLite disclaim copyright: its source is in the public domain.\n",
);

/// Writes the file anew.
pub(crate) fn write(project: &Project) -> Result<()> {
    let path = project.path(FILE);
    fs::write(&path, notices(project)?).with_context(|| format!("writing {}", path.display()))
}

/// Fails if the file is not what `write` would write.
pub(crate) fn check(project: &Project) -> Result<()> {
    let written = fs::read_to_string(project.path(FILE)).unwrap_or_default();
    if written != notices(project)? {
        bail!("{FILE} is not what Cargo.lock needs: run cargo xtask licenses");
    }
    Ok(())
}

fn notices(project: &Project) -> Result<String> {
    let mut metadata = project.cargo_metadata();
    let metadata: Value = serde_json::from_str(&run::output(&mut metadata)?)?;
    // Many crates share a text, word for word.
    let mut names_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in linked(&metadata)? {
        let name = format!("{} {}", text(package, "name"), text(package, "version"));
        let texts = texts(package).with_context(|| format!("the licence of {name}"))?;
        names_of.entry(texts).or_default().insert(name);
    }
    let fonts = fs::read_to_string(project.path(FONTS.1))?;
    names_of
        .entry(tidy(&fonts))
        .or_default()
        .insert(FONTS.0.to_owned());
    names_of
        .entry(SQLITE.1.to_owned())
        .or_default()
        .insert(SQLITE.0.to_owned());
    let mut sections: Vec<_> = names_of
        .into_iter()
        .map(|(text, names)| (Vec::from_iter(names).join(", "), text))
        .collect();
    sections.sort();
    let ruler = "-".repeat(80);
    let sections = sections
        .iter()
        .map(|(names, text)| format!("{ruler}\n{}\n\n{text}", wrapped(names)));
    Ok(format!(
        "{}\n{}",
        INTRODUCTION,
        sections.collect::<Vec<_>>().join("\n")
    ))
}

const INTRODUCTION: &str = "\
gpumem's wheel contains the following works, compiled into the extension module or into the
report's WebAssembly module. The list covers every platform; a wheel contains those of its own.
`cargo xtask licenses` writes this file.
";

/// The packages that end up in a binary: what runs only in the compiler does not.
fn linked(metadata: &Value) -> Result<Vec<&Value>> {
    let by_id = |list: &'static str, key: &'static str| -> BTreeMap<&str, &Value> {
        let items = metadata.pointer(list).and_then(Value::as_array);
        let items = items.into_iter().flatten();
        items.map(|item| (text(item, key), item)).collect()
    };
    let packages = by_id("/packages", "id");
    let nodes = by_id("/resolve/nodes", "id");
    let is_root = |package: &&&Value| ROOTS.contains(&text(package, "name"));
    let mut ahead: Vec<&str> = packages
        .values()
        .filter(is_root)
        .map(|it| text(it, "id"))
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = ahead.pop() {
        let package = packages
            .get(id)
            .with_context(|| format!("cargo knows no {id}"))?;
        if is_macro(package) || !seen.insert(id) {
            continue;
        }
        let needs = nodes.get(id).and_then(|node| node["deps"].as_array());
        let needs = needs.into_iter().flatten().filter(|it| is_linked(it));
        ahead.extend(needs.map(|it| text(it, "pkg")));
    }
    let others = seen.iter().map(|id| packages[id]);
    Ok(others.filter(|it| !it["source"].is_null()).collect())
}

fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    let mut kinds = targets.flat_map(|it| it["kind"].as_array().into_iter().flatten());
    kinds.any(|kind| kind == "proc-macro")
}

/// Neither of a build script alone nor of tests.
fn is_linked(need: &Value) -> bool {
    let kinds = need["dep_kinds"].as_array();
    kinds.into_iter().flatten().any(|it| it["kind"].is_null())
}

/// A package's licence, the MIT license if there is a choice, and its notices.
fn texts(package: &Value) -> Result<String> {
    let manifest = Path::new(text(package, "manifest_path"));
    let folder = manifest.parent().context("the manifest has no folder")?;
    let mut names: Vec<String> = fs::read_dir(folder)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let that_begin = |with: &'static [&str]| {
        let begins =
            move |name: &&String| with.iter().any(|it| name.to_uppercase().starts_with(it));
        let names = names.iter().filter(begins);
        let texts = names.map(|name| Ok((name, tidy(&fs::read_to_string(folder.join(name))?))));
        texts.collect::<Result<Vec<_>>>()
    };
    let mut licenses = that_begin(&["LICENSE", "LICENCE"])?;
    // A link that was packed as a file holds a path.
    licenses.retain(|(_, text)| text.lines().count() > 1);
    licenses.sort_by_key(|(name, _)| !name.to_uppercase().contains("MIT"));
    let Some((_, license)) = licenses.into_iter().next() else {
        let [license, repository] = ["license", "repository"].map(|key| text(package, key));
        let authors = package["authors"].as_array().into_iter().flatten();
        let authors: Vec<_> = authors.filter_map(Value::as_str).collect();
        let by = if authors.is_empty() {
            "its authors".to_owned()
        } else {
            authors.join(", ")
        };
        return Ok(format!(
            "{license}, by {by}.\nThe package does not contain the text. Its repository does: {repository}\n"
        ));
    };
    let notices = that_begin(&["NOTICE", "COPYRIGHT"])?;
    let texts = std::iter::once(license).chain(notices.into_iter().map(|(_, text)| text));
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

/// The same text with one kind of line end, and without blanks at the ends of lines.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// A list of names in lines of at most 80 characters.
fn wrapped(names: &str) -> String {
    let mut lines = vec![String::new()];
    for name in names.split(", ") {
        let last = lines
            .last_mut()
            .filter(|line| line.is_empty() || line.len() + name.len() < 78);
        match last {
            Some(line) if line.is_empty() => line.push_str(name),
            Some(line) => line.extend([", ", name]),
            None => lines.push(name.to_owned()),
        }
    }
    lines.join(",\n")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fill_lines() {
        assert_eq!(wrapped("a 1, b 2"), "a 1, b 2");
        let long = "x".repeat(50);
        assert_eq!(
            wrapped(&format!("{long}, {long}, y")),
            format!("{long},\n{long}, y")
        );
    }

    #[test]
    fn a_macro_and_what_a_build_script_needs_are_not_in_the_binary() {
        let package = |name: &str, kind: &str| serde_json::json!({"id": name, "name": name, "source": "x", "targets": [{"kind": [kind]}]});
        let need = |name: &str, kind: Option<&str>| serde_json::json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = serde_json::json!({
            "packages": [
                package("gpumem-pybind", "cdylib"),
                package("linked", "lib"),
                package("derive", "proc-macro"),
                package("build", "lib"),
            ],
            "resolve": {"nodes": [{
                "id": "gpumem-pybind",
                "deps": [need("linked", None), need("derive", None), need("build", Some("build"))],
            }]},
        });
        let found = linked(&metadata).expect("the metadata is whole");
        let names: Vec<_> = found.iter().map(|it| text(it, "name")).collect();
        assert_eq!(names, ["gpumem-pybind", "linked"]);
    }
}
