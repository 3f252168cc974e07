//! What maps and lists of the wire are read into: the recording's own types, in place.
//!
//! Which field goes where is all that a type says of itself; the loop over the fields
//! is compiled once.

use super::messagepack::{Outcome, Reader, Refused, Token};
use crate::recording::{CellIdx, DeviceIdx, DeviceKey, RunIdx, SourceHash};
use crate::units::{ByteDelta, Bytes, Nanos};

/// What a map is read into, field by field.
pub(super) trait DecodeFields {
    /// The fields without which it says nothing; the others have their defaults.
    fn required(&self) -> &'static [&'static str] {
        &[]
    }

    /// Reads the value of the field `name`; one that only a later gpumem knows is skipped.
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()>;
}

/// What a value is read into.
pub(super) trait Decode {
    /// Reads it; what was there before is replaced.
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()>;
}

impl<T: DecodeFields> DecodeFields for Box<T> {
    fn required(&self) -> &'static [&'static str] {
        (**self).required()
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        (**self).field(name, value)
    }
}

impl Reader<'_> {
    fn record(&mut self, record: &mut dyn DecodeFields) -> Outcome<()> {
        let required = record.required();
        let mut is_there = [false; 8];
        self.fields(&mut |name, value| {
            if let Some(idx) = required.iter().position(|it| *it == name) {
                is_there[idx] = true;
            }
            record.field(name, value)
        })?;
        match required.iter().zip(is_there).find(|(_, it)| !it) {
            None => Ok(()),
            Some((name, _)) => Err(Refused(format!("missing field `{name}`"))),
        }
    }

    /// One of the values that have a name.
    pub(super) fn named<T: Copy>(&mut self, names: &[(&str, T)], place: &mut T) -> Outcome<()> {
        let name = self.string()?;
        let Some((_, value)) = names.iter().find(|(it, _)| *it == name) else {
            return Err(Refused(format!("nothing is named {name:?} here")));
        };
        *place = *value;
        Ok(())
    }

    /// What has a name; nothing for a name that only a later gpumem knows.
    pub(super) fn name<T>(
        &mut self,
        from_name: fn(&str) -> Option<T>,
        place: &mut Option<T>,
    ) -> Outcome<()> {
        *place = if self.is_nil() {
            None
        } else {
            from_name(self.string()?)
        };
        Ok(())
    }

    /// A list of which `known` leaves out the entries that only a later gpumem knows.
    pub(super) fn list_of<T: Decode + Default, U>(
        &mut self,
        place: &mut Vec<U>,
        known: fn(T) -> Option<U>,
    ) -> Outcome<()> {
        place.clear();
        self.list(&mut |reader| {
            let mut entry = T::default();
            entry.fill(reader)?;
            reader.take_memory(size_of::<U>())?;
            place.extend(known(entry));
            Ok(())
        })
    }
}

impl<T: DecodeFields> Decode for T {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        reader.record(self)
    }
}

impl<T: Decode + Default> Decode for Option<T> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = None;
        if reader.is_nil() {
            return Ok(());
        }
        self.insert(T::default()).fill(reader)
    }
}

impl<T: Decode + Default> Decode for Vec<T> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        reader.list_of(self, Some)
    }
}

impl Decode for bool {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = match reader.opening()? {
            Token::Bool(value) => value,
            other => return Err(other.instead_of("true or false")),
        };
        Ok(())
    }
}

impl Decode for u64 {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = reader.whole()?;
        Ok(())
    }
}

impl Decode for u32 {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        let number = reader.whole()?;
        let Ok(number) = Self::try_from(number) else {
            return Err(Refused(format!(
                "{number} where a number below 2^32 belongs"
            )));
        };
        *self = number;
        Ok(())
    }
}

impl Decode for f64 {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = match reader.opening()? {
            Token::Float(number) => number,
            Token::Whole(number) => number as Self,
            other => return Err(other.instead_of("a number")),
        };
        Ok(())
    }
}

impl Decode for ByteDelta {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        let number = match reader.opening()? {
            Token::Whole(number) if number <= i64::MAX.unsigned_abs() => number.cast_signed(),
            Token::Negative(number) => number,
            other => return Err(other.instead_of("a whole number")),
        };
        *self = Self::new(number);
        Ok(())
    }
}

impl Decode for String {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        reader.string()?.clone_into(self);
        Ok(())
    }
}

impl Decode for DeviceKey {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = reader.string()?.into();
        Ok(())
    }
}

impl Decode for Bytes {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = Self::new(reader.whole()?);
        Ok(())
    }
}

impl Decode for Nanos {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = Self::new(reader.whole()?);
        Ok(())
    }
}

macro_rules! places_within {
    ($($type:ty)*) => {$(
        impl Decode for $type {
            fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
                self.0.fill(reader)
            }
        }
    )*};
}

places_within! { CellIdx DeviceIdx RunIdx SourceHash }

/// Words by name, in the order in which they stand there.
impl Decode for Vec<(String, String)> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        self.clear();
        reader.fields(&mut |name, value| {
            value.take_memory(size_of::<(String, String)>())?;
            self.push((name.to_owned(), value.string()?.to_owned()));
            Ok(())
        })
    }
}
