//! Reading `MessagePack`, by what the wire asks for.
//!
//! serde writes a recording, but does not read it. A long session is columns of numbers and little else, and
//! rmp-serde takes 2 to 8 times as long for them as this reader (4 million numbers, x86-64); it has no way to leave
//! a column to other code. It bounds no memory either: an entry of one byte may become a hundred in a list. And
//! the recording's types have one form here and another in JSON, so each would need a twin to derive from.

use super::budget::ListBudget;
use super::refused::{DecodeError, ReadResult};
use gpumem_model::printable::printable;

/// How deep values may be nested; the wire's own are at most 16 deep.
const MAX_DEPTH: usize = 32;

const BEYOND: &str = "a value goes on beyond its frame";

/// What a value's first bytes say.
pub(super) enum Token<'de> {
    Nil,
    Bool(bool),
    Whole(u64),
    Negative(i64),
    Float(f64),
    Text(&'de str),
    Binary(&'de [u8]),
    List(usize),
    Map(usize),
}

/// Reads values from the front of some bytes.
pub(super) struct Reader<'de> {
    rest: &'de [u8],
    depth: usize,
    /// The memory that is left for lists.
    pub(super) budget: ListBudget,
}

impl<'de> Reader<'de> {
    /// Reads bytes that are in the budget already.
    pub(super) fn new(bytes: &'de [u8], budget: ListBudget) -> Self {
        Self {
            rest: bytes,
            depth: 0,
            budget,
        }
    }

    /// Reads bytes that nothing was read before.
    pub(super) fn alone(bytes: &'de [u8]) -> Self {
        Self::new(bytes, ListBudget::new(bytes.len()))
    }

    /// How many bytes are not read yet.
    pub(super) fn n_left(&self) -> usize {
        self.rest.len()
    }

    fn bytes(&mut self, n: usize) -> ReadResult<&'de [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(n) else {
            return Err(DecodeError(BEYOND.to_owned()));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// A big-endian number of `n` bytes, at most 8.
    fn number(&mut self, n: usize) -> ReadResult<u64> {
        let bytes = self.bytes(n)?;
        Ok(bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn length(&mut self, n: usize) -> ReadResult<usize> {
        let length = self.number(n)?;
        usize::try_from(length).map_err(DecodeError::because)
    }

    fn text(&mut self, n: usize) -> ReadResult<Token<'de>> {
        let text = std::str::from_utf8(self.bytes(n)?).map_err(DecodeError::because)?;
        Ok(Token::Text(text))
    }

    pub(super) fn opening(&mut self) -> ReadResult<Token<'de>> {
        let marker = self.bytes(1)?[0];
        let low = |mask: u8| usize::from(marker & mask);
        Ok(match marker {
            0x00..=0x7f => Token::Whole(marker.into()),
            0x80..=0x8f => Token::Map(low(0x0f)),
            0x90..=0x9f => Token::List(low(0x0f)),
            0xa0..=0xbf => return self.text(low(0x1f)),
            0xc0 => Token::Nil,
            0xc2 | 0xc3 => Token::Bool(marker == 0xc3),
            0xc4..=0xc6 => {
                let n = self.length(1 << (marker - 0xc4))?;
                Token::Binary(self.bytes(n)?)
            }
            0xca => {
                let bits = u32::try_from(self.number(4)?).map_err(DecodeError::because)?;
                Token::Float(f32::from_bits(bits).into())
            }
            0xcb => Token::Float(f64::from_bits(self.number(8)?)),
            0xcc..=0xcf => Token::Whole(self.number(1 << (marker - 0xcc))?),
            0xd0..=0xd3 => {
                let n_bytes = 1 << (marker - 0xd0);
                let n_unused = 64 - 8 * n_bytes;
                let number = (self.number(n_bytes)? << n_unused).cast_signed() >> n_unused;
                u64::try_from(number).map_or(Token::Negative(number), Token::Whole)
            }
            0xd9..=0xdb => {
                let n = self.length(1 << (marker - 0xd9))?;
                return self.text(n);
            }
            0xdc | 0xdd => Token::List(self.length(2 << (marker - 0xdc))?),
            0xde | 0xdf => Token::Map(self.length(2 << (marker - 0xde))?),
            0xe0..=0xff => Token::Negative(marker.cast_signed().into()),
            0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => {
                return Err(DecodeError(format!("no value begins with {marker:#04x}")));
            }
        })
    }

    pub(super) fn whole(&mut self) -> ReadResult<u64> {
        // Fast path: read 8 bytes and keep the 1, 2, 4 or 8 that belong to the number.
        if let [marker @ 0xcc..=0xcf, ahead @ ..] = self.rest
            && let Some(eight) = ahead.first_chunk::<8>()
        {
            let n_bytes = 1 << (marker - 0xcc);
            self.rest = &ahead[n_bytes..];
            return Ok(u64::from_be_bytes(*eight) >> (64 - 8 * n_bytes));
        }
        match self.opening()? {
            Token::Whole(number) => Ok(number),
            other => Err(other.instead_of("a whole number")),
        }
    }

