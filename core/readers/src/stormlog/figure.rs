//! A number or a short text; anything else is passed over without being kept.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Longer texts are no figure.
const MAX_TEXT: usize = 256;

/// A value of an event.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Figure {
    #[default]
    None,
    Whole(i64),
    Decimal(f64),
    Text(String),
}

impl Figure {
    /// A field of CSV.
    pub(super) fn of_text(text: &str) -> Self {
        let text = text.trim();
        if let Ok(whole) = text.parse() {
            return Self::Whole(whole);
        }
        match text.parse::<f64>() {
            Ok(decimal) if decimal.is_finite() => Self::Decimal(decimal),
            Ok(_) => Self::None,
            Err(_) if text.is_empty() || text.len() > MAX_TEXT => Self::None,
            Err(_) => Self::Text(text.to_owned()),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number; of a decimal one, which pandas makes of columns with gaps, the nearest.
    pub(super) fn whole(&self) -> Option<i64> {
        match self {
            Self::Whole(whole) => Some(*whole),
            Self::Decimal(decimal) if decimal.is_finite() => Some(decimal.round() as i64),
            _ => None,
        }
    }

    pub(super) fn bytes(&self) -> Option<u64> {
        self.whole().and_then(|bytes| u64::try_from(bytes).ok())
    }

    pub(super) fn seconds(&self) -> Option<f64> {
        match self {
            Self::Whole(whole) => Some(*whole as f64),
            Self::Decimal(decimal) => Some(*decimal),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FigureVisitor)
    }
}

struct FigureVisitor;

impl<'de> Visitor<'de> for FigureVisitor {
    type Value = Figure;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Figure, E> {
        Ok(Figure::None)
    }

    fn visit_i64<E>(self, whole: i64) -> Result<Figure, E> {
        Ok(Figure::Whole(whole))
    }

    fn visit_u64<E>(self, whole: u64) -> Result<Figure, E> {
        Ok(i64::try_from(whole).map_or(Figure::None, Figure::Whole))
    }

    fn visit_f64<E>(self, decimal: f64) -> Result<Figure, E> {
        Ok(Figure::Decimal(decimal))
    }

    fn visit_str<E>(self, text: &str) -> Result<Figure, E> {
        let is_short = text.len() <= MAX_TEXT;
        Ok(if is_short {
            Figure::Text(text.to_owned())
        } else {
            Figure::None
        })
    }

    fn visit_unit<E>(self) -> Result<Figure, E> {
        Ok(Figure::None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Figure, A::Error> {
        IgnoredAny.visit_seq(items).map(|_| Figure::None)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Figure, A::Error> {
        IgnoredAny.visit_map(entries).map(|_| Figure::None)
    }
}
