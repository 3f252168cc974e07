//! How values are written as JSON.

use serde::{Serialize, Serializer};

/// A float that may not be finite.
pub struct JsonNumber(pub f64);

/// Of a number, which may not be finite.
pub fn number<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    JsonNumber(*number).serialize(serializer)
}

/// Of each number, which may not be finite.
pub fn numbers<S: Serializer>(numbers: &[f64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.iter().copied().map(JsonNumber))
}

impl Serialize for JsonNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            n if n.is_finite() => serializer.serialize_f64(n),
            n if n.is_nan() => serializer.serialize_str("nan"),
            n if n > 0.0 => serializer.serialize_str("inf"),
            _ => serializer.serialize_str("-inf"),
        }
    }
}

/// Writes a type as an object, each field with where its value comes from: `Type, it => { field: value }`.
#[macro_export]
macro_rules! object {
    ($type:ty, $it:ident => { $($field:ident: $value:expr,)* }) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $it = self;
                let mut map = serializer.serialize_map(None)?;
                $(serde::ser::SerializeMap::serialize_entry(&mut map, stringify!($field), &$value)?;)*
                serde::ser::SerializeMap::end(map)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_finite_are_words() {
        let shown = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.5].map(JsonNumber);
        let json = serde_json::to_string(&shown).expect("numbers");
        assert_eq!(json, r#"["inf","-inf","nan",0.5]"#);
    }
}
