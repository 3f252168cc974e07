//! Single values of the wire, and the names that stand for some of them.

use std::collections::BTreeMap;

use serde::ser::{Serialize, Serializer};

use super::messagepack::{Reader, Token};
use super::record::{Decode, Encode};
use super::refused::{Outcome, Refused};
use gpumem_model::holders::{Keeper, Part, RootKind, WayOut};
use gpumem_model::recording::{
    CellIdx, ChildHandle, DeviceIdx, DeviceKey, Framework, LoopIdx, RunIdx, Source, SourceHash,
};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// Writes each of these types as a value that serde knows.
macro_rules! written_as {
    ($($type:ty: $value:ident => $as:expr;)*) => {$(
        impl Encode for $type {
            fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $value = self;
                $as.serialize(serializer)
            }
        }
    )*};
}

written_as! {
    bool: it => it;
    u64: it => it;
    u32: it => it;
    f64: it => it;
    String: it => it;
    Box<str>: it => it;
    DeviceKey: it => it.as_str();
    Bytes: it => it.get();
    ByteDelta: it => it.get();
    Nanos: it => it.get();
    CellIdx: it => it.0;
    DeviceIdx: it => it.0;
    LoopIdx: it => it.0;
    RunIdx: it => it.0;
    SourceHash: it => it.0;
    Framework: it => it.name();
    Keeper: it => it.name();
    WayOut: it => it.name();
    Part: it => it.name();
    RootKind: it => it.name();
    Source: it => it.name();
    ChildHandle: it => it.name();
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

impl Decode for Box<str> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = reader.string()?.into();
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

places_within! { CellIdx DeviceIdx LoopIdx RunIdx SourceHash }

/// Nothing if only a later gpumem knows the name.
macro_rules! places_of_names {
    ($($type:ty)*) => {$(
        impl Decode for Option<$type> {
            fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
                *self = reader.name(<$type>::from_name)?;
                Ok(())
            }
        }
    )*};
}

places_of_names! { Framework Keeper Part Source WayOut }

/// The default kind if only a later gpumem knows the name.
impl Decode for RootKind {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = reader.name(Self::from_name)?.unwrap_or_default();
        Ok(())
    }
}

/// Nothing if only a later gpumem knows the kind: then its entry is left out.
#[derive(Default)]
pub(super) struct KnownKind(pub(super) Option<RootKind>);

impl Decode for KnownKind {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        self.0 = reader.name(RootKind::from_name)?;
        Ok(())
    }
}

/// Numbers are read at once: they are many.
impl Decode for Vec<u64> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        *self = reader.numbers(None)?;
        Ok(())
    }
}

impl Decode for Vec<RunIdx> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        reader.list_of(self, Some)
    }
}

impl Decode for Vec<String> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        reader.list_of(self, Some)
    }
}

/// Words by name, in the order in which they stand there.
impl Decode for Vec<(String, String)> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        self.clear();
        reader.fields(&mut |name, value| {
            value.budget.spend(2 * size_of::<(String, String)>())?;
            self.push((name.to_owned(), value.string()?.to_owned()));
            Ok(())
        })
    }
}

/// Each name once, in the order of the names.
impl Encode for Vec<(String, String)> {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let words: BTreeMap<_, _> = self.iter().cloned().collect();
        serializer.collect_map(words)
    }
}
