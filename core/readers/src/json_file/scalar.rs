//! Values whose type is known only after reading.

use super::{expecting, own_seed};
use crate::oom::within;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A number, or a value of a wrong type, which counts as missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// A whole number; one in quotes, too.
    Int(i64),
    /// A number with a fraction, or beyond 64 bits.
    Float(f64),
    /// Anything else.
    Other,
}

impl Scalar {
    /// The number, without its fraction.
    pub fn int(self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(number),
            Self::Float(number) => Some(number as i64),
            Self::Other => None,
        }
    }

    /// A thousand times the number, rounded: microseconds as nanoseconds.
    pub fn thousandfold(self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(number.saturating_mul(1000)),
            Self::Float(number) => Some((number * 1000.0).round() as i64),
            Self::Other => None,
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar;

    expecting!("a value");

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        let float = Scalar::Float(number as f64);
        Ok(i64::try_from(number).map_or(float, Scalar::Int))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        let number = text.parse().map(Scalar::Int);
        Ok(number
            .or_else(|_| text.parse().map(Scalar::Float))
            .unwrap_or(Scalar::Other))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Scalar, A::Error> {
        IgnoredAny.visit_seq(items).map(|_| Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Scalar, A::Error> {
        IgnoredAny.visit_map(fields).map(|_| Scalar::Other)
    }
}

/// Longer names of fields are cut: no field of ours has such a name.
const LONGEST_KEY: usize = 64;

/// Reads the name of an object's next field into `key`; false if there is none.
pub(crate) fn next_key<'de, A: MapAccess<'de>>(
    map: &mut A,
    key: &mut String,
) -> Result<bool, A::Error> {
    key.clear();
    Ok(map.next_key_seed(TextInto(key, LONGEST_KEY))?.is_some())
}

/// Appends a value to a text: strings as they are, numbers and lists as JSON, nothing for the rest.
/// Beyond its limit the text is cut.
pub struct TextInto<'t>(pub &'t mut String, pub usize);

impl TextInto<'_> {
    fn push(&mut self, text: &str) {
        let n_left = self.1.saturating_sub(self.0.len());
        self.0.push_str(within(text, n_left));
    }
}

own_seed!(TextInto<'_>, deserialize_any);

impl<'de> Visitor<'de> for TextInto<'_> {
    type Value = ();

    expecting!("a value");

    fn visit_str<E: Error>(mut self, text: &str) -> Result<(), E> {
        self.push(text);
        Ok(())
    }

    fn visit_bytes<E: Error>(mut self, text: &[u8]) -> Result<(), E> {
        self.push(&String::from_utf8_lossy(text));
        Ok(())
    }

    fn visit_i64<E: Error>(mut self, number: i64) -> Result<(), E> {
        self.push(&number.to_string());
        Ok(())
    }

    fn visit_u64<E: Error>(mut self, number: u64) -> Result<(), E> {
        self.push(&number.to_string());
        Ok(())
    }

    fn visit_f64<E: Error>(mut self, number: f64) -> Result<(), E> {
        self.push(&number.to_string());
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.push("[");
        let mut between = "";
        loop {
            let n_before = self.0.len();
            self.push(between);
            between = ", ";
            if items.next_element_seed(TextInto(self.0, self.1))?.is_none() {
                self.0.truncate(n_before);
                break;
            }
        }
        self.push("]");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<(), A::Error> {
        IgnoredAny.visit_map(fields).map(|_| ())
    }
}
