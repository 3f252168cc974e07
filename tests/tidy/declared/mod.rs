//! What findings and runs are, as the code declares it, for those who read them: JSON Schema, Python, tables of the docs.

mod known_leaks;
mod python;
mod runs;
mod schema;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Ident;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, Fields, File, GenericArgument, Item, ItemEnum, ItemStruct, Lit, Meta,
    PathArguments, Type,
};

use self::known_leaks::known_leaks_table;
use self::python::python;
use self::schema::{indented, one_of};
use self::tables::{fields_table, kinds_table};
use crate::layers::rust_files;
use crate::sources::text;

const SCHEMA: &str = "docs/report.schema.json";
const PYTHON: &str = "pybind/python/gpumem/details.py";
const FORMATS: &str = "docs/formats.md";
const FINDINGS: &str = "docs/findings.md";
const KNOWN_LEAKS: &str = "docs/known_leaks.md";

/// Attributes for serde.
const UNDERSTOOD: [&str; 7] = [
    "flatten",
    "into",
    "rename",
    "rename_all",
    "serialize_with",
    "skip",
    "tag",
];

/// The files that repeat what the code declares, each as it must be.
pub(crate) fn files() -> Vec<(&'static str, String)> {
    let schema = text(SCHEMA);
    let declared = Declared::new(&schema);
    let [kinds, reason, details] =
        ["FindingKind", "Reason", "FindingDetails"].map(|name| declared.enumeration(name));
    let variants = declared.variants(details);
    let reasons = declared.variants(reason);
    let of_kinds = Value::Name(names(kinds), None).schema();
    let mut schema = schema;
    for (name, value) in [
        ("kind", of_kinds),
        ("reason", one_of(reason, &reasons)),
        ("details", one_of(details, &variants)),
        ("run", runs::run(&declared).schema(None)),
    ] {
        let value = indented(&value, 2);
        schema = replaced(&schema, &format!("\n  \"{name}\": "), "\n  }", &value);
    }
    let formats = text(FORMATS);
    let formats = replaced(
        &formats,
        "| `type` | fields |\n|---|---|\n",
        "\n\n",
        &fields_table(&variants),
    );
    let findings = text(FINDINGS);
    let start = "| verdict | `kind` | meaning |\n|---|---|---|\n";
    let findings = replaced(&findings, start, "\n\n", &kinds_table(kinds));
    let known_leaks = text(KNOWN_LEAKS);
    let start = "| library | versions | what happens | what to do |\n|---|---|---|---|\n";
    let known_leaks = replaced(&known_leaks, start, "\n## ", &(known_leaks_table()));
    vec![
        (SCHEMA, schema),
        (PYTHON, python(&variants, reason, &reasons)),
        (FORMATS, formats),
        (FINDINGS, findings),
        (KNOWN_LEAKS, known_leaks),
    ]
}

/// What is between `start` and `end`, in the place of what is there now.
fn replaced(text: &str, start: &str, end: &str, between: &str) -> String {
    let found = text.find(start).map(|at| at + start.len());
    let start = found.unwrap_or_else(|| panic!("nothing is like {start:?}"));
    let n_between = text[start..]
        .find(end)
        .unwrap_or_else(|| panic!("nothing is like {end:?}"));
    [&text[..start], between, &text[start + n_between..]].concat()
}

/// The types that the analyzer and the model declare.
struct Declared {
    structs: BTreeMap<String, ItemStruct>,
    enums: BTreeMap<String, ItemEnum>,
    /// What the schema describes by hand.
    in_schema: BTreeSet<String>,
}

/// What one variant of an enum has in JSON.
struct Variant {
    /// Its `type`.
    tag: String,
    docs: String,
    class: Class,
}

/// An object in JSON, a class in Python.
#[derive(Clone)]
struct Class {
    name: String,
    docs: String,
    fields: Vec<Field>,
    /// The type whose fields come first.
    base: Option<Box<Class>>,
}

#[derive(Clone)]
struct Field {
    name: String,
    docs: String,
    value: Value,
}

