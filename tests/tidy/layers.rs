//! Which parts of a crate use which, by every path in its code, tests aside.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use proc_macro2::{Ident, Spacing, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, Meta, UseTree};

use crate::sources::{paths, root};

/// The wings of the extension, each after those that it may use.
const WINGS: [&str; 3] = ["recording", "python", "ipython"];

/// They use every wing, and none uses them.
const ABOVE_ALL: [&str; 2] = ["lib.rs", "testing.rs"];

/// A place in a crate that names an item of the same crate.
struct Import {
    file: String,
    line: usize,
    /// The module that it is in, and what it names, both from the root of the crate.
    module: Vec<String>,
    path: Vec<String>,
}

impl Import {
    /// The part of the crate that it is in.
    fn from(&self) -> &str {
        self.module.first().map_or("lib", String::as_str)
    }

    /// The part of the crate that it uses.
    fn to(&self) -> &str {
        self.path.first().map_or("lib", String::as_str)
    }
}

impl fmt::Display for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file, line, path, ..
        } = self;
        write!(
            f,
            "{file}:{line}: {} uses crate::{}",
            self.from(),
            path.join("::")
        )
    }
}

/// What wings of the extension use of those above them.
pub(crate) fn upward() -> Vec<String> {
    let files = rust_files("pybind/src");
    for path in files.keys() {
        let part = path.split('/').nth(2).unwrap_or_default();
        assert!(
            WINGS.contains(&part) || ABOVE_ALL.contains(&part),
            "{path} is in no wing"
        );
    }
    upward_in(&imports(&files, "pybind/src"), &WINGS)
}

fn upward_in(imports: &[Import], order: &[&str]) -> Vec<String> {
    // What has no place in the order is above all.
    let floor = |part: &str| {
        order
            .iter()
            .position(|it| *it == part)
            .unwrap_or(order.len())
    };
    let is_upward = |it: &&Import| floor(it.to()) > floor(it.from());
    imports
        .iter()
        .filter(is_upward)
        .map(Import::to_string)
        .collect()
}

/// What modules of a crate use of each other in a circle.
pub(crate) fn circles(folder: &str) -> Vec<String> {
    let files = rust_files(folder);
    circles_in(imports(&files, folder), &files[&format!("{folder}/lib.rs")])
}

fn circles_in(mut imports: Vec<Import>, root: &str) -> Vec<String> {
    let homes = homes(root);
    let modules: BTreeSet<String> = imports.iter().map(|it| it.from().to_owned()).collect();
    for import in &mut imports {
        let home = homes
            .get(import.to())
            .filter(|_| !modules.contains(import.to()));
        import.path.splice(0..0, home.cloned());
    }
    imports.retain(|it| it.from() != "lib" && it.from() != it.to());
    loop {
        let parts = |part: fn(&Import) -> &str| -> BTreeSet<String> {
            imports.iter().map(|it| part(it).to_owned()).collect()
        };
        let (using, used) = (parts(Import::from), parts(Import::to));
        let n_before = imports.len();
        // What uses nothing, or is not used, is in no circle.
        imports.retain(|it| using.contains(it.to()) && used.contains(it.from()));
        if imports.len() == n_before {
            return imports.iter().map(Import::to_string).collect();
        }
    }
}

/// The module of each name that the root of a crate exports.
fn homes(root: &str) -> BTreeMap<String, String> {
    let root = syn::parse_file(root).expect("the crate is compiled");
    let uses = root.items.iter().filter_map(|item| match item {
        Item::Use(item) => Some(leaves(&item.tree, &[])),
        _ => None,
    });
    let of_one = |leaf: Leaf| {
        let mut path = leaf
            .path
            .into_iter()
            .filter(|it| it != "crate" && it != "self");
        path.next().map(|home| (leaf.name, home))
    };
    uses.flatten().filter_map(of_one).collect()
}

/// The sources of a crate by their paths.
pub(crate) fn rust_files(folder: &str) -> BTreeMap<String, String> {
    let is_source = |path: &String| Path::new(path).extension() == Some("rs".as_ref());
    let read = |path: String| {
        let text = fs::read_to_string(root().join(&path)).expect("the file is there");
        (path, text)
    };
    let paths = paths(&format!("{folder}/")).into_iter();
    let files: BTreeMap<_, _> = paths.filter(is_source).map(read).collect();
    assert!(files.len() > 1, "{folder} has sources");
    files
}