    /// The fields of a map: `read` is given each name, and reads its value.
    pub(super) fn fields(
        &mut self,
        read: &mut dyn FnMut(&str, &mut Self) -> ReadResult<()>,
    ) -> ReadResult<()> {
        let n = match self.opening()? {
            Token::Map(n) => n,
            other => return Err(other.instead_of("a map")),
        };
        self.nested(n, &mut |reader| {
            let name = reader.string()?;
            read(name, reader).map_err(|refused| refused.in_field(name))
        })
    }

    /// The number of entries of a list; each takes `n_bytes_each` in memory.
    pub(super) fn n_entries(&mut self, n_bytes_each: usize) -> ReadResult<usize> {
        let n = match self.opening()? {
            Token::List(n) => n,
            other => return Err(other.instead_of("a list")),
        };
        // Each entry is at least a byte: a length that was made up reserves nothing.
        if n > self.rest.len() {
            return Err(DecodeError(BEYOND.to_owned()));
        }
        self.budget.spend(n.saturating_mul(n_bytes_each))?;
        Ok(n)
    }

    /// A list of whole numbers; where they may be unknown, with what stands for that.
    pub(super) fn numbers(&mut self, unknown: Option<u64>) -> ReadResult<Vec<u64>> {
        self.each_number(unknown, |number| number)
    }

    /// A list of steps, each as the sum of the steps up to it.
    pub(super) fn sums<T>(&mut self, of: impl Fn(u64) -> T) -> ReadResult<Vec<T>> {
        let mut sum = 0_u64;
        self.each_number(None, |step| {
            sum = sum.saturating_add(step);
            of(sum)
        })
    }

    /// A long session is millions of these and little else, most of them of these two widths:
    /// each is read where it stands, and becomes at once what is kept of it.
    fn each_number<T>(
        &mut self,
        unknown: Option<u64>,
        mut of: impl FnMut(u64) -> T,
    ) -> ReadResult<Vec<T>> {
        let n_numbers = self.n_entries(size_of::<T>())?;
        let mut numbers = Vec::with_capacity(n_numbers);
        for _ in 0..n_numbers {
            numbers.push(of(match (self.rest, unknown) {
                ([low @ 0x00..=0x7f, ahead @ ..], _) => {
                    self.rest = ahead;
                    u64::from(*low)
                }
                ([0xce, a, b, c, d, ahead @ ..], _) => {
                    self.rest = ahead;
                    u64::from(u32::from_be_bytes([*a, *b, *c, *d]))
                }
                ([0xc0, ahead @ ..], Some(unknown)) => {
                    self.rest = ahead;
                    unknown
                }
                _ => self.whole()?,
            }));
        }
        Ok(numbers)
    }

