//! Single values of the wire, and the names that stand for some of them.

use std::collections::BTreeMap;

use serde::ser::Serializer;

use super::messagepack::{Reader, Token};
use super::record::{Decode, Encode, decoded_as, decoded_lists, written_as};
use super::refused::{DecodeError, ReadResult};
use gpumem_model::holders::{Keeper, RootKind, StorageUse, WayOut};
use gpumem_model::recording::{
    CellIdx, ChildHandle, DeviceIdx, DeviceKey, Framework, LoopIdx, RunIdx, Source, SourceHash,
};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

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
    StorageUse: it => it.name();
    RootKind: it => it.name();
    Source: it => it.name();
    ChildHandle: it => it.name();
}

decoded_as! {
    bool: reader => match reader.opening()? {
        Token::Bool(value) => value,
        other => return Err(other.instead_of("true or false")),
    };
    u64: reader => reader.whole()?;
    u32: reader => {
        let number = reader.whole()?;
        let below = || DecodeError(format!("{number} where a number below 2^32 belongs"));
        Self::try_from(number).map_err(|_| below())?
    };
    f64: reader => match reader.opening()? {
        Token::Float(number) => number,
        Token::Whole(number) => number as Self,
        other => return Err(other.instead_of("a number")),
    };
    ByteDelta: reader => Self::new(match reader.opening()? {
        Token::Whole(number) if number <= i64::MAX.unsigned_abs() => number.cast_signed(),
        Token::Negative(number) => number,
        other => return Err(other.instead_of("a whole number")),
    });
    String: reader => reader.string()?.to_owned();
    Box<str>: reader => reader.string()?.into();
    DeviceKey: reader => reader.string()?.into();
    Bytes: reader => Self::new(reader.whole()?);
    Nanos: reader => Self::new(reader.whole()?);
    /// The default kind if only a later gpumem knows the name.
    RootKind: reader => reader.name(Self::from_name)?.unwrap_or_default();
    KnownKind: reader => Self(reader.name(RootKind::from_name)?);
    /// Numbers are read at once: they are many.
    Vec<u64>: reader => reader.numbers(None)?;
}

decoded_lists! {
    RunIdx: Some;
    String: Some;
}

macro_rules! places_within {
    ($($type:ty)*) => {$(
        impl Decode for $type {
            fn fill(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
                self.0.fill(reader)
            }
        }
    )*};
}

places_within! { CellIdx DeviceIdx LoopIdx RunIdx SourceHash }

/// Nothing if only a later gpumem knows the name.
macro_rules! places_of_names {
    ($($type:ty)*) => {
        decoded_as! { $(Option<$type>: reader => reader.name(<$type>::from_name)?;)* }
    };
}

places_of_names! { Framework Keeper StorageUse Source WayOut }

/// Nothing if only a later gpumem knows the kind: then its entry is left out.
#[derive(Default)]
pub(super) struct KnownKind(pub(super) Option<RootKind>);

/// Words by name, in the order in which they stand there.
impl Decode for Vec<(String, String)> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> ReadResult<()> {
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
