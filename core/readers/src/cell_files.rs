//! The files under whose names Jupyter compiles cells.
//!
//! ```
//! use gpumem_readers::cell_files::CellFiles;
//!
//! let cells = CellFiles::new([("x = 1", "In [3]")]);
//! assert_eq!(cells.name_of("/tmp/ipykernel_4711/3427300630.py"), Some("In [3]"));
//! assert_eq!(cells.name_of("/tmp/ipykernel_4711/1.py"), None);
//! assert_eq!(cells.name_of("train/3427300630.py"), None);
//! ```

use std::collections::HashMap;

/// Names of cells by the files that Jupyter's kernel gives their code: `…/ipykernel_4711/3427300630.py`,
/// where the second number comes from the cell's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellFiles {
    names: HashMap<u32, String>,
}

impl CellFiles {
    /// Takes the cells' texts and names; if several have the same text, the last one counts.
    pub fn new<'a>(cells: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let cells = cells.into_iter();
        Self {
            names: cells
                .map(|(source, name)| (hash(source.as_bytes()), name.to_owned()))
                .collect(),
        }
    }

    /// The cell of a file; `None` if it is none of these.
    pub fn name_of(&self, file: &str) -> Option<&str> {
        if self.names.is_empty() {
            return None;
        }
        let mut parts = file.rsplit(['/', '\\']);
        let number = parts.next()?.strip_suffix(".py")?.parse().ok()?;
        parts.next()?.strip_prefix("ipykernel_")?;
        self.names.get(&number).map(String::as_str)
    }

    /// One line of text for each cell; [`CellFiles::from_text`] reads it.
    pub fn to_text(&self) -> String {
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_unstable();
        let lines: Vec<String> = names
            .into_iter()
            .map(|(number, name)| format!("{number} {name}"))
            .collect();
        lines.join("\n")
    }

    /// Reads the output of [`CellFiles::to_text`]; other lines are left out.
    pub fn from_text(text: &str) -> Self {
        let named = |line: &str| {
            let (number, name) = line.split_once(' ')?;
            Some((number.parse().ok()?, name.to_owned()))
        };
        Self {
            names: text.lines().filter_map(named).collect(),
        }
    }
}

/// Whether a file's name names a cell: `In [3]`, or `cell 3` of a notebook that was not run.
pub(crate) fn is_cell(file: &str) -> bool {
    file.starts_with("In [") || file.starts_with("cell ")
}

/// `MurmurHash2` (Austin Appleby, public domain) with ipykernel's seed.
fn hash(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0xc70f_6907;
    const M: u32 = 0x5bd1_e995;
    let mut hash = SEED ^ bytes.len() as u32;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let word = word
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u32::from(byte));
        let word = word.wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (word ^ word >> 24).wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let rest = rest
            .iter()
            .rev()
            .fold(0, |rest, &byte| rest << 8 | u32::from(byte));
        hash = (hash ^ rest).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_the_kernel_does() {
        // ipykernel.compiler.murmur2_x86(text, 0xC70F6907) of ipykernel 7.4.
        let check = |text: &str, expected| assert_eq!(hash(text.as_bytes()), expected, "{text}");
        check("", 3_990_065_800);
        check("a", 2_167_009_006);
        check("ab", 2_805_137_849);
        check("abc", 3_350_977_461);
        check("abcd", 804_720_481);
        check("größe = 1\n", 2_573_400_310);
    }

    #[test]
    fn of_cells_with_one_text_the_last_is_named() {
        let cells = CellFiles::new([("x = 1", "In [3]"), ("x = 1", "In [7]")]);
        let file = r"C:\Temp\ipykernel_1\3427300630.py";
        assert_eq!(cells.name_of(file), Some("In [7]"));
    }

    #[test]
    fn cells_are_the_same_after_they_were_text() {
        let cells = CellFiles::new([("x = 1", "In [3]")]);
        assert_eq!(cells.to_text(), "3427300630 In [3]");
        assert_eq!(CellFiles::from_text(&cells.to_text()), cells);
    }
}
