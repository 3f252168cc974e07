//! Python's classes for what only one kind of finding has.

use std::collections::BTreeSet;
use std::fmt::Write;

use syn::ItemEnum;

use super::{Class, Field, Value, Variant, camel_case, docs, uncapitalised};

/// Lines of Python take at most 100 columns: four before the text, six for its quotes.
const WIDTH: usize = 90;

pub(super) fn python(variants: &[Variant], reason: &ItemEnum, reasons: &[Variant]) -> String {
    let mut classes = Classes::default();
    classes.add_reason(reason, reasons);
    let mut of_type = Vec::new();
    for variant in variants {
        let same = variants
            .iter()
            .filter(|it| it.class.name == variant.class.name);
        let is_shared = same.count() > 1 || variants.iter().any(|it| it.is_based_on(variant));
        let name = if is_shared {
            variant.class.name.clone()
        } else {
            camel_case(&variant.tag)
        };
        classes.add(&variant.class, &name);
        of_type.push((&variant.tag, name));
    }
    let mut union: Vec<&str> = Vec::new();
    for (_, name) in &of_type {
        if !union.contains(&&**name) {
            union.push(name);
        }
    }
    let of_type = of_type
        .iter()
        .map(|(tag, name)| format!("    \"{tag}\": {name},\n"));
    format!(
        "\"\"\"What only one kind of finding has: ``Finding.details``. Sizes are bytes.\n\n\
         ``cargo xtask findings`` writes this file, from what the analyzer declares.\n\"\"\"\n\n\
         from __future__ import annotations\n\n\
         from dataclasses import dataclass\nfrom typing import Any\n\n\
         from gpumem._fields import read\n\
         {}\n\nDetails = (\n    {}\n)\n\n\
         BY_TYPE: dict[str, type[Details]] = {{\n{}}}\n\n\n\
         def details(entry: dict[str, Any]) -> Details:\n    \
         \"\"\"Return the details of JSON's ``entry``, whose ``type`` names them.\"\"\"\n    \
         return read(BY_TYPE[entry[\"type\"]], entry)\n",
        classes.text,
        union.join("\n    | "),
        of_type.collect::<String>(),
    )
}

impl Variant {
    fn is_based_on(&self, other: &Self) -> bool {
        let base = self.class.base.as_ref();
        base.is_some_and(|base| base.name == other.class.name)
    }
}

/// Python's classes, each after those that it needs.
#[derive(Default)]
struct Classes {
    text: String,
    names: BTreeSet<String>,
}

impl Classes {
    fn add(&mut self, class: &Class, name: &str) {
        if self.names.contains(name) {
            return;
        }
        if let Some(base) = &class.base {
            self.add(base, &base.name);
        }
        for field in &class.fields {
            if let Value::Object(class, _) = field.value.innermost() {
                self.add(class, &class.name);
            }
        }
        let base = class
            .base
            .as_ref()
            .map_or_else(String::new, |base| format!("({})", base.name));
        self.begin(&format!("{name}{base}"), &class.docs);
        for field in &class.fields {
            self.field(&field.name, &field.value.python(), &field.docs_with_names());
        }
        self.names.insert(name.to_owned());
    }

    /// One class for all reasons: the fields of others are `None`.
    fn add_reason(&mut self, item: &ItemEnum, reasons: &[Variant]) {
        self.begin("Reason", &docs(&item.attrs));
        let all = reasons
            .iter()
            .map(|it| format!("`{}` ({})", it.tag, uncapitalised(&it.docs)));
        let all: Vec<String> = all.collect();
        self.field("type", "str", &format!("{}.", all.join(", ")));
        let fields = reasons.iter().flat_map(|it| it.class.all());
        let mut names: Vec<(&str, &Value)> = Vec::new();
        for field in fields {
            if !names.iter().any(|(name, _)| *name == field.name) {
                names.push((&field.name, &field.value));
            }
        }
        for (name, value) in names {
            let of_reason = |it: &Variant| {
                let field = it.class.all().into_iter().find(|it| it.name == name)?;
                Some(format!("`{}`: {}.", it.tag, uncapitalised(&field.docs)))
            };
            let docs: Vec<String> = reasons.iter().filter_map(of_reason).collect();
            self.field(
                name,
                &format!("{} | None = None", value.python()),
                &docs.join(" "),
            );
        }
    }

    fn begin(&mut self, head: &str, docs: &str) {
        let docs = docs.replace('`', "``");
        assert!(
            docs.len() <= WIDTH,
            "too long for the first line of a class: {docs}"
        );
        let begin =
            format!("\n\n@dataclass(frozen=True)\nclass {head}:\n    \"\"\"{docs}\"\"\"\n\n");
        self.text.push_str(&begin);
    }

    fn field(&mut self, name: &str, of: &str, docs: &str) {
        let docs = wrapped(&docs.replace('`', "``"));
        write!(self.text, "    {name}: {of}\n    \"\"\"{docs}\"\"\"\n").expect("a text takes any");
    }
}

fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= WIDTH {
            write!(line, " {word}").expect("a text takes any");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n    ")
}

impl Field {
    /// What it is, with the names that it can be.
    fn docs_with_names(&self) -> String {
        match self.value.innermost() {
            Value::Name(names, _) if !self.docs.contains('`') => {
                let names: Vec<String> = names.iter().map(|it| format!("`{it}`")).collect();
                format!("{}: {}.", self.docs.trim_end_matches('.'), names.join(", "))
            }
            _ => self.docs.clone(),
        }
    }
}

impl Value {
    fn python(&self) -> String {
        match self {
            Self::Unsigned | Self::Signed => "int".to_owned(),
            Self::Number => "float".to_owned(),
            Self::Boolean => "bool".to_owned(),
            Self::Text | Self::Name(..) => "str".to_owned(),
            Self::Object(class, _) => class.name.clone(),
            Self::List(item) => format!("tuple[{}, ...]", item.python()),
            Self::Pair(item) => format!("tuple[{0}, {0}]", item.python()),
            Self::Optional(inner) => format!("{} | None", inner.python()),
        }
    }
}
