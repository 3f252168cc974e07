//! Tables of the docs: the kinds of findings, and what each has in JSON.

use std::collections::BTreeMap;

use syn::{Expr, Item, ItemEnum, Lit, Pat};

use super::{Class, Field, Value, Variant, docs, names, uncapitalised};
use crate::sources::text;

/// A row for each variant: its `type`, its fields.
pub(super) fn fields_table(variants: &[Variant]) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for variant in variants {
        let (tag, fields) = (format!("`{}`", variant.tag), variant.class.names());
        match rows.iter_mut().find(|row| row.1 == fields) {
            Some((tags, _)) => *tags = format!("{tags}, {tag}"),
            None => rows.push((tag, fields)),
        }
    }
    let row = |(tags, fields): (String, String)| format!("| {tags} | {fields} |");
    rows.into_iter().map(row).collect::<Vec<_>>().join("\n")
}

/// A row for each kind: its heading, its name, what it means.
pub(super) fn kinds_table(kinds: &ItemEnum) -> String {
    let headings = headings();
    let row = |(variant, name): (&syn::Variant, String)| {
        let heading = &headings[&variant.ident.to_string()];
        format!(
            "| {heading} | `{name}` | {} |",
            uncapitalised(&docs(&variant.attrs))
        )
    };
    let rows = kinds.variants.iter().zip(names(kinds)).map(row);
    rows.collect::<Vec<_>>().join("\n")
}

/// What the wording calls each kind, in any state.
fn headings() -> BTreeMap<String, String> {
    let file = syn::parse_file(&text("core/wording/src/lib.rs")).expect("it is compiled");
    let function = file.items.into_iter().find_map(|item| match item {
        Item::Fn(item) if item.sig.ident == "heading" => item.block.stmts.into_iter().next(),
        _ => None,
    });
    let Some(syn::Stmt::Expr(Expr::Match(found), _)) = function else {
        panic!("headings are a match");
    };
    let heading = |arm: syn::Arm| match (arm.pat, *arm.body) {
        (Pat::Tuple(pattern), Expr::Lit(heading)) => match (&pattern.elems[0], heading.lit) {
            (Pat::Path(kind), Lit::Str(heading)) => {
                let kind = kind.path.segments.last()?.ident.to_string();
                Some((kind, heading.value()))
            }
            _ => None,
        },
        _ => None,
    };
    // The last arm of a kind has no condition.
    found.arms.into_iter().filter_map(heading).collect()
}

impl Class {
    /// `` `place`, `parts` (`name`, `n_bytes`) ``.
    fn names(&self) -> String {
        let name = |it: &Field| match it.value.innermost() {
            Value::Object(class, _) => format!("`{}` ({})", it.name, class.names()),
            _ => format!("`{}`", it.name),
        };
        self.all()
            .into_iter()
            .map(name)
            .collect::<Vec<_>>()
            .join(", ")
    }
}
