//! Protocol buffers on the wire: fields with their numbers.

use super::{DeviceProfileError, DeviceProfileFault};

/// A message, and where it begins in the file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Message<'b> {
    bytes: &'b [u8],
    at: usize,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProtoField<'b> {
    Number(u64),
    Bytes(Message<'b>),
    /// Eight or four bytes, which no field of ours has.
    Fixed,
}

impl<'b> Message<'b> {
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The bytes as text, as far as they are UTF-8.
    pub(super) fn text(self) -> &'b str {
        let mut chunks = self.bytes.utf8_chunks();
        chunks.next().map_or("", |chunk| chunk.valid())
    }

    pub(super) fn fault(self, words: &'static str) -> DeviceProfileError {
        DeviceProfileError {
            offset: self.at,
            what: DeviceProfileFault::Wire(words),
        }
    }

    /// The next field with its number.
    pub(super) fn next(&mut self) -> Result<Option<(u64, ProtoField<'b>)>, DeviceProfileError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => ProtoField::Number(self.varint()?),
            1 => self.skip(8)?,
            2 => {
                let n = self.varint()?;
                let n = usize::try_from(n).unwrap_or(usize::MAX);
                let at = self.at;
                let bytes = self.take(n)?;
                ProtoField::Bytes(Message { bytes, at })
            }
            5 => self.skip(4)?,
            _ => return Err(self.fault("a field of unknown type")),
        };
        match tag >> 3 {
            0 => Err(self.fault("a field without a number")),
            number => Ok(Some((number, field))),
        }
    }

    /// The numbers of a packed field, one after the other.
    pub(super) fn next_packed(&mut self) -> Result<Option<u64>, DeviceProfileError> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        self.varint().map(Some)
    }

    fn skip(&mut self, n: usize) -> Result<ProtoField<'b>, DeviceProfileError> {
        self.take(n).map(|_| ProtoField::Fixed)
    }

    fn take(&mut self, n: usize) -> Result<&'b [u8], DeviceProfileError> {
        let Some((taken, rest)) = self.bytes.split_at_checked(n) else {
            return Err(self.fault("a field runs over the end: the file is cut or damaged"));
        };
        self.bytes = rest;
        self.at += n;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, DeviceProfileError> {
        let mut number = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?.first().copied().unwrap_or_default();
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.fault("a number of more than ten bytes"))
    }
}
