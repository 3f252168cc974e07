//! The memory that reading a recording may take.

use super::refused::{DecodeError, ReadResult};

/// Lists may take this many bytes of memory for each byte that was read, …
const PER_BYTE: usize = 12;

/// … and this many in any case.
const FREE: usize = 256 << 10;

/// A frame takes about this many bytes beside its lists.
const FRAME: usize = 256;

/// What is left for lists.
///
/// An entry of one byte may become a hundred bytes in memory. With everything in it, a recording that gpumem wrote
/// takes 2 to 4 bytes for each byte, a damaged one at most 20: texts, and the room of lists that grow, are not counted here.
#[derive(Clone, Copy)]
pub(super) struct ListBudget {
    n_left: usize,
}

impl ListBudget {
    /// For reading `n_bytes`.
    pub(super) fn new(n_bytes: usize) -> Self {
        let mut budget = Self { n_left: FREE };
        budget.earn(n_bytes);
        budget
    }

    /// Another `n_bytes` are to be read.
    pub(super) fn earn(&mut self, n_bytes: usize) {
        self.n_left = self.n_left.saturating_add(n_bytes.saturating_mul(PER_BYTE));
    }

    /// Another frame is read.
    pub(super) fn frame(&mut self) -> ReadResult<()> {
        self.spend(FRAME)
    }

    /// Counts the memory of lists.
    pub(super) fn spend(&mut self, n_bytes: usize) -> ReadResult<()> {
        let Some(n_left) = self.n_left.checked_sub(n_bytes) else {
            return Err(DecodeError(format!(
                "lists that take more than {PER_BYTE} bytes of memory for each byte of the file"
            )));
        };
        self.n_left = n_left;
        Ok(())
    }
}
