//! The tables of a profile.

use std::collections::HashMap;

use super::DeviceProfileError;
use super::wire::{Message, ProtoField};

/// A file's content. Texts are indices of `texts`, looked up on demand.
#[derive(Default)]
pub(super) struct Profile<'b> {
    /// Kind and unit of each value of a sample.
    pub(super) value_types: Vec<(u64, u64)>,
    all: Message<'b>,
    /// A location's innermost function and line.
    pub(super) locations: HashMap<u64, (u64, u64)>,
    /// A function's name and file.
    pub(super) functions: HashMap<u64, (u64, u64)>,
    texts: Vec<&'b str>,
    pub(super) taken_nanos: Option<i64>,
}

/// One sample: its stack, values and labels.
#[derive(Default)]
pub(super) struct ProfileSample {
    /// Innermost first.
    pub(super) locations: Vec<u64>,
    pub(super) values: Vec<i64>,
    /// Keys and texts.
    pub(super) labels: Vec<(u64, u64)>,
}

/// Whether a file with this beginning, unpacked, may be a profile: its first field is the type of its samples.
pub fn is_profile(head: &[u8]) -> bool {
    let mut message = Message::new(head);
    let Ok(Some((1, ProtoField::Bytes(mut value_type)))) = message.next() else {
        return false;
    };
    let mut n_numbers = 0;
    while let Ok(Some((number, field))) = value_type.next() {
        if !(1..=2).contains(&number) || !matches!(field, ProtoField::Number(_)) {
            return false;
        }
        n_numbers += 1;
    }
    n_numbers > 0 && matches!(message.next(), Ok(Some((1..=15, _))))
}

impl<'b> Profile<'b> {
    pub(super) fn decode(bytes: &'b [u8]) -> Result<Self, DeviceProfileError> {
        let mut message = Message::new(bytes);
        let mut profile = Self {
            all: message,
            ..Self::default()
        };
        if !is_profile(bytes) {
            return Err(message.fault("it does not begin with the types of its samples"));
        }
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, ProtoField::Bytes(it)) => profile.value_types.push(pair(it)?),
                (4, ProtoField::Bytes(it)) => profile.location(it)?,
                (5, ProtoField::Bytes(it)) => profile.function(it)?,
                (6, ProtoField::Bytes(it)) => profile.texts.push(it.text()),
                (9, ProtoField::Number(nanos)) => profile.taken_nanos = Some(nanos.cast_signed()),
                _ => (),
            }
        }
        Ok(profile)
    }

    /// Calls `take` with each sample: there are too many to keep.
    pub(super) fn each_sample(
        &self,
        mut take: impl FnMut(&ProfileSample),
    ) -> Result<(), DeviceProfileError> {
        let mut message = self.all;
        while let Some((number, field)) = message.next()? {
            if let (2, ProtoField::Bytes(sample)) = (number, field) {
                take(&ProfileSample::decode(sample)?);
            }
        }
        Ok(())
    }

    pub(super) fn text(&self, at: u64) -> &'b str {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        self.texts.get(at).copied().unwrap_or_default()
    }

    fn location(&mut self, mut message: Message<'b>) -> Result<(), DeviceProfileError> {
        let (mut id, mut line) = (0, None);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, ProtoField::Number(number)) => id = number,
                // Among inlined functions, the innermost comes first.
                (4, ProtoField::Bytes(it)) if line.is_none() => line = Some(pair(it)?),
                _ => (),
            }
        }
        self.locations.extend(line.map(|line| (id, line)));
        Ok(())
    }

    fn function(&mut self, mut message: Message<'b>) -> Result<(), DeviceProfileError> {
        let (mut id, mut name, mut file) = (0, 0, 0);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, ProtoField::Number(number)) => id = number,
                (2, ProtoField::Number(number)) => name = number,
                (4, ProtoField::Number(number)) => file = number,
                _ => (),
            }
        }
        self.functions.insert(id, (name, file));
        Ok(())
    }
}

impl ProfileSample {
    fn decode(mut message: Message<'_>) -> Result<Self, DeviceProfileError> {
        let mut sample = Self::default();
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, ProtoField::Number(number)) => sample.locations.push(number),
                (1, ProtoField::Bytes(mut packed)) => {
                    while let Some(number) = packed.next_packed()? {
                        sample.locations.push(number);
                    }
                }
                (2, ProtoField::Number(number)) => sample.values.push(number.cast_signed()),
                (2, ProtoField::Bytes(mut packed)) => {
                    while let Some(number) = packed.next_packed()? {
                        sample.values.push(number.cast_signed());
                    }
                }
                (3, ProtoField::Bytes(it)) => sample.labels.push(pair(it)?),
                _ => (),
            }
        }
        Ok(sample)
    }
}

/// The fields 1 and 2 of a message, 0 where they are absent.
fn pair(mut message: Message<'_>) -> Result<(u64, u64), DeviceProfileError> {
    let (mut first, mut second) = (0, 0);
    while let Some((number, field)) = message.next()? {
        match (number, field) {
            (1, ProtoField::Number(number)) => first = number,
            (2, ProtoField::Number(number)) => second = number,
            _ => (),
        }
    }
    Ok((first, second))
}
