//! Objects of JSON.

/// Writes a type as an object, each field with where its value comes from: `Type, it => { field: value }`.
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

pub(super) use object;
