//! What the text of a cell does with names: which ones it reads, binds and deletes, itself and in the functions
//! that it defines.
//!
//! No grammar, as in the fixes: where the text leaves open whether a name is read, it counts as read.

mod reader;
#[cfg(test)]
mod tests;
mod vocabulary;
mod word;

use std::collections::HashMap;

use super::fix::statement::Code;

/// Of longer texts nothing is known.
const LONGEST: usize = 1 << 16;

/// The text of a cell, as far as it tells what happens to names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellText<'a> {
    /// What its own statements do.
    pub own: NameUses<'a>,
    /// The functions that it defines.
    pub functions: Vec<FunctionText<'a>>,
    /// It runs code that stands elsewhere: nobody knows what that defines.
    pub runs_other_code: bool,
}

/// A function in the text of a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionText<'a> {
    /// Its name.
    pub name: &'a str,
    /// It may run although no cell calls it by its name: a method, a generator, a function with a decorator or
    /// in another function.
    pub runs_at_any_time: bool,
    /// What it does with names that are not its own.
    pub uses: NameUses<'a>,
}

/// What code does with names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameUses<'a> {
    by_name: HashMap<&'a str, NameUse<'a>>,
    /// It may read every name.
    pub reads_all: bool,
}

/// What code does with one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "code may do all of it with one name"
)]
pub struct NameUse<'a> {
    /// It is read: also an attribute or an item of it.
    pub is_read: bool,
    /// It is read, and not only called.
    pub is_handed_on: bool,
    /// It may be read at any time after: in a `lambda`, in a generator expression.
    pub is_read_later: bool,
    /// It gets an object.
    pub is_bound: bool,
    /// It is deleted.
    pub is_deleted: bool,
    /// The first statement that reads it.
    pub reader: &'a str,
}

impl<'a> NameUses<'a> {
    /// What is done with a name; `None` if it is not there.
    pub fn get(&self, name: &str) -> Option<&NameUse<'a>> {
        self.by_name.get(name)
    }

    /// Every name that it has.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &NameUse<'a>)> {
        self.by_name.iter().map(|(name, it)| (*name, it))
    }
}

impl<'a> CellText<'a> {
    /// Reads the text of a cell. Text that is no Python gives something, and never fails.
    pub fn read(text: &'a str) -> Self {
        if text.len() > LONGEST {
            return Self {
                runs_other_code: true,
                ..Self::default()
            };
        }
        reader::read(&Code::new(text))
    }
}
