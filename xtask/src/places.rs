//! Where in the source a panic came from, and why: not told by what is shipped.
//!
//! The module has no hook that would print it, yet each place that may panic has its file, line and column in
//! it: two kilobytes packed. So do its words. Equal bytes in their stead pack to nothing.

use anyhow::{Context, Result, bail};
use wasmparser::{DataKind, Operator, Parser, Payload};

/// A pointer, a length, a line and a column.
const PLACE: usize = 16;
const LONGEST_PATH: usize = 300;
const MOST_LINES: u32 = 100_000;
const MOST_COLUMNS: u32 = 1000;

/// What is said in panics, most of it by the standard library.
const WORDS: [&[u8]; 35] = [
    b" but ends at ",
    b" but the index is ",
    b" is out of bounds of `",
    b" is not a char boundary; it is inside ",
    b") does not match destination slice length (",
    b"Formatting argument out of range",
    b"LazyCell instance has previously been poisoned",
    b"RefCell already borrowed",
    b"RefCell already mutably borrowed",
    b"Tried to shrink to a larger capacity",
    b"a Display implementation returned an error unexpectedly",
    b"a cell with a row has runs",
    b"a formatting trait implementation returned an error when the underlying stream did not",
    b"a series has runs",
    b"a string takes everything",
    b"assertion failed: self.is_char_boundary(new_len)",
    b"assertion failed: self.peeked.is_none()",
    b"attempt to calculate the remainder with a divisor of zero",
    b"attempt to divide by zero",
    b"attempt to join into collection with len > usize::MAX",
    b"called `Option::unwrap()` on a `None` value",
    b"called `Option::unwrap_throw()` on a `None` value",
    b"called `Result::unwrap()` on an `Err` value",
    b"capacity overflow",
    b"begin <= end (",
    b"closure invoked recursively or after being dropped",
    b"copy_from_slice: source slice length (",
    b"index out of bounds: the len is ",
    b"internal error: entered unreachable code",
    b"it was just put there",
    b"mid > len",
    b"out of range for slice of length ",
    b"range end index ",
    b"range start index ",
    b"slice index starts at ",
];

/// A part of the memory that the module begins with: where it is in memory, and in the file.
struct Segment {
    address: usize,
    at: usize,
    len: usize,
}

/// The same module without the places and words of its panics.
pub(crate) fn forgotten(wasm: &[u8]) -> Result<Vec<u8>> {
    let segments = segments(wasm)?;
    let file = |address: usize, len: usize| {
        let holds = |it: &&Segment| address >= it.address && address + len <= it.address + it.len;
        let segment = segments.iter().find(holds)?;
        Some(segment.at + address - segment.address)
    };
    let mut module = wasm.to_vec();
    let mut paths = Vec::new();
    for segment in &segments {
        let aligned = segment.address.next_multiple_of(4) - segment.address;
        for offset in (aligned..(segment.len + 1).saturating_sub(PLACE)).step_by(4) {
            let at = segment.at + offset;
            let word = |idx: usize| {
                let bytes = wasm[at + 4 * idx..][..4].try_into().expect("four bytes");
                u32::from_le_bytes(bytes)
            };
            let (address, len, line, column) = (word(0), word(1) as usize, word(2), word(3));
            let is_place = len <= LONGEST_PATH
                && (1..MOST_LINES).contains(&line)
                && (1..MOST_COLUMNS).contains(&column);
            let path = file(address as usize, len).filter(|_| is_place);
            if let Some(path) = path.filter(|path| wasm[*path..path + len].ends_with(b".rs")) {
                // Of a text without letters nobody reads the pointer, but it must be none.
                module[at..at + PLACE]
                    .copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                paths.push(path..path + len);
            }
        }
    }
    for path in paths {
        module[path].fill(0);
    }
    for segment in &segments {
        let data = &mut module[segment.at..segment.at + segment.len];
        for words in WORDS {
            let places = data.windows(words.len()).enumerate();
            let places: Vec<usize> = places
                .filter(|(_, it)| *it == words)
                .map(|it| it.0)
                .collect();
            for at in places {
                data[at..at + words.len()].fill(0);
            }
        }
    }
    Ok(module)
}

fn segments(wasm: &[u8]) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::DataSection(section) = payload? else {
            continue;
        };
        for data in section {
            let data = data?;
            let DataKind::Active { offset_expr, .. } = data.kind else {
                bail!("a data segment that is not in memory from the start");
            };
            let Operator::I32Const { value } = offset_expr.get_operators_reader().read()? else {
                bail!("a data segment whose address is computed");
            };
            let at = data.range.end - data.data.len();
            segments.push(Segment {
                address: usize::try_from(value).context("a data segment at a negative address")?,
                at,
                len: data.data.len(),
            });
        }
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{ConstExpr, DataSection, MemorySection, MemoryType, Module};

    use super::*;

    fn module(data: &[u8]) -> Vec<u8> {
        let mut memories = MemorySection::new();
        memories.memory(MemoryType {
            minimum: 1,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let mut section = DataSection::new();
        section.active(0, &ConstExpr::i32_const(64), data.iter().copied());
        let mut module = Module::new();
        module.section(&memories).section(&section);
        module.finish()
    }

    fn place(line: u32) -> Vec<u8> {
        let words = [64_u32, 6, line, 9];
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        b"src.rs..".iter().copied().chain(words).collect()
    }

    #[test]
    fn a_place_is_told_no_more_and_other_bytes_stay() {
        let forgotten = |line| forgotten(&module(&place(line))).expect("a module");
        let empty = [vec![0; 6], b"..".to_vec(), vec![1], vec![0; 15]].concat();
        assert!(forgotten(7).ends_with(&empty));
        assert_eq!(forgotten(0), module(&place(0)), "no line has the number 0");
    }

    #[test]
    fn the_words_of_a_panic_are_told_no_more() {
        let forgotten = forgotten(&module(b"Leakcapacity overflowkept")).expect("a module");
        let rest = [b"Leak".as_slice(), &[0; 17], b"kept"].concat();
        assert!(forgotten.ends_with(&rest));
    }
}
