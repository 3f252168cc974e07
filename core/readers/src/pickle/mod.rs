//! Pickled plain values, read without executing anything.
//!
//! A pickle is a program for a stack machine. This machine knows only the opcodes that make dicts, lists,
//! tuples, strings, bytes, numbers, bools and `None` (protocols 0 to 5). Opcodes that import or call
//! something are errors, so a file from a stranger is safe to read.
//!
//! Nothing here recurses on the input. The tree takes at most 12 bytes for each byte of the input, and
//! 1 MiB; shared values are stored once.
//!
//! ```
//! use gpumem_readers::pickle;
//!
//! // {'size': 512}
//! let tree = pickle::parse(b"\x80\x04}\x94\x8c\x04size\x94M\x00\x02s.")?;
//! assert_eq!(tree.root().get("size").and_then(|size| size.as_u64()), Some(512));
//!
//! // os.system
//! let error = pickle::parse(b"cos\nsystem\n.").unwrap_err();
//! assert_eq!(error.to_string(), "byte 0: GLOBAL would import `os.system`: only plain values are read");
//! # Ok::<(), pickle::PickleError>(())
//! ```

mod fault;
mod input;
mod machine;
mod opcode;
#[cfg(test)]
mod tests;
mod text;
mod tree;

pub use fault::{PickleError, PickleFault};
pub use tree::{PickleKind, PickleView, Tree};

/// Reads the first pickle in `bytes`; what follows its `STOP` is not read.
///
/// # Errors
///
/// [`PickleError`] with the offset at which reading stopped.
pub fn parse(bytes: &[u8]) -> Result<Tree<'_>, PickleError> {
    machine::Machine::new(bytes).run()
}