#[derive(Clone)]
enum Value {
    Unsigned,
    Signed,
    Number,
    Boolean,
    Text,
    /// One of these names, and what the schema calls them, if it does.
    Name(Vec<String>, Option<String>),
    /// An object, and what the schema calls it, if it does.
    Object(Class, Option<String>),
    List(Box<Value>),
    Pair(Box<Value>),
    Optional(Box<Value>),
}

impl Declared {
    fn new(schema: &str) -> Self {
        let schema: serde_json::Value = serde_json::from_str(schema).expect("the schema is JSON");
        let in_schema = schema["$defs"].as_object().expect("it has definitions");
        let mut declared = Self {
            structs: BTreeMap::new(),
            enums: BTreeMap::new(),
            in_schema: in_schema.keys().cloned().collect(),
        };
        // Of two with the same name, the analyzer's counts.
        for folder in ["core/model/src", "core/analyzer/src"] {
            for (path, text) in rust_files(folder) {
                let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
                declared.take(file);
            }
        }
        declared
    }

    fn take(&mut self, file: File) {
        for item in file.items {
            match item {
                Item::Struct(item) => drop(self.structs.insert(item.ident.to_string(), item)),
                Item::Enum(item) => drop(self.enums.insert(item.ident.to_string(), item)),
                Item::Macro(item) if item.mac.path.is_ident("named") => {
                    let item: ItemEnum = item.mac.parse_body().expect("it is compiled");
                    self.enums.insert(item.ident.to_string(), item);
                }
                _ => {}
            }
        }
    }

    fn enumeration(&self, name: &str) -> &ItemEnum {
        self.enums
            .get(name)
            .unwrap_or_else(|| panic!("no enum {name}"))
    }

    fn variants(&self, item: &ItemEnum) -> Vec<Variant> {
        let tagged = serde_of(&item.attrs).into_iter();
        let form = [("rename_all", "snake_case"), ("tag", "type")];
        assert!(tagged.eq(form.map(|(name, value)| (name.to_owned(), value.to_owned()))));
        item.variants.iter().map(|it| self.variant(it)).collect()
    }

    fn variant(&self, variant: &syn::Variant) -> Variant {
        let name = variant.ident.to_string();
        let tag = serde_of(&variant.attrs)
            .remove("rename")
            .unwrap_or_else(|| snake_case(&name));
        let mut class = Class {
            name: camel_case(&tag),
            docs: docs(&variant.attrs),
            ..self.class(&name, &variant.attrs, &variant.fields)
        };
        let inner = match &variant.fields {
            Fields::Unnamed(fields) => Some(self.class_of(&fields.unnamed[0].ty)),
            _ if class.fields.is_empty() => class.base.take().map(|base| *base),
            _ => None,
        };
        Variant {
            tag,
            docs: class.docs.clone(),
            class: inner.unwrap_or(class),
        }
    }

    fn class_of(&self, of: &Type) -> Class {
        match self.value(of) {
            Value::Object(class, _) => class,
            _ => refuse(of),
        }
    }

    fn class(&self, name: &str, attributes: &[Attribute], fields: &Fields) -> Class {
        let mut class = Class {
            name: serde_of(attributes)
                .remove("rename")
                .unwrap_or_else(|| name.to_owned()),
            docs: docs(attributes),
            fields: Vec::new(),
            base: None,
        };
        for field in fields {
            let (Some(name), mut serde) = (&field.ident, serde_of(&field.attrs)) else {
                continue;
            };
            if serde.contains_key("skip") {
                continue;
            }
            if serde.contains_key("flatten") {
                class.base = Some(Box::new(self.class_of(&field.ty)));
                continue;
            }
            let value = self.value(&field.ty);
            let is_number = matches!(value.innermost(), Value::Number);
            assert_eq!(serde.contains_key("serialize_with"), is_number, "{name}");
            class.fields.push(Field {
                name: serde.remove("rename").unwrap_or_else(|| name.to_string()),
                docs: docs(&field.attrs),
                value,
            });
        }
        class
    }

