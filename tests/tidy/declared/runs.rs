//! What a run is in a report's JSON: the figures that are declared for all who show them, and what is nested in it.

use proc_macro2::Ident;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Block, Expr, ExprClosure, Item, Stmt, Token, parenthesized};

use super::{Class, Declared, Field, Value, docs};
use crate::sources::text;

const FIGURES: &str = "core/report/src/figures.rs";

/// A line of `figures!`.
struct Figure {
    name: String,
    docs: String,
    kind: String,
    is_known: bool,
}

impl Parse for Figure {
    fn parse(line: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = line.call(Attribute::parse_outer)?;
        let name: Ident = line.parse()?;
        line.parse::<Token![:]>()?;
        let kind: Ident = line.parse()?;
        let value;
        parenthesized!(value in line);
        let closure: ExprClosure = value.parse()?;
        let body = closure.body.span().source_text().unwrap_or_default();
        Ok(Self {
            name: name.to_string(),
            docs: docs(&attributes),
            is_known: kind == "Flag" || body.starts_with("Some(") && !body.contains('?'),
            kind: kind.to_string(),
        })
    }
}

/// A run on a device.
pub(super) fn run(declared: &Declared) -> Class {
    let file = syn::parse_file(&text(FIGURES)).expect("it is compiled");
    let figures = |function: &str| {
        let mut items = file.items.iter();
        let found = items.find_map(|item| match item {
            Item::Fn(item) if item.sig.ident == function => Some(in_body(&item.block)),
            _ => None,
        });
        let figures = found.unwrap_or_else(|| panic!("{FIGURES} has no {function}()"));
        figures
            .into_iter()
            .map(|figure| declared.of_figure(figure))
            .collect::<Vec<_>>()
    };
    let nested = |name: &str, docs: &str, value: Value| Field {
        name: name.to_owned(),
        docs: docs.to_owned(),
        value,
    };
    let mut fields = figures("run_places");
    fields.push(nested("cell", "The cell that it ran.", in_schema("cell")));
    fields.extend(figures("run_figures"));
    fields.extend([
        nested(
            "overlaps",
            "Runs that were under way at the same time and are neither around it nor in it.",
            Value::List(Box::new(Value::Unsigned)),
        ),
        nested(
            "gaps",
            "How far its levels are apart when it ended, and what is between them.",
            Value::List(Box::new(in_schema("gap"))),
        ),
        nested(
            "oom",
            "The error with which it ran out of memory.",
            Value::Optional(Box::new(in_schema("oom"))),
        ),
    ]);
    Class {
        docs: "One run on one device.".to_owned(),
        ..Class::new("run", fields)
    }
}

/// The figures of the `figures!` that a function returns.
fn in_body(body: &Block) -> Vec<Figure> {
    let lines = body.stmts.iter().find_map(|statement| match statement {
        Stmt::Expr(Expr::Macro(it), None) => Some(&it.mac),
        _ => None,
    });
    let lines = lines.expect("it returns figures");
    let lines = lines.parse_body_with(Punctuated::<Figure, Token![,]>::parse_terminated);
    lines.expect("it is compiled").into_iter().collect()
}

/// What the schema describes by hand.
fn in_schema(name: &str) -> Value {
    Value::Object(Class::new(name, Vec::new()), Some(name.to_owned()))
}

impl Declared {
    fn of_figure(&self, figure: Figure) -> Field {
        let value = match &*figure.kind {
            "Bytes" | "Nanos" | "Count" => Value::Unsigned,
            "Change" => Value::Signed,
            "Flag" => Value::Boolean,
            "Text" => Value::Text,
            "Name" => self.own(&super::camel_case(&figure.name)),
            kind => panic!("no value in JSON: {kind}"),
        };
        Field {
            name: figure.name,
            docs: figure.docs,
            value: if figure.is_known {
                value
            } else {
                Value::Optional(Box::new(value))
            },
        }
    }
}
