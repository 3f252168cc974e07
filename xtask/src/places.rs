//! Where in the source a panic came from: not told by what is shipped.
//!
//! The module has no hook that would print it, yet each place that may panic has its file, line and column in
//! it: two kilobytes packed. Equal bytes in their stead pack to nothing.

use anyhow::{Context, Result, bail};
use wasmparser::{DataKind, Operator, Parser, Payload};

/// A pointer, a length, a line and a column.
const PLACE: usize = 16;
const LONGEST_PATH: usize = 300;
const MOST_LINES: u32 = 100_000;
const MOST_COLUMNS: u32 = 1000;

/// A part of the memory that the module begins with: where it is in memory, and in the file.
struct Segment {
    address: usize,
    at: usize,
    len: usize,
}

/// The same module without the places of its panics.
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
}
