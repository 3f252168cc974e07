//! The loops of a code object, read from its bytecode.
//!
//! A loop is what a backward jump leads to. Three things are none, or are two for one:
//!
//! - The code of `except` and `finally` stands behind all other code of its function, and jumps back
//!   to where that goes on.
//! - A `while` tests at its top and again at its end: `continue` jumps to the first test, the last
//!   line to what follows it.
//! - `await` and `yield from` repeat an instruction, by a jump of another name.
//!
//! ```
//! use gpumem_process::bytecode::{LineSpan, Opcodes, loops};
//!
//! let names = ["EXTENDED_ARG", "PUSH_EXC_INFO", "FOR_ITER", "GET_ANEXT", "JUMP_BACKWARD"];
//! let number = |name: &str| (1..).zip(names).find(|it| it.1 == name).map(|it| it.0);
//! let opcodes = Opcodes::from_names(number).expect("every name is there");
//! let code = [3, 0, 9, 0, 5, 3]; // FOR_ITER, something, JUMP_BACKWARD by three instructions
//! let lines = [LineSpan { from: 0, to: 6, number: 7 }];
//! let found = loops(&code, &lines, opcodes);
//! assert_eq!((found[0].line, found[0].first, found[0].last), (7, 0, 4));
//! ```

use std::collections::BTreeMap;

/// The numbers of the instructions that matter, which differ from one Python to the next.
#[derive(Debug, Clone, Copy)]
pub struct Opcodes {
    jump_backward: u8,
    extended_arg: u8,
    push_exc_info: u8,
    for_iter: u8,
    get_anext: u8,
}

impl Opcodes {
    /// From the number that Python's `opcode.opmap` gives each name. `None` where one of them is missing: a later
    /// Python may do without.
    pub fn from_names(number: impl Fn(&str) -> Option<u8>) -> Option<Self> {
        Some(Self {
            jump_backward: number("JUMP_BACKWARD")?,
            extended_arg: number("EXTENDED_ARG")?,
            push_exc_info: number("PUSH_EXC_INFO")?,
            for_iter: number("FOR_ITER")?,
            get_anext: number("GET_ANEXT")?,
        })
    }
}

/// Stands between the instructions of every Python since 3.11.
const CACHE: u8 = 0;

/// The line of the instructions from one offset to another, as `co_lines` gives it. Offsets are bytes.
#[derive(Debug, Clone, Copy)]
pub struct LineSpan {
    /// The offset of its first instruction.
    pub from: u32,
    /// The offset behind its last.
    pub to: u32,
    /// From 1 on.
    pub number: u32,
}

/// One loop. Offsets are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLoop {
    /// Where its iterations jump to.
    pub heads: Vec<u32>,
    /// Its first instruction.
    pub first: u32,
    /// Its last instruction.
    pub last: u32,
    /// The line of its header.
    pub line: u32,
}

impl CodeLoop {
    /// It is under way where the code stands at that instruction.
    pub fn contains(&self, offset: u32) -> bool {
        (self.first..=self.last).contains(&offset)
    }
}

/// Backward jumps to one place.
struct LoopHead {
    jumps: Vec<u32>,
    /// It asks an iterator for its next item.
    is_for: bool,
}

/// The loops of a code object, outer ones before inner ones.
pub fn loops(code: &[u8], lines: &[LineSpan], opcodes: Opcodes) -> Vec<CodeLoop> {
    let (heads, mut behind) = heads(code, opcodes);
    let mut found: Vec<CodeLoop> = Vec::new();
    for (offset, head) in heads {
        let (Some(&first_jump), Some(&last_jump)) = (head.jumps.first(), head.jumps.last()) else {
            continue;
        };
        let line = header(lines, offset, first_jump);
        let twin = found
            .iter_mut()
            .find(|it| !head.is_for && it.line == line && it.contains(offset));
        match twin.filter(|twin| !is_for(code, twin.first, opcodes)) {
            Some(twin) => {
                twin.heads.push(offset);
                twin.last = twin.last.max(last_jump);
            }
            None => found.push(CodeLoop {
                heads: vec![offset],
                first: offset,
                last: last_jump,
                line,
            }),
        }
    }
    // `continue` in an `except`: to a loop that is known, or to the first test of one.
    behind.retain(|offset| found.iter().all(|it| !it.heads.contains(offset)));
    for offset in behind {
        let line = header(lines, offset, offset);
        let mut later = found.iter_mut().filter(|it| it.first > offset);
        if is_for(code, offset, opcodes) {
            found.push(CodeLoop {
                heads: vec![offset],
                first: offset,
                last: offset,
                line,
            });
        } else if let Some(twin) = later.find(|it| it.line == line) {
            twin.heads.push(offset);
            twin.first = offset;
        }
    }
    found.sort_by_key(|it| (it.first, std::cmp::Reverse(it.last)));
    found
}

