//! A number or a short text; other values are skipped.

use crate::json_file::expecting;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Longer texts are not figures.
const MAX_TEXT: usize = 256;

/// A value of an event.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum StormlogValue {
    #[default]
    None,
    Whole(i64),
    Decimal(f64),
    Text(String),
}

impl StormlogValue {
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

    /// A whole number; a decimal one is rounded: pandas writes decimals in columns with gaps.
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

impl<'de> Deserialize<'de> for StormlogValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FigureVisitor)
    }
}

struct FigureVisitor;

impl<'de> Visitor<'de> for FigureVisitor {
    type Value = StormlogValue;

    expecting!("a value");

    fn visit_bool<E>(self, _: bool) -> Result<StormlogValue, E> {
        Ok(StormlogValue::None)
    }

    fn visit_i64<E>(self, whole: i64) -> Result<StormlogValue, E> {
        Ok(StormlogValue::Whole(whole))
    }

    fn visit_u64<E>(self, whole: u64) -> Result<StormlogValue, E> {
        Ok(i64::try_from(whole).map_or(StormlogValue::None, StormlogValue::Whole))
    }

    fn visit_f64<E>(self, decimal: f64) -> Result<StormlogValue, E> {
        Ok(StormlogValue::Decimal(decimal))
    }

    fn visit_str<E>(self, text: &str) -> Result<StormlogValue, E> {
        let is_short = text.len() <= MAX_TEXT;
        Ok(if is_short {
            StormlogValue::Text(text.to_owned())
        } else {
            StormlogValue::None
        })
    }

    fn visit_unit<E>(self) -> Result<StormlogValue, E> {
        Ok(StormlogValue::None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<StormlogValue, A::Error> {
        IgnoredAny.visit_seq(items).map(|_| StormlogValue::None)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<StormlogValue, A::Error> {
        IgnoredAny.visit_map(entries).map(|_| StormlogValue::None)
    }
}