    pub(super) fn string(&mut self) -> ReadResult<&'de str> {
        match self.opening()? {
            Token::Text(text) => Ok(text),
            other => Err(other.instead_of("a text")),
        }
    }

    /// Whether nothing stands here; then it is passed over.
    pub(super) fn is_nil(&mut self) -> bool {
        let rest = self.rest.strip_prefix(&[0xc0]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Passes over one value, however deep it is.
    pub(super) fn skip(&mut self) -> ReadResult<()> {
        let mut n_open = 1_usize;
        while n_open > 0 {
            n_open -= 1;
            n_open = match self.opening()? {
                Token::List(n) => n_open.saturating_add(n),
                Token::Map(n) => n_open.saturating_add(n.saturating_mul(2)),
                _ => n_open,
            };
        }
        Ok(())
    }

    /// Calls `read` for each of `n` values, which are one deeper.
    pub(super) fn nested(
        &mut self,
        n: usize,
        read: &mut dyn FnMut(&mut Self) -> ReadResult<()>,
    ) -> ReadResult<()> {
        if self.depth == MAX_DEPTH {
            return Err(DecodeError(format!(
                "values nested deeper than {MAX_DEPTH}"
            )));
        }
        self.depth += 1;
        let outcome = (0..n).try_for_each(|_| read(self));
        self.depth -= 1;
        outcome
    }
}

impl Token<'_> {
    pub(super) fn instead_of(&self, expected: &str) -> DecodeError {
        let found = match self {
            Self::Nil => "nothing".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Negative(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) => format!("\"{}\"", printable(text)),
            Self::Binary(bytes) => format!("{} bytes", bytes.len()),
            Self::List(n) => format!("a list of {n}"),
            Self::Map(n) => format!("a map of {n}"),
        };
        DecodeError(format!("{found} where {expected} belongs"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    /// Any value, as a general reader has it.
    fn any(reader: &mut Reader<'_>) -> ReadResult<Value> {
        let at_it = Reader { ..*reader };
        Ok(match reader.opening()? {
            Token::Nil => Value::Null,
            Token::Bool(value) => value.into(),
            Token::Whole(number) => number.into(),
            Token::Negative(number) => number.into(),
            Token::Float(number) => number.into(),
            Token::Text(text) => text.into(),
            Token::Binary(bytes) => bytes.into(),
            Token::List(_) => {
                *reader = at_it;
                let mut entries = Vec::new();
                let n = reader.n_entries(1)?;
                reader.nested(n, &mut |reader| {
                    entries.push(any(reader)?);
                    Ok(())
                })?;
                entries.into()
            }
            Token::Map(_) => {
                *reader = at_it;
                let mut fields = Map::new();
                reader.fields(&mut |name, reader| {
                    fields.insert(name.to_owned(), any(reader)?);
                    Ok(())
                })?;
                fields.into()
            }
        })
    }

    /// What a general writer wrote is read, and passed over, to its last byte.
    #[track_caller]
    fn check(value: &Value) {
        let bytes = rmp_serde::to_vec_named(value).expect("JSON can be written");
        let mut reader = Reader::alone(&bytes);
        let found = any(&mut reader).expect("it can be read again");
        assert_eq!((&found, reader.n_left()), (value, 0));
        let mut reader = Reader::alone(&bytes);
        reader.skip().expect("it can be passed over");
        assert_eq!(reader.n_left(), 0);
    }

    #[track_caller]
    fn check_refused<T: std::fmt::Debug>(
        read: impl FnOnce(&mut Reader<'_>) -> ReadResult<T>,
        bytes: &[u8],
        words: &str,
    ) {
        let refused = read(&mut Reader::alone(bytes)).expect_err("it does not belong");
        assert_eq!(refused.to_string(), words);
    }

    #[test]
    fn every_width_is_read() {
        for shift in 0..64 {
            check(&json!([
                1_u64 << shift,
                u64::MAX >> shift,
                i64::MIN >> shift
            ]));
        }
        for n in [0, 31, 32, 255, 256, 65_535, 65_536] {
            check(&json!("ö".repeat(n)));
            check(&json!(vec![n; n]));
        }
        check(&json!({"a": null, "b": [true, false, 0.25], "c": {"d": {}}}));
    }

    #[test]
    fn what_does_not_belong_is_named() {
        let whole = |reader: &mut Reader<'_>| reader.whole();
        check_refused(whole, &[0xa1, b'x'], "\"x\" where a whole number belongs");
        check_refused(whole, &[0xff], "-1 where a whole number belongs");
        check_refused(whole, &[0xcf, 1], "a value goes on beyond its frame");
        let list = |reader: &mut Reader<'_>| reader.n_entries(1);
        check_refused(list, &[0x80], "a map of 0 where a list belongs");
        let fields = |reader: &mut Reader<'_>| reader.fields(&mut |_, it| it.whole().map(drop));
        check_refused(fields, &[0x81, 0x07], "7 where a text belongs");
        let named = [0x81, 0xa1, b'n', 0xc3];
        check_refused(fields, &named, "n: true where a whole number belongs");
        check_refused(any, &[0xc1], "no value begins with 0xc1");
    }

    #[test]
    fn a_column_is_read_cell_by_cell() {
        let cells = (0..64).flat_map(|shift| [Some(u64::MAX >> shift), None, Some(1 << shift)]);
        let cells: Vec<Option<u64>> = cells.chain([Some(0), Some(7)]).collect();
        let bytes = rmp_serde::to_vec(&cells).expect("numbers can be written");
        let mut reader = Reader::alone(&bytes);
        let found = reader.numbers(Some(3)).expect("a list of whole numbers");
        let expected: Vec<u64> = cells.iter().map(|cell| cell.unwrap_or(3)).collect();
        assert_eq!((found, reader.n_left()), (expected, 0));
        let column = |reader: &mut Reader<'_>| reader.numbers(None);
        check_refused(column, &bytes, "nothing where a whole number belongs");
        check_refused(column, &[0x91, 0xa0], "\"\" where a whole number belongs");
        check_refused(column, &[0x92, 0x01], BEYOND);
        check_refused(column, &[0x91, 0xcf, 1], BEYOND);
        let a_list_of_4_gib = [0xdd, 0xff, 0xff, 0xff, 0xff, 0x00];
        check_refused(column, &a_list_of_4_gib, BEYOND);
    }

    #[test]
    fn made_up_lengths_and_depths_cost_nothing() {
        let a_list_of_4_gib = [0xdd, 0xff, 0xff, 0xff, 0xff];
        check_refused(any, &a_list_of_4_gib, BEYOND);
        let a_deep_one = vec![0x91; 1 << 20];
        check_refused(any, &a_deep_one, "values nested deeper than 32");
        let skip = |reader: &mut Reader<'_>| reader.skip();
        check_refused(skip, &a_deep_one, BEYOND);
    }
}
