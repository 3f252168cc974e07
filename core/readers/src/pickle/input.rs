//! The bytes of a pickle, read from front to back.

/// A position in the input. Each reader returns `None` if the input ends too early.
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) const fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(super) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(n)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A length of eight bytes; an impossible length ends the input.
    pub(super) fn long_length(&mut self) -> Option<usize> {
        usize::try_from(self.array().map(u64::from_le_bytes)?).ok()
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.u32()?).ok()
    }

    pub(super) fn short_length(&mut self) -> Option<usize> {
        self.byte().map(usize::from)
    }

    /// Up to the next line feed, which is consumed.
    pub(super) fn line(&mut self) -> Option<&'a [u8]> {
        let n = self.rest().iter().position(|&byte| byte == b'\n')?;
        let line = self.take(n)?;
        self.at += 1;
        Some(line)
    }
}
