//! Maps of the wire: each type lists its fields once, for writing and reading.
//!
//! ```text
//! wire! { Revision {
//!     required "hash" => hash,
//!     sparse "text" => text,
//! }}
//! ```
//!
//! The text is the name on the wire, behind the arrow stands where the value is. Fields are written
//! in this order and read in any. A word before the name says more of a field:
//!
//! | field | is written | if it is absent, reading |
//! |---|---|---|
//! | `"hash"` | always | leaves the default |
//! | `sparse "hash"` | unless it is the default | leaves the default |
//! | `required "hash"` | always | fails |
//!
//! Most types of a recording list their own fields. If the wire has another shape, a `Wire…` type
//! has that shape and lists the fields. `wire! { IpythonRetention => WireKept { … }}` writes the first
//! and reads the second: both have fields of these names.
//!
//! serde writes the values; [`super::messagepack`] has the reason why it does not read them.

use gpumem_model::printable::printable;
use serde::ser::{Serialize, Serializer};

use super::messagepack::Reader;
use super::refused::{DecodeError, ReadResult};

/// What a value is read into.
pub(super) trait Decode {
    /// Reads it; what was there before is replaced.
    fn fill(&mut self, reader: &mut Reader<'_>) -> ReadResult<()>;
}

/// What a map is read into; `wire!` implements it.
pub(super) trait DecodeFields {
    /// Reads the fields that are there; the others stay as they are.
    fn fill_fields(&mut self, reader: &mut Reader<'_>) -> ReadResult<()>;
}

/// What a value is written from.
///
/// Not serde's own trait: a type of the recording has one form on the wire and another in JSON.
pub(super) trait Encode {
    /// Writes it.
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

/// A value for serde.
pub(super) struct Written<'a, T: ?Sized>(pub(super) &'a T);

impl<T: Encode + ?Sized> Serialize for Written<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.encode(serializer)
    }
}

/// Lists the fields of a map, for writing and reading; see the top of this file.
macro_rules! wire {
    ($both:ty { $($fields:tt)* }) => {
        $crate::record::wire! { $both => $both { $($fields)* }}
    };
    ($written:ty => $read:ty {
        $($($word:ident)? $name:literal => $($place:tt).+),+ $(,)?
    }) => {
        const _: () = {
            use $crate::messagepack::Reader;
            use $crate::refused::ReadResult;
            use $crate::record::{DecodeFields, Encode, Written, says};
            use serde::ser::{SerializeStruct as _, Serializer};

            impl Encode for $written {
                fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    let n = 0 $(+ usize::from(says!(is_written $($word)?: self.$($place).+)))+;
                    let mut fields = serializer.serialize_struct("", n)?;
                    $(if says!(is_written $($word)?: self.$($place).+) {
                        fields.serialize_field($name, &Written(&self.$($place).+))?;
                    })+
                    fields.end()
                }
            }

            impl DecodeFields for $read {
                fn fill_fields(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
                    reader.record(
                        &[$(($name, says!(is_required $($word)?))),+],
                        &mut [$(&mut self.$($place).+),+],
                    )
                }
            }
        };
    };
}

/// What the word before a field says; there is no other word.
macro_rules! says {
    (is_written sparse: $value:expr) => {
        !$crate::record::is_default(&$value)
    };
    (is_written $(required)?: $value:expr) => {
        true
    };
    (is_required required) => {
        true
    };
    (is_required $(sparse)?) => {
        false
    };
}

/// Enums that are written by their names; any other name is refused.
macro_rules! wire_names {
    ($($type:ty)*) => {
        $crate::record::written_as! { $($type: it => it.name();)* }
        $crate::record::decoded_as! { $($type: reader => reader.named(Self::from_name)?;)* }
    };
}

/// Writes each of these types as a value that serde knows.
macro_rules! written_as {
    ($($type:ty: $value:ident => $as:expr;)*) => {$(
        impl $crate::record::Encode for $type {
            fn encode<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $value = self;
                serde::Serialize::serialize(&$as, serializer)
            }
        }
    )*};
}

