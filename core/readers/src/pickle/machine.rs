//! The stack machine: a whitelist of opcodes.

use std::mem::size_of;

use super::fault::{PickleError, PickleFault};
use super::input::Input;
use super::opcode;
use super::text;
use super::tree::{PickleContainer, PickleValue, Tree};

/// Bytes of tree for each byte of input. Snapshots of torch take about four.
const BYTES_PER_BYTE: usize = 12;

/// Bytes of tree that any input may take.
const BYTES_AT_LEAST: usize = 1 << 20;

/// Offsets and counts fit 32 bits.
const LONGEST_INPUT: usize = 1 << 31;

pub(super) struct Machine<'a> {
    input: Input<'a>,
    stack: Vec<PickleValue>,
    /// Heights of the stack at each mark.
    marks: Vec<u32>,
    memo: Vec<Option<PickleValue>>,
    tree: Tree<'a>,
    /// Bytes that the tree and the memo take.
    used: usize,
    limit: usize,
}

/// `Ok(Some(…))` after `STOP`.
type MachineStep = Result<Option<PickleValue>, PickleFault>;

impl<'a> Machine<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let limit = bytes.len().saturating_mul(BYTES_PER_BYTE);
        Self {
            input: Input::new(bytes),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            tree: Tree {
                root: PickleValue::None,
                ints: Vec::new(),
                floats: Vec::new(),
                texts: Vec::new(),
                decoded: Vec::new(),
                bytes: Vec::new(),
                containers: Vec::new(),
            },
            used: 0,
            limit: limit.saturating_add(BYTES_AT_LEAST),
        }
    }

    pub(super) fn run(mut self) -> Result<Tree<'a>, PickleError> {
        let n_bytes = self.input.n_bytes();
        if n_bytes > LONGEST_INPUT {
            let what = PickleFault::TooLong(n_bytes);
            return Err(PickleError { offset: 0, what });
        }
        loop {
            let offset = self.input.at();
            match self.step() {
                Ok(None) => (),
                Ok(Some(root)) => {
                    self.tree.root = root;
                    return Ok(self.tree);
                }
                Err(what) => return Err(PickleError { offset, what }),
            }
        }
    }

    fn step(&mut self) -> MachineStep {
        let offset = self.input.at() as u32;
        let opcode = self.input.byte().ok_or(PickleFault::Truncated)?;
        match opcode {
            b'.' => return self.pop("STOP").map(Some),
            0x80 | 0x95 => self.framing(opcode)?,
            b'(' => self.mark()?,
            b'0' | b'1' => self.discard(opcode)?,
            b'p' | b'q' | b'r' | 0x94 | b'g' | b'h' | b'j' => self.memo(opcode)?,
            b'N' => self.push(PickleValue::None)?,
            0x88 => self.push(PickleValue::Bool(true))?,
            0x89 => self.push(PickleValue::Bool(false))?,
            b'I' | b'J' | b'K' | b'M' | b'L' | 0x8a | 0x8b => self.number(opcode)?,
            b'F' | b'G' => self.float(opcode)?,
            b'V' | b'X' | 0x8c | 0x8d | b'S' | b'T' | b'U' => self.text(opcode)?,
            b'B' | b'C' | 0x8e => self.bytes(opcode)?,
            b']' | b'l' | b'a' | b'e' => self.list(opcode, offset)?,
            b'}' | b'd' | b's' | b'u' => self.dict(opcode, offset)?,
            b')' | b't' | 0x85..=0x87 => self.tuple(opcode, offset)?,
            other => return Err(opcode::fault(other, self.input.rest())),
        }
        Ok(None)
    }

    fn framing(&mut self, opcode: u8) -> Result<(), PickleFault> {
        if opcode == 0x80 {
            let protocol = self.input.byte().ok_or(PickleFault::Truncated)?;
            return match protocol {
                0..=5 => Ok(()),
                other => Err(PickleFault::Protocol(other)),
            };
        }
        // A frame only says how much may be read at once.
        let n = self.input.long_length().ok_or(PickleFault::Truncated)?;
        if n > self.input.rest().len() {
            return Err(PickleFault::Truncated);
        }
        Ok(())
    }

    fn mark(&mut self) -> Result<(), PickleFault> {
        self.charge(size_of::<u32>())?;
        self.marks.push(self.stack.len() as u32);
        Ok(())
    }

    fn discard(&mut self, opcode: u8) -> Result<(), PickleFault> {
        let height = self.marks.last().copied();
        let is_at_mark = height.is_some_and(|height| height as usize == self.stack.len());
        if opcode == b'1' || is_at_mark {
            let from = self.marked("POP_MARK")?;
            self.stack.truncate(from);
            return Ok(());
        }
        self.pop("POP").map(drop)
    }

    fn memo(&mut self, opcode: u8) -> Result<(), PickleFault> {
        let at = match opcode {
            b'p' | b'g' => {
                let line = self.input.line().ok_or(PickleFault::Truncated)?;
                decimal(line).and_then(|at| u32::try_from(at).ok())
            }
            b'q' | b'h' => Some(self.input.byte().ok_or(PickleFault::Truncated)?.into()),
            0x94 => u32::try_from(self.memo.len()).ok(),
            _ => Some(self.input.u32().ok_or(PickleFault::Truncated)?),
        };
        let argument = PickleFault::Argument {
            opcode: if matches!(opcode, b'g' | b'h' | b'j') {
                "GET"
            } else {
                "PUT"
            },
            expected: "an index",
        };
        let at = at.ok_or(argument)?;
        if matches!(opcode, b'g' | b'h' | b'j') {
            let kept = self.memo.get(at as usize).copied().flatten();
            return self.push(kept.ok_or(PickleFault::NoMemo(at))?);
        }
        // Each earlier value took at least a byte.
        if at as usize > self.input.at() {
            return Err(PickleFault::WildMemo(at));
        }
        let kept = self.top("PUT")?;
        let n = at as usize + 1;
        if n > self.memo.len() {
            self.charge((n - self.memo.len()) * size_of::<Option<PickleValue>>())?;
            self.memo.resize(n, None);
        }
        if let Some(place) = self.memo.get_mut(at as usize) {
            *place = Some(kept);
        }
        Ok(())
    }

    fn number(&mut self, opcode: u8) -> Result<(), PickleFault> {
        let input = &mut self.input;
        let number = match opcode {
            b'K' => Some(input.byte().ok_or(PickleFault::Truncated)?.into()),
            b'M' => Some(input.u16().ok_or(PickleFault::Truncated)?.into()),
            b'J' => {
                let bits = input.u32().ok_or(PickleFault::Truncated)?;
                Some(bits.cast_signed().into())
            }
            b'I' | b'L' => {
                let line = input.line().ok_or(PickleFault::Truncated)?;
                match (opcode, line) {
                    (b'I', b"00") => return self.push(PickleValue::Bool(false)),
                    (b'I', b"01") => return self.push(PickleValue::Bool(true)),
                    (b'L', line) => decimal(line.strip_suffix(b"L").unwrap_or(line)),
                    (_, line) => decimal(line),
                }
            }
            _ => {
                let n = match opcode {
                    0x8a => input.short_length(),
                    _ => input.length(),
                };
                let bytes = n
                    .and_then(|n| input.take(n))
                    .ok_or(PickleFault::Truncated)?;
                two_complement(bytes)
            }
        };
        let value = match number {
            Some(number) => self.int(number)?,
            None => {
                return Err(PickleFault::Argument {
                    opcode: if opcode == b'I' { "INT" } else { "LONG" },
                    expected: "a number of at most 16 bytes",
                });
            }
        };
        self.push(value)
    }

    fn int(&mut self, number: i128) -> Result<PickleValue, PickleFault> {
        if let Ok(small) = i32::try_from(number) {
            return Ok(PickleValue::Small(small));
        }
        self.charge(size_of::<i128>())?;
        let at = self.tree.ints.len() as u32;
        self.tree.ints.push(number);
        Ok(PickleValue::Int(at))
    }

    fn float(&mut self, opcode: u8) -> Result<(), PickleFault> {
        let number = if opcode == b'G' {
            f64::from_be_bytes(self.input.array().ok_or(PickleFault::Truncated)?)
        } else {
            let line = self.input.line().ok_or(PickleFault::Truncated)?;
            let number = std::str::from_utf8(line)
                .ok()
                .and_then(|line| line.parse().ok());
            number.ok_or(PickleFault::Argument {
                opcode: "FLOAT",
                expected: "a number",
            })?
        };
        self.charge(size_of::<f64>())?;
        let at = self.tree.floats.len() as u32;
        self.tree.floats.push(number);
        self.push(PickleValue::Float(at))
    }

    fn text(&mut self, opcode: u8) -> Result<(), PickleFault> {
        let input = &mut self.input;
        if matches!(opcode, b'V' | b'S') {
            let line = input.line().ok_or(PickleFault::Truncated)?;
            let (text, name) = match opcode {
                b'V' => (text::raw_unicode(line), "UNICODE"),
                _ => (text::quoted(line), "STRING"),
            };
            let text = text.ok_or(PickleFault::Argument {
                opcode: name,
                expected: "an escaped text",
            })?;
            return self.decoded(text);
        }
        let n = match opcode {
            0x8c | b'U' => input.short_length(),
            0x8d => input.long_length(),
            _ => input.length(),
        };
        let bytes = n
            .and_then(|n| input.take(n))
            .ok_or(PickleFault::Truncated)?;
        let Ok(text) = std::str::from_utf8(bytes) else {
            // Python writes lone surrogates, which Unicode's encodings do not have.
            return self.decoded(String::from_utf8_lossy(bytes).into_owned());
        };
        self.charge(size_of::<&str>())?;
        let at = self.tree.texts.len() as u32;
        self.tree.texts.push(text);
        self.push(PickleValue::Text(at))
    }

    fn decoded(&mut self, text: String) -> Result<(), PickleFault> {
        self.charge(size_of::<Box<str>>() + text.len())?;
        let at = self.tree.decoded.len() as u32;
        self.tree.decoded.push(text.into_boxed_str());
        self.push(PickleValue::Decoded(at))
    }

    fn bytes(&mut self, opcode: u8) -> Result<(), PickleFault> {
        let input = &mut self.input;
        let n = match opcode {
            b'C' => input.short_length(),
            b'B' => input.length(),
            _ => input.long_length(),
        };
        let bytes = n
            .and_then(|n| input.take(n))
            .ok_or(PickleFault::Truncated)?;
        self.charge(size_of::<&[u8]>())?;
        let at = self.tree.bytes.len() as u32;
        self.tree.bytes.push(bytes);
        self.push(PickleValue::Bytes(at))
    }

    fn list(&mut self, opcode: u8, offset: u32) -> Result<(), PickleFault> {
        let name = match opcode {
            b']' => return self.contain(PickleValue::List, None, offset),
            b'l' => {
                let from = self.marked("LIST")?;
                return self.contain(PickleValue::List, Some(from), offset);
            }
            b'a' => "APPEND",
            _ => "APPENDS",
        };
        let from = if opcode == b'a' {
            self.top(name)?;
            self.stack.len() - 1
        } else {
            self.marked(name)?
        };
        self.extend(name, from, |target| matches!(target, PickleValue::List(_)))
    }

    fn dict(&mut self, opcode: u8, offset: u32) -> Result<(), PickleFault> {
        let name = match opcode {
            b'}' => return self.contain(PickleValue::Dict, None, offset),
            b'd' => "DICT",
            b's' => "SETITEM",
            _ => "SETITEMS",
        };
        let from = if opcode == b's' {
            let from = self.stack.len().checked_sub(2);
            from.filter(|&from| from >= self.floor())
                .ok_or(PickleFault::TooFew(name))?
        } else {
            self.marked(name)?
        };
        if !(self.stack.len() - from).is_multiple_of(2) {
            return Err(PickleFault::OddItems(name));
        }
        if opcode == b'd' {
            return self.contain(PickleValue::Dict, Some(from), offset);
        }
        self.extend(name, from, |target| matches!(target, PickleValue::Dict(_)))
    }

    fn tuple(&mut self, opcode: u8, offset: u32) -> Result<(), PickleFault> {
        let n = match opcode {
            b')' => return self.contain(PickleValue::Tuple, None, offset),
            b't' => {
                let from = self.marked("TUPLE")?;
                return self.contain(PickleValue::Tuple, Some(from), offset);
            }
            other => usize::from(other - 0x84),
        };
        let from = self.stack.len().checked_sub(n);
        let from = from
            .filter(|&from| from >= self.floor())
            .ok_or(PickleFault::TooFew("TUPLE1 to TUPLE3"))?;
        self.contain(PickleValue::Tuple, Some(from), offset)
    }

    /// Makes a container of the stack's values from `from` on.
    fn contain(
        &mut self,
        value: fn(u32) -> PickleValue,
        from: Option<usize>,
        offset: u32,
    ) -> Result<(), PickleFault> {
        let from = from.unwrap_or(self.stack.len());
        let n_items = self.stack.len() - from;
        self.charge(size_of::<PickleContainer>() + n_items * size_of::<PickleValue>())?;
        let items = self.stack.drain(from..).collect();
        let at = self.tree.containers.len() as u32;
        self.tree.containers.push(PickleContainer { items, offset });
        self.push(value(at))
    }

    /// Moves the stack's values from `from` on into the container below them.
    fn extend(
        &mut self,
        name: &'static str,
        from: usize,
        is_right: fn(PickleValue) -> bool,
    ) -> Result<(), PickleFault> {
        let below = from.checked_sub(1).filter(|&below| below >= self.floor());
        let target = below.and_then(|below| self.stack.get(below).copied());
        let target = target.ok_or(PickleFault::TooFew(name))?;
        let wrong = PickleFault::Target {
            opcode: name,
            found: target.kind(),
        };
        let at = target
            .container()
            .filter(|_| is_right(target))
            .ok_or(wrong)?;
        self.charge((self.stack.len() - from) * size_of::<PickleValue>())?;
        if let Some(container) = self.tree.containers.get_mut(at as usize) {
            container.items.extend(self.stack.drain(from..));
        }
        Ok(())
    }

    fn push(&mut self, value: PickleValue) -> Result<(), PickleFault> {
        self.stack.push(value);
        let taken = self.stack.len() * size_of::<PickleValue>();
        self.within(taken)
    }

    fn pop(&mut self, name: &'static str) -> Result<PickleValue, PickleFault> {
        self.top(name)?;
        self.stack.pop().ok_or(PickleFault::TooFew(name))
    }

    fn top(&self, name: &'static str) -> Result<PickleValue, PickleFault> {
        let top = self.stack.get(self.floor()..).and_then(<[_]>::last);
        top.copied().ok_or(PickleFault::TooFew(name))
    }

    /// The height of the stack at the last mark.
    fn floor(&self) -> usize {
        self.marks.last().map_or(0, |&height| height as usize)
    }

    /// Takes the last mark: the height of the stack there.
    fn marked(&mut self, name: &'static str) -> Result<usize, PickleFault> {
        let height = self.marks.pop().ok_or(PickleFault::NoMark(name))?;
        Ok(height as usize)
    }

    /// Counts `n` bytes more for the tree.
    fn charge(&mut self, n: usize) -> Result<(), PickleFault> {
        self.used = self.used.saturating_add(n);
        self.within(0)
    }

    fn within(&self, more: usize) -> Result<(), PickleFault> {
        if self.used.saturating_add(more) > self.limit {
            return Err(PickleFault::TooLarge { limit: self.limit });
        }
        Ok(())
    }
}

fn decimal(line: &[u8]) -> Option<i128> {
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

/// A little-endian number of any length that fits 16 bytes.
fn two_complement(bytes: &[u8]) -> Option<i128> {
    let is_negative = bytes.last().is_some_and(|&last| last >= 0x80);
    let mut padded = [if is_negative { 0xff } else { 0 }; 16];
    padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i128::from_le_bytes(padded))
}