fn imports(files: &BTreeMap<String, String>, folder: &str) -> Vec<Import> {
    let mut found = ImportVisitor::default();
    for (path, text) in files {
        let below = path[folder.len() + 1..].trim_end_matches(".rs");
        let names = below
            .split('/')
            .filter(|name| *name != "mod" && *name != "lib");
        found.module = names.map(str::to_owned).collect();
        found.file.clone_from(path);
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        found.visit_file(&file);
    }
    let ImportVisitor {
        mut imports, tests, ..
    } = found;
    imports.retain(|it| !tests.iter().any(|test| it.module.starts_with(test)));
    imports
}

/// What is found on the way through the files of a crate.
#[derive(Default)]
struct ImportVisitor {
    file: String,
    /// Where the way is.
    module: Vec<String>,
    imports: Vec<Import>,
    /// Modules that are only compiled for tests.
    tests: Vec<Vec<String>>,
}

impl ImportVisitor {
    /// Takes in a path if it begins at the crate's root or at a module around this place.
    fn note(&mut self, path: &[String], line: usize) {
        let is_start = |name: &&String| matches!(name.as_str(), "crate" | "super" | "self");
        let n_starts = path.iter().take_while(is_start).count();
        let (starts, rest) = path.split_at(n_starts);
        if starts.is_empty() || rest.is_empty() {
            return;
        }
        let mut target = self.module.clone();
        for start in starts {
            match start.as_str() {
                "crate" => target.clear(),
                "super" => drop(target.pop()),
                _ => {}
            }
        }
        target.extend_from_slice(rest);
        self.imports.push(Import {
            file: self.file.clone(),
            line,
            module: self.module.clone(),
            path: target,
        });
    }

    /// Takes in the paths in a macro or an attribute, whatever else stands there.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => self.note_tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let mut path = vec![first.to_string()];
                    while tokens.next_if(is_separator).is_some() {
                        // The second of two colons.
                        tokens.next();
                        if let Some(name) = tokens.next_if(is_name) {
                            path.push(name.to_string());
                        }
                    }
                    self.note(&path, line(&first));
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for ImportVisitor {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        } else if let Item::Mod(item) = item {
            let module = self.module.iter().cloned();
            self.tests
                .push(module.chain([item.ident.to_string()]).collect());
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let is_test = match item {
            ImplItem::Const(item) => item.attrs.iter().any(is_for_tests),
            ImplItem::Fn(item) => item.attrs.iter().any(is_for_tests),
            _ => false,
        };
        if !is_test {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for leaf in leaves(&item.tree, &[]) {
            self.note(&leaf.path, leaf.line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path
            .segments
            .iter()
            .map(|it| it.ident.to_string())
            .collect();
        let first = path.segments.first().map(|it| line(&it.ident));
        self.note(&names, first.unwrap_or_default());
        visit::visit_path(self, path);
    }

    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.note_tokens(tokens.clone());
    }
}

/// One name that a `use` brings.
struct Leaf {
    path: Vec<String>,
    /// What it is called here.
    name: String,
    line: usize,
}

/// The names that a `use` brings, `a::{B, c::{self, d as e}}` three of them.
fn leaves(tree: &UseTree, above: &[String]) -> Vec<Leaf> {
    let below = |name: &Ident| [above, &[name.to_string()]].concat();
    let leaf = |path: Vec<String>, name: String, line| vec![Leaf { path, name, line }];
    match tree {
        UseTree::Path(it) => leaves(&it.tree, &below(&it.ident)),
        UseTree::Group(it) => it.items.iter().flat_map(|it| leaves(it, above)).collect(),
        UseTree::Name(it) if it.ident == "self" && !above.is_empty() => leaf(
            above.to_vec(),
            above[above.len() - 1].clone(),
            line(&it.ident),
        ),
        UseTree::Name(it) => leaf(below(&it.ident), it.ident.to_string(), line(&it.ident)),
        UseTree::Rename(it) => leaf(below(&it.ident), it.rename.to_string(), line(&it.rename)),
        UseTree::Glob(it) => {
            let path = [above, &["*".to_owned()]].concat();
            let line = it.star_token.spans[0].start().line;
            leaf(path, "*".to_owned(), line)
        }
    }
}

fn line(name: &Ident) -> usize {
    name.span().start().line
}

/// It begins a `::`.
fn is_separator(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(it) if it.as_char() == ':' && it.spacing() == Spacing::Joint)
}

fn is_name(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(_))
}

