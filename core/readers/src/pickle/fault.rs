//! Why a pickle was not read, and where.

use thiserror::Error;

use crate::read_error::ReadError;

use super::PickleKind;

/// A pickle that was not read.
pub type PickleError = ReadError<PickleFault>;

/// What is wrong: [`PickleError::what`]. The message is for users.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PickleFault {
    /// An opcode that imports or calls something, with the name if it has one.
    #[error("{opcode} would {}: only plain values are read", with_name(deed, name.as_deref()))]
    Refused {
        /// The opcode's name in Python's `pickletools`.
        opcode: &'static str,
        /// `import`, `call an object`.
        deed: &'static str,
        /// `os.system`, if the opcode names it.
        name: Option<String>,
    },
    /// A byte that is not an opcode.
    #[error("{0:#04x} is not an opcode of pickle")]
    Unknown(u8),
    /// A protocol that this reader does not know.
    #[error("protocol {0}: protocols 0 to 5 are known")]
    Protocol(u8),
    /// The input ends before `STOP`.
    #[error("the file ends inside the pickle")]
    Truncated,
    /// An argument that cannot be read.
    #[error("{opcode} has an argument that is not {expected}")]
    Argument {
        /// The opcode's name.
        opcode: &'static str,
        /// `a number`.
        expected: &'static str,
    },
    /// An opcode needs more values than the stack has.
    #[error("{0} finds too few values")]
    TooFew(&'static str),
    /// An opcode needs a mark, but the stack has none.
    #[error("{0} finds no MARK")]
    NoMark(&'static str),
    /// `APPENDS` to a dict, `SETITEMS` of a list.
    #[error("{opcode} finds a {found}")]
    Target {
        /// The opcode's name.
        opcode: &'static str,
        /// The value on the stack.
        found: PickleKind,
    },
    /// A key without a value.
    #[error("{0} finds a key without a value")]
    OddItems(&'static str),
    /// A memo that was not written.
    #[error("memo {0} is not set")]
    NoMemo(u32),
    /// A memo index that no writer would use here.
    #[error("memo {0} exceeds the number of values before it")]
    WildMemo(u32),
    /// The tree would take too much memory.
    #[error("its values would take more than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// An input that is too long.
    #[error("{0} bytes: at most 2 GiB are read")]
    TooLong(usize),
}

fn with_name(deed: &str, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{deed} `{name}`"),
        None => deed.to_owned(),
    }
}