/// Writes each of these types as another one that is written.
macro_rules! encoded_as {
    ($($type:ty: $value:ident => $as:expr;)*) => {$(
        impl $crate::record::Encode for $type {
            fn encode<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $value = self;
                $crate::record::Encode::encode(&$as, serializer)
            }
        }
    )*};
}

/// Reads each of these types as what the expression takes from the reader.
macro_rules! decoded_as {
    ($($(#[$doc:meta])* $type:ty: $reader:ident => $value:expr;)*) => {$(
        $(#[$doc])*
        impl $crate::record::Decode for $type {
            fn fill(
                &mut self,
                $reader: &mut $crate::messagepack::Reader<'_>,
            ) -> $crate::refused::ReadResult<()> {
                *self = $value;
                Ok(())
            }
        }
    )*};
}

/// Reads each of these lists from entries of the wire, without those for which `known` has nothing.
macro_rules! decoded_lists {
    ($($item:ty: $known:expr;)*) => {$(
        impl $crate::record::Decode for Vec<$item> {
            fn fill(
                &mut self,
                reader: &mut $crate::messagepack::Reader<'_>,
            ) -> $crate::refused::ReadResult<()> {
                reader.list_of(self, $known)
            }
        }
    )*};
}

pub(super) use {decoded_as, decoded_lists, encoded_as, says, wire, wire_names, written_as};

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Reader<'_> {
    /// A map into the places of its fields, of which these are the names and whether they are required.
    pub(super) fn record(
        &mut self,
        fields: &[(&str, bool)],
        places: &mut [&mut dyn Decode],
    ) -> ReadResult<()> {
        let mut found = 0_u32;
        self.fields(&mut |name, value| {
            let Some(idx) = fields.iter().position(|(it, _)| *it == name) else {
                // Only a later gpumem knows it.
                return value.skip();
            };
            found |= 1 << idx;
            places[idx].fill(value)
        })?;
        let is_missing = |idx: usize, is_required: bool| is_required && found & (1 << idx) == 0;
        for (idx, (name, is_required)) in fields.iter().enumerate() {
            if is_missing(idx, *is_required) {
                return Err(DecodeError(format!("missing field `{name}`")));
            }
        }
        Ok(())
    }

    /// What has a name; any other name is refused.
    pub(super) fn named<T>(&mut self, from_name: fn(&str) -> Option<T>) -> ReadResult<T> {
        let name = self.string()?;
        from_name(name).ok_or_else(|| {
            let name = printable(name);
            DecodeError(format!("nothing is named \"{name}\" here"))
        })
    }

    /// What has a name; nothing for a name that only a later gpumem knows.
    pub(super) fn name<T>(&mut self, from_name: fn(&str) -> Option<T>) -> ReadResult<Option<T>> {
        if self.is_nil() {
            return Ok(None);
        }
        Ok(from_name(self.string()?))
    }

    /// A list of which `known` leaves out the entries that only a later gpumem knows.
    pub(super) fn list_of<T: Decode + Default, U>(
        &mut self,
        place: &mut Vec<U>,
        known: fn(T) -> Option<U>,
    ) -> ReadResult<()> {
        let n = self.n_entries(size_of::<U>())?;
        *place = Vec::with_capacity(n);
        self.nested(n, &mut |reader| {
            let mut entry = T::default();
            entry.fill(reader)?;
            place.extend(known(entry));
            Ok(())
        })
    }
}

impl<T: DecodeFields> DecodeFields for Box<T> {
    fn fill_fields(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
        (**self).fill_fields(reader)
    }
}

impl<T: DecodeFields> Decode for T {
    fn fill(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
        self.fill_fields(reader)
    }
}

impl<T: Decode + Default> Decode for Option<T> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
        *self = None;
        if reader.is_nil() {
            return Ok(());
        }
        self.insert(T::default()).fill(reader)
    }
}

impl<T: DecodeFields + Default> Decode for Vec<T> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
        reader.list_of(self, Some)
    }
}

impl<T: Encode> Encode for Box<T> {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).encode(serializer)
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_ref().map(Written).serialize(serializer)
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Written))
    }
}