    fn value(&self, of: &Type) -> Value {
        let path = match of {
            Type::Path(it) => it.path.segments.last().expect("a type has a name"),
            Type::Tuple(it) => return Value::Pair(Box::new(self.value(&it.elems[0]))),
            Type::Reference(it) => return self.value(&it.elem),
            _ => refuse(of),
        };
        let name = path.ident.to_string();
        if let PathArguments::AngleBracketed(inner) = &path.arguments {
            let GenericArgument::Type(inner) = &inner.args[0] else {
                refuse(of);
            };
            let inner = self.value(inner);
            return match name.as_str() {
                "Box" => inner,
                "Option" => Value::Optional(Box::new(inner)),
                "Vec" => Value::List(Box::new(inner)),
                _ => panic!("no value in JSON: {name}"),
            };
        }
        match name.as_str() {
            "Bytes" | "Nanos" | "RunIdx" | "u32" | "u64" | "usize" => Value::Unsigned,
            "ByteDelta" => Value::Signed,
            "f64" => Value::Number,
            "bool" => Value::Boolean,
            "String" | "str" => Value::Text,
            _ => self.own(&name),
        }
    }

    fn own(&self, name: &str) -> Value {
        let in_schema = Some(snake_case(name)).filter(|it| self.in_schema.contains(it));
        if let Some(item) = self.enums.get(name) {
            return Value::Name(names(item), in_schema);
        }
        let item = self
            .structs
            .get(name)
            .unwrap_or_else(|| panic!("nothing declares {name}"));
        if serde_of(&item.attrs).contains_key("into") {
            return Value::Text;
        }
        Value::Object(self.class(name, &item.attrs, &item.fields), in_schema)
    }
}

impl Class {
    fn new(name: &str, fields: Vec<Field>) -> Self {
        Self {
            name: name.to_owned(),
            docs: String::new(),
            fields,
            base: None,
        }
    }

    /// All its fields, those of its base first.
    fn all(&self) -> Vec<&Field> {
        let base = self.base.iter().flat_map(|base| base.all());
        base.chain(&self.fields).collect()
    }
}

impl Value {
    /// What is in its lists.
    fn innermost(&self) -> &Self {
        match self {
            Self::Optional(inner) | Self::List(inner) | Self::Pair(inner) => inner.innermost(),
            _ => self,
        }
    }
}

fn refuse(of: &Type) -> ! {
    let line = of.span().start().line;
    panic!("a field's type in line {line} of its file has no form in JSON")
}

/// The names of an enum's variants in JSON, if it is one of names only.
fn names(item: &ItemEnum) -> Vec<String> {
    let name = |variant: &syn::Variant| match &variant.discriminant {
        Some((_, Expr::Lit(name))) => match &name.lit {
            Lit::Str(name) => name.value(),
            _ => panic!("{} has no name", variant.ident),
        },
        _ => panic!("{} has no name", variant.ident),
    };
    item.variants.iter().map(name).collect()
}

/// The attributes for serde: each name, with what is set to it.
fn serde_of(attributes: &[Attribute]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for attribute in attributes.iter().filter(|it| it.path().is_ident("serde")) {
        let all = attribute.parse_args_with(Punctuated::<Meta, syn::Token![,]>::parse_terminated);
        for one in all.expect("it is compiled") {
            let value = one.require_name_value().ok();
            let value = value.and_then(|it| literal(&it.value)).unwrap_or_default();
            let name = one.path().get_ident().map(Ident::to_string);
            let name = name.filter(|it| UNDERSTOOD.contains(&&**it));
            let name = name.expect("an attribute for serde that is not understood here");
            found.insert(name, value);
        }
    }
    found
}

/// What the documentation says, on one line.
fn docs(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|it| match &it.meta {
        Meta::NameValue(it) if it.path.is_ident("doc") => literal(&it.value),
        _ => None,
    });
    let docs = lines
        .map(|it| it.trim().to_owned())
        .collect::<Vec<_>>()
        .join(" ");
    assert!(!docs.contains("[`"), "only Rust has this link: {docs}");
    docs
}

fn literal(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(value) => match &value.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Inside of a sentence: without a full stop, and with a small letter unless a name begins it.
fn uncapitalised(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    let first = letters.next().unwrap_or_default();
    let is_name = letters.clone().next().is_some_and(char::is_uppercase);
    let first = if is_name {
        first
    } else {
        first.to_ascii_lowercase()
    };
    letters.fold(first.to_string(), |text, letter| text + &letter.to_string())
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn camel_case(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(word).collect()
}
