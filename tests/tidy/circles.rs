//! Modules of one folder that use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::sources::{paths, root};

/// The modules of a crate, by its folder of sources, that are left when those are taken away, again and again, that use no other.
pub(crate) fn circles(folder: &str) -> Vec<String> {
    let files = paths(&format!("{folder}/")).into_iter().map(|path| {
        let text = fs::read_to_string(root().join(&path)).expect("the file is there");
        (path[folder.len() + 1..].to_owned(), text)
    });
    let mut uses = uses(&files.collect(), "crate::");
    assert!(uses.len() > 3, "{folder} has modules");
    while let Some(free) = uses.iter().find(|(_, used)| used.is_empty()) {
        let free = free.0.clone();
        uses.remove(&free);
        for used in uses.values_mut() {
            used.remove(&free);
        }
    }
    uses.into_keys().collect()
}

/// What each module uses of its neighbours, tests aside, also by a name that `lib.rs` exports.
fn uses(files: &BTreeMap<String, String>, absolute: &str) -> BTreeMap<String, BTreeSet<String>> {
    let module = |path: &str| path.split(['/', '.']).next().unwrap_or_default().to_owned();
    let modules = files.keys().map(|path| module(path));
    let modules: BTreeSet<String> = modules
        .filter(|it| it != "lib" && it != "tests" && it != "testing")
        .collect();
    let mut homes: BTreeMap<String, String> = BTreeMap::new();
    for exported in files
        .get("lib.rs")
        .map_or("", String::as_str)
        .split("use ")
        .skip(1)
    {
        if let Some((home, names)) = exported
            .split_once(';')
            .and_then(|it| it.0.split_once("::"))
        {
            homes.extend(first_names(names).map(|name| (name, home.to_owned())));
        }
    }
    homes.extend(modules.iter().map(|it| (it.clone(), it.clone())));
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in files {
        let own = module(path);
        if !modules.contains(&own) || Path::new(path).file_stem() == Some("tests".as_ref()) {
            continue;
        }
        let code = without_tests(text);
        let above = "super::".repeat(path.matches('/').count() + 1);
        let paths = [above.as_str(), absolute]
            .into_iter()
            .flat_map(|it| code.split(it).skip(1));
        let used = paths
            .flat_map(first_names)
            .filter_map(|name| homes.get(&name));
        let others = used
            .filter(|it| modules.contains(*it) && **it != own)
            .cloned();
        uses.entry(own.clone()).or_default().extend(others);
    }
    uses
}

/// The first names of what stands behind `super::`: `a::B` begins with `a`, `{a::{B, C}, d}` with both.
fn first_names(path: &str) -> impl Iterator<Item = String> {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut names = vec![String::new()];
    let (mut depth, mut is_first) = (0_u32, true);
    for letter in path.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => {
                names.push(String::new());
                is_first = true;
            }
            _ if is_first && is_letter(letter) => names.last_mut().expect("one").push(letter),
            _ if letter.is_whitespace() => {}
            _ => is_first = false,
        }
        if depth == 0 && !is_letter(letter) {
            break;
        }
    }
    names.into_iter().filter(|name| !name.is_empty())
}

/// The code without comments and without items that are only compiled for tests.
fn without_tests(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let mut code = String::new();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            let is_end = |it: &&str| {
                indent(it) == indent(line) && it.ends_with([';', '}']) && !it.trim().is_empty()
            };
            lines.find(is_end);
        } else {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

#[test]
fn a_circle_is_found_below_an_item_for_tests_and_by_an_exported_name() {
    let check = |b: &str, expected: &[&str]| {
        let files = [
            ("lib.rs", "mod a;\nmod b;\npub use a::{A, make};\n"),
            ("a.rs", "#[cfg(test)]\nmod tests;\n\nuse super::b::B;\n"),
            ("a/tests.rs", "use super::super::c::C;\n"),
            ("b.rs", b),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        let uses = uses(&files.into(), "crate::");
        assert_eq!(uses["a"], BTreeSet::from(["b".to_owned()]));
        assert_eq!(uses["b"].iter().collect::<Vec<_>>(), expected, "{b}");
    };
    check("use super::{\n    a::{A, make},\n};\n", &["a"]);
    check("use super::A;\n", &["a"]);
    check("use crate::{A, Other};\n", &["a"]);
    check(
        "// super::a::A\nuse super::Other;\nuse gpumem_b::a::A;\n",
        &[],
    );
    check(
        "#[cfg(test)]\nmod tests {\n    use super::super::a::A;\n}\n",
        &[],
    );
}
