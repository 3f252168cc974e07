//! The table of the leaks that are known of libraries.

use std::fmt::Write as _;

use syn::visit::{self, Visit};
use syn::{Expr, ExprStruct, Item, LitStr};

use crate::layers::rust_files;

/// What the museum is run with.
const PINS: &str = "xtask/python/requirements-frameworks.txt";

/// A row for each entry, by library and title.
pub(super) fn known_leaks_table() -> String {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for (path, text) in rust_files("core/analyzer/src/known_leaks") {
        let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        rows.extend(file.items.iter().filter_map(row));
    }
    rows.sort();
    rows.iter().fold(String::new(), |mut table, cells| {
        let _ = writeln!(table, "| {} |", cells.join(" | "));
        table
    })
}

/// Library, versions, what happens, and what to do.
fn row(item: &Item) -> Option<[String; 4]> {
    let Item::Const(constant) = item else {
        return None;
    };
    let Expr::Struct(entry) = &*constant.expr else {
        return None;
    };
    let texts = |name| texts(entry, name);
    let text = |name| texts(name).concat();
    let versions = match &texts("versions")[..] {
        [] => String::new(),
        [since] => format!("from {since}; "),
        [since, healed] => format!("from {since} until {healed}; "),
        others => panic!("versions are {others:?}"),
    };
    let cure = match &*text("cure") {
        "" => "the line that gpumem shows".to_owned(),
        code if is_variant(entry, "cure", "Call") => {
            let shown = code.replace("{object}", "…").replace("{name}", "…");
            format!("`{shown}`")
        }
        sentence => sentence.to_owned(),
    };
    let library = text("library");
    let pins = crate::sources::text(PINS);
    let pin = |line: &str| {
        let (name, version) = line.split_once("==")?;
        let is_it = name.trim_end_matches("-cpu") == library;
        is_it.then(|| format!("seen in {version}"))
    };
    let seen = if is_variant(entry, "pattern", "Outside") {
        "not run, it needs a GPU".to_owned()
    } else {
        let seen = pins.lines().find_map(pin);
        seen.unwrap_or_else(|| "seen in Python's own".to_owned())
    };
    let title = format!("[{}]({}): {}", text("title"), text("link"), text("cause"));
    Some([format!("`{library}`"), versions + &*seen, title, cure])
}

fn field<'a>(entry: &'a ExprStruct, name: &str) -> &'a Expr {
    let mut fields = entry.fields.iter();
    let is_it = |member: &syn::Member| matches!(member, syn::Member::Named(ident) if ident == name);
    let found = fields.find(|it| is_it(&it.member));
    &found
        .unwrap_or_else(|| panic!("an entry has no {name}"))
        .expr
}

/// A field is this variant of its enum.
fn is_variant(entry: &ExprStruct, name: &str, variant: &str) -> bool {
    let path = match field(entry, name) {
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => &path.path,
            _ => return false,
        },
        Expr::Struct(made) => &made.path,
        _ => return false,
    };
    path.segments.last().is_some_and(|it| it.ident == variant)
}

/// The texts that a field has.
fn texts(entry: &ExprStruct, name: &str) -> Vec<String> {
    struct Texts(Vec<String>);
    impl Visit<'_> for Texts {
        fn visit_lit_str(&mut self, text: &LitStr) {
            self.0.push(text.value());
            visit::visit_lit_str(self, text);
        }
    }
    let mut texts = Texts(Vec::new());
    texts.visit_expr(field(entry, name));
    texts.0
}
