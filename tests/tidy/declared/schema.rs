//! The schema of a report: what is in it of findings and runs.

use serde::{Serialize, Serializer};
use syn::ItemEnum;

use super::{Class, Field, Value, Variant, docs};

pub(super) fn one_of(item: &ItemEnum, variants: &[Variant]) -> Schema {
    let all = variants.iter().map(|it| it.class.schema(Some(&it.tag)));
    // Growth alone has a reason.
    let none = (item.ident == "Reason").then(|| object([("type", "null".into())]));
    let all = all.chain(none).map(Json::Object).collect();
    object([
        ("description", docs(&item.attrs).as_str().into()),
        ("oneOf", Json::List(all)),
    ])
}

/// JSON on lines of its own, indented, without the bracket at its end.
pub(super) fn indented(schema: &Schema, depth: usize) -> String {
    let mut lines = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut lines, format);
    schema.serialize(&mut serializer).expect("it is JSON");
    let lines = String::from_utf8(lines).expect("JSON is text");
    let lines = lines.replace('\n', &format!("\n{}", " ".repeat(depth)));
    let end = lines.rfind('\n').unwrap_or_default();
    lines[..end].to_owned()
}

/// JSON whose objects keep their order, as a person would write it.
enum Json {
    Text(String),
    Number(u8),
    List(Vec<Json>),
    Object(Schema),
}

/// A JSON Schema: an object.
pub(super) struct Schema(Vec<(String, Json)>);

impl Schema {
    fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Schema> for Json {
    fn from(schema: Schema) -> Self {
        Self::Object(schema)
    }
}

impl<'n, T: Into<Json>> FromIterator<(&'n str, T)> for Schema {
    fn from_iter<I: IntoIterator<Item = (&'n str, T)>>(fields: I) -> Self {
        let field = |(name, value): (&str, T)| (name.to_owned(), value.into());
        Self(fields.into_iter().map(field).collect())
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Number(number) => number.serialize(serializer),
            Self::List(items) => items.serialize(serializer),
            Self::Object(schema) => schema.serialize(serializer),
        }
    }
}

fn object<const N: usize>(fields: [(&str, Json); N]) -> Schema {
    fields.into_iter().collect()
}

fn list(texts: &[impl AsRef<str>]) -> Json {
    Json::List(texts.iter().map(|it| it.as_ref().into()).collect())
}

impl Class {
    pub(super) fn schema(&self, tag: Option<&str>) -> Schema {
        let tagged = tag.map(|tag| ("type", object([("const", Json::from(tag))])));
        let fields = self.all().into_iter().map(|it| (&*it.name, it.schema()));
        let properties: Schema = tagged.into_iter().chain(fields).collect();
        let required = properties.0.iter().map(|(name, _)| name.as_str().into());
        object([
            ("description", Json::from(&*self.docs)),
            ("type", "object".into()),
            ("required", Json::List(required.collect())),
            ("properties", Json::Object(properties)),
        ])
    }
}

impl Field {
    fn schema(&self) -> Schema {
        let mut schema = self.value.schema();
        schema.0.retain(|(name, _)| name != "description");
        schema
            .0
            .insert(0, ("description".to_owned(), self.docs.as_str().into()));
        schema
    }
}

impl Value {
    pub(super) fn schema(&self) -> Schema {
        let of_type = |of: &str| object([("type", of.into())]);
        match self {
            Self::Unsigned => of_type("integer").with("minimum", Json::Number(0)),
            Self::Signed => of_type("integer"),
            Self::Number => object([("$ref", "#/$defs/number".into())]),
            Self::Boolean => of_type("boolean"),
            Self::Text => of_type("string"),
            Self::Name(_, Some(name)) | Self::Object(_, Some(name)) => {
                object([("$ref", Json::Text(format!("#/$defs/{name}")))])
            }
            Self::Name(names, None) => of_type("string").with("enum", list(names)),
            Self::Object(class, None) => class.schema(None),
            Self::List(item) => of_type("array").with("items", item.schema()),
            Self::Pair(item) => Self::List(item.clone())
                .schema()
                .with("minItems", Json::Number(2))
                .with("maxItems", Json::Number(2)),
            Self::Optional(inner) => {
                let mut schema = inner.schema();
                for (name, value) in &mut schema.0 {
                    if let ("type", Json::Text(of)) = (&**name, &*value) {
                        *value = list(&[of, "null"]);
                        return schema;
                    }
                }
                let either = vec![schema.into(), of_type("null").into()];
                object([("anyOf", Json::List(either))])
            }
        }
    }
}