/// Where backward jumps lead to; apart, where only those of exception handlers do.
fn heads(code: &[u8], opcodes: Opcodes) -> (BTreeMap<u32, LoopHead>, Vec<u32>) {
    let mut heads: BTreeMap<u32, LoopHead> = BTreeMap::new();
    let mut behind = Vec::new();
    let mut is_behind = false;
    let mut extended = 0_usize;
    let (words, _) = code.as_chunks::<2>();
    for (position, [opcode, argument]) in words.iter().enumerate() {
        let argument = extended | usize::from(*argument);
        extended = 0;
        if *opcode == opcodes.extended_arg {
            extended = argument << 8;
        } else if *opcode == opcodes.push_exc_info {
            is_behind = true;
        } else if *opcode == opcodes.jump_backward {
            let caches = words[position + 1..].iter();
            let n_caches = caches.take_while(|[opcode, _]| *opcode == CACHE).count();
            let Some(target) = (position + 1 + n_caches).checked_sub(argument) else {
                continue;
            };
            let (target, jump) = (offset(target), offset(position));
            if is_behind {
                behind.push(target);
            } else {
                let head = heads.entry(target).or_insert_with(|| LoopHead {
                    jumps: Vec::new(),
                    is_for: is_for(code, target, opcodes),
                });
                head.jumps.push(jump);
            }
        }
    }
    (heads, behind)
}

fn offset(position: usize) -> u32 {
    u32::try_from(2 * position).unwrap_or(u32::MAX)
}

/// The instruction there, whose argument may be in front of it, asks an iterator for an item.
fn is_for(code: &[u8], offset: u32, opcodes: Opcodes) -> bool {
    let mut at = offset as usize;
    while code.get(at) == Some(&opcodes.extended_arg) {
        at += 2;
    }
    let opcode = code.get(at).copied();
    opcode == Some(opcodes.for_iter) || opcode == Some(opcodes.get_anext)
}

/// The lowest line from an offset to another: what a header says stands before its body.
fn header(lines: &[LineSpan], from: u32, to: u32) -> u32 {
    let inside = lines.iter().filter(|it| it.from <= to && it.to > from);
    inside.map(|it| it.number).min().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPCODES: Opcodes = Opcodes {
        jump_backward: 1,
        extended_arg: 2,
        push_exc_info: 3,
        for_iter: 4,
        get_anext: 5,
    };
    const FOR: u8 = 4;
    const OTHER: u8 = 9;

    /// Code of one line per instruction, counted from 1; a jump's argument is the number of instructions
    /// that it goes back.
    #[track_caller]
    fn check(code: &[(u8, u8)], lines: &[u32], expected: &[(&[u32], u32)]) {
        let bytes: Vec<u8> = code
            .iter()
            .flat_map(|(opcode, arg)| [*opcode, *arg])
            .collect();
        let lines = (0..).zip(lines).map(|(position, line)| LineSpan {
            from: 2 * position,
            to: 2 * position + 2,
            number: *line,
        });
        let lines: Vec<LineSpan> = lines.collect();
        let found = loops(&bytes, &lines, OPCODES);
        let found: Vec<(&[u32], u32)> = found.iter().map(|it| (&*it.heads, it.line)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn continue_and_the_last_line_end_iterations_of_one_loop() {
        let code = [(FOR, 0), (OTHER, 0), (1, 3), (OTHER, 0), (1, 5)];
        check(&code, &[1, 2, 3, 4, 4], &[(&[0], 1)]);
    }

    #[test]
    fn a_while_has_two_tests_and_is_one_loop() {
        let code = [(OTHER, 0), (OTHER, 0), (1, 3), (OTHER, 0), (1, 4)];
        check(&code, &[1, 2, 3, 1, 1], &[(&[0, 2], 1)]);
    }

    #[test]
    fn two_loops_of_a_comprehension_stand_on_one_line() {
        let code = [(FOR, 0), (FOR, 0), (1, 2), (1, 4)];
        check(&code, &[1, 1, 1, 1], &[(&[0], 1), (&[2], 1)]);
    }

    #[test]
    fn a_handler_that_jumps_back_is_no_loop() {
        let code = [(OTHER, 0), (OTHER, 0), (3, 0), (1, 3)];
        check(&code, &[1, 2, 3, 3], &[]);
        let code = [(FOR, 0), (OTHER, 0), (3, 0), (1, 4)];
        check(&code, &[1, 2, 3, 3], &[(&[0], 1)]);
    }

    #[test]
    fn a_long_jump_has_its_argument_in_front() {
        let mut code = vec![(OTHER, 0); 300];
        code[10] = (FOR, 0);
        code.extend([(2, 1), (1, 36)]);
        check(&code, &[7; 302], &[(&[20], 7)]);
    }
}