/// `#[cfg(test)]`, or `#[cfg(any(test, …))]` for tests of other crates.
fn is_for_tests(attribute: &Attribute) -> bool {
    let Meta::List(condition) = &attribute.meta else {
        return false;
    };
    let tokens = condition.tokens.to_string();
    let mut words = tokens.split(|letter: char| !letter.is_alphanumeric());
    attribute.path().is_ident("cfg") && words.any(|word| word == "test") && !tokens.contains("not")
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

fn found(files: &[(&str, &str)]) -> Vec<Import> {
    let files = files
        .iter()
        .map(|(path, text)| (format!("src/{path}"), (*text).to_owned()));
    imports(&files.collect(), "src")
}

#[test]
fn a_path_upward_is_found_wherever_it_stands() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let upward = upward_in(&found(&[(path, text)]), &["low", "high"]);
        let expected = expected.iter().map(|it| format!("src/{path}:{it}"));
        assert_eq!(upward, expected.collect::<Vec<_>>(), "{text}");
    };
    let up: &[&str] = &["1: low uses crate::high::b::B"];
    check("low/a.rs", "use crate::high::b::B;", up);
    check("low/a.rs", "use super::super::high::b::B;", up);
    check("low/mod.rs", "use super::high::b::B;", up);
    check(
        "low/a/c.rs",
        "fn f() -> super::super::super::high::b::B {}",
        up,
    );
    check("low/a.rs", "mod c { type C = crate::high::b::B; }", up);
    check("low/a.rs", "use crate::{low::c, high::{b::{B as C}}};", up);
    check("low/a.rs", "fn f() { assert!(g([crate::high::b::B])) }", up);
    check(
        "low/a.rs",
        "fn f() { vec![C { b: crate::high::b::B }] }",
        up,
    );
    check("low/a.rs", "#[derive(crate::high::b::B)]\nstruct A;", up);
    check(
        "low/a.rs",
        "use crate::{\n    high,\n};",
        &["2: low uses crate::high"],
    );
    check("low/a.rs", "use crate::*;", &["1: low uses crate::*"]);
    check(
        "low/a.rs",
        "use crate::testing::fail;",
        &["1: low uses crate::testing::fail"],
    );

    check(
        "low/a.rs",
        "use crate::low::b::B;\nuse super::c;\nuse high::b::B;",
        &[],
    );
    check(
        "low/a.rs",
        "// crate::high\n/// [`crate::high::b`]\nstruct A;",
        &[],
    );
    check("low/a.rs", "#[cfg(test)]\nuse crate::high::b::B;", &[]);
    check(
        "low/a.rs",
        "#[cfg(test)]\nmod tests { use crate::high::b::B; }",
        &[],
    );
    check("high/b.rs", "use crate::low::a::A;", &[]);
    check("lib.rs", "use high::b::B;\nuse self::low::a::A;", &[]);
}

#[test]
fn a_circle_is_found_below_a_test_and_by_an_exported_name() {
    let check = |b: &str, expected: &[&str]| {
        let a = "#[cfg(test)]\nmod tests;\n\nuse super::b::B;\n";
        let tests = "use super::super::c::C;\n";
        let files = [
            ("a.rs", a),
            ("a/tests.rs", tests),
            ("b.rs", b),
            ("c.rs", "use crate::b::B;"),
        ];
        assert_eq!(
            circles_in(found(&files), "pub use a::{A, make};"),
            expected,
            "{b}"
        );
    };
    let (from, to) = (
        "src/a.rs:4: a uses crate::b::B",
        "src/b.rs:1: b uses crate::a::A",
    );
    check("use super::a::A;", &[from, to]);
    check("use super::A;", &[from, to]);
    check("use crate::{A, Other};", &[from, to]);
    check(
        "// super::a::A\nuse super::Other;\nuse gpumem_b::a::A;",
        &[],
    );
    check(
        "#[cfg(test)]\nmod tests {\n    use super::super::a::A;\n}",
        &[],
    );
}
