//! Reading `MessagePack`, by what the wire types ask for.
//!
//! A general deserializer has to be ready for every type at every place; that is
//! compiled once per type and took a third of the page's module. The wire says what
//! it wants, so here each request reads just that.

use std::fmt::Display;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

/// How deep values may be nested; the wire's own are at most 6 deep.
const MAX_DEPTH: usize = 32;

/// Why a value was refused, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

impl serde::de::Error for Refused {
    fn custom<T: Display>(words: T) -> Self {
        Self(words.to_string())
    }
}

pub(super) type Outcome<T> = Result<T, Refused>;

/// What a value's first bytes say.
enum Opening<'de> {
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
}

impl<'de> Reader<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Self {
            rest: bytes,
            depth: 0,
        }
    }

    /// How many bytes are not read yet.
    pub(super) fn n_left(&self) -> usize {
        self.rest.len()
    }

    fn bytes(&mut self, n: usize) -> Outcome<&'de [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(n) else {
            return Err(Refused("a value goes on beyond its frame".to_owned()));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// A big-endian number of `n` bytes, at most 8.
    fn number(&mut self, n: usize) -> Outcome<u64> {
        let bytes = self.bytes(n)?;
        Ok(bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn length(&mut self, n: usize) -> Outcome<usize> {
        let length = self.number(n)?;
        usize::try_from(length).map_err(Refused::custom)
    }

    fn text(&mut self, n: usize) -> Outcome<Opening<'de>> {
        let text = std::str::from_utf8(self.bytes(n)?).map_err(Refused::custom)?;
        Ok(Opening::Text(text))
    }

    fn opening(&mut self) -> Outcome<Opening<'de>> {
        let marker = self.bytes(1)?[0];
        let low = |mask: u8| usize::from(marker & mask);
        Ok(match marker {
            0x00..=0x7f => Opening::Whole(marker.into()),
            0x80..=0x8f => Opening::Map(low(0x0f)),
            0x90..=0x9f => Opening::List(low(0x0f)),
            0xa0..=0xbf => return self.text(low(0x1f)),
            0xc0 => Opening::Nil,
            0xc2 | 0xc3 => Opening::Bool(marker == 0xc3),
            0xc4..=0xc6 => {
                let n = self.length(1 << (marker - 0xc4))?;
                Opening::Binary(self.bytes(n)?)
            }
            0xca => {
                let bits = u32::try_from(self.number(4)?).map_err(Refused::custom)?;
                Opening::Float(f32::from_bits(bits).into())
            }
            0xcb => Opening::Float(f64::from_bits(self.number(8)?)),
            0xcc..=0xcf => Opening::Whole(self.number(1 << (marker - 0xcc))?),
            0xd0..=0xd3 => {
                let n_bytes = 1 << (marker - 0xd0);
                let n_unused = 64 - 8 * n_bytes;
                let number = (self.number(n_bytes)? << n_unused).cast_signed() >> n_unused;
                u64::try_from(number).map_or(Opening::Negative(number), Opening::Whole)
            }
            0xd9..=0xdb => {
                let n = self.length(1 << (marker - 0xd9))?;
                return self.text(n);
            }
            0xdc | 0xdd => Opening::List(self.length(2 << (marker - 0xdc))?),
            0xde | 0xdf => Opening::Map(self.length(2 << (marker - 0xde))?),
            0xe0..=0xff => Opening::Negative(marker.cast_signed().into()),
            0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => {
                return Err(Refused(format!("no value begins with {marker:#04x}")));
            }
        })
    }

    pub(super) fn whole(&mut self) -> Outcome<u64> {
        // One, two, four or eight bytes: of the eight that follow so many count.
        if let [marker @ 0xcc..=0xcf, ahead @ ..] = self.rest
            && let Some(eight) = ahead.first_chunk::<8>()
        {
            let n_bytes = 1 << (marker - 0xcc);
            self.rest = &ahead[n_bytes..];
            return Ok(u64::from_be_bytes(*eight) >> (64 - 8 * n_bytes));
        }
        match self.opening()? {
            Opening::Whole(number) => Ok(number),
            other => Err(other.instead_of("a whole number")),
        }
    }

    /// The fields of a map: `read` is given each name, and reads its value.
    pub(super) fn fields(
        &mut self,
        mut read: impl FnMut(&str, &mut Self) -> Outcome<()>,
    ) -> Outcome<()> {
        let n = match self.opening()? {
            Opening::Map(n) => n,
            other => return Err(other.instead_of("a map")),
        };
        for _ in 0..n {
            let name = self.string()?;
            self.nested(|reader| read(name, reader))?;
        }
        Ok(())
    }

    /// A list of numbers, each read by `read`.
    ///
    /// A long session is millions of these and little else: each is read where it stands.
    pub(super) fn numbers<T: Copy + Default>(
        &mut self,
        read: fn(&mut Self) -> Outcome<T>,
    ) -> Outcome<Vec<T>> {
        let n = match self.opening()? {
            Opening::List(n) => n,
            other => return Err(other.instead_of("a list")),
        };
        // A length that was made up reserves no more than the frame can hold.
        let mut numbers = vec![T::default(); n.min(self.rest.len())];
        for number in &mut numbers {
            *number = read(self)?;
        }
        if numbers.len() < n {
            self.bytes(n)?;
        }
        Ok(numbers)
    }

    /// A whole number that may be unknown.
    pub(super) fn cell(&mut self) -> Outcome<Option<u64>> {
        match self.rest {
            [0xc0, ahead @ ..] => {
                self.rest = ahead;
                Ok(None)
            }
            _ => self.whole().map(Some),
        }
    }

    pub(super) fn string(&mut self) -> Outcome<&'de str> {
        match self.opening()? {
            Opening::Text(text) => Ok(text),
            other => Err(other.instead_of("a text")),
        }
    }

    pub(super) fn is_nil(&self) -> bool {
        self.rest.first() == Some(&0xc0)
    }

    /// Passes over one value, however deep it is.
    pub(super) fn skip(&mut self) -> Outcome<()> {
        let mut n_open = 1_usize;
        while n_open > 0 {
            n_open -= 1;
            n_open = match self.opening()? {
                Opening::List(n) => n_open.saturating_add(n),
                Opening::Map(n) => n_open.saturating_add(n.saturating_mul(2)),
                _ => n_open,
            };
        }
        Ok(())
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth == MAX_DEPTH {
            return Err(Refused(format!("values nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn list<V: Visitor<'de>>(&mut self, n: usize, visitor: V) -> Outcome<V::Value> {
        self.nested(|reader| visitor.visit_seq(Entries { reader, n_left: n }))
    }

    fn map<V: Visitor<'de>>(&mut self, n: usize, visitor: V) -> Outcome<V::Value> {
        self.nested(|reader| visitor.visit_map(Entries { reader, n_left: n }))
    }
}

impl Opening<'_> {
    fn instead_of(&self, expected: &str) -> Refused {
        let found = match self {
            Self::Nil => "nothing".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Negative(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) => format!("{text:?}"),
            Self::Binary(bytes) => format!("{} bytes", bytes.len()),
            Self::List(n) => format!("a list of {n}"),
            Self::Map(n) => format!("a map of {n}"),
        };
        Refused(format!("{found} where {expected} belongs"))
    }
}

macro_rules! whole_numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
            visitor.visit_u64(self.whole()?)
        }
    )*};
}

macro_rules! texts {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
            visitor.visit_borrowed_str(self.string()?)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Refused;

    whole_numbers! { deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }
    texts! { deserialize_str deserialize_string deserialize_identifier }
    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        match self.opening()? {
            Opening::Nil => visitor.visit_unit(),
            Opening::Bool(value) => visitor.visit_bool(value),
            Opening::Whole(number) => visitor.visit_u64(number),
            Opening::Negative(number) => visitor.visit_i64(number),
            Opening::Float(number) => visitor.visit_f64(number),
            Opening::Text(text) => visitor.visit_borrowed_str(text),
            Opening::Binary(bytes) => visitor.visit_borrowed_bytes(bytes),
            Opening::List(n) => self.list(n, visitor),
            Opening::Map(n) => self.map(n, visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        match self.opening()? {
            Opening::Bool(value) => visitor.visit_bool(value),
            other => Err(other.instead_of("true or false")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        if self.is_nil() {
            self.skip()?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Outcome<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        match self.opening()? {
            Opening::List(n) => self.list(n, visitor),
            other => Err(other.instead_of("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        match self.opening()? {
            Opening::Map(n) => self.map(n, visitor),
            other => Err(other.instead_of("a map")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Outcome<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Outcome<V::Value> {
        visitor.visit_enum(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        self.skip()?;
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The entries of a list or of a map that are not read yet.
struct Entries<'a, 'de> {
    reader: &'a mut Reader<'de>,
    n_left: usize,
}

impl<'de> SeqAccess<'de> for Entries<'_, 'de> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<Option<T::Value>> {
        if self.n_left == 0 {
            return Ok(None);
        }
        self.n_left -= 1;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        // A length that was made up reserves no more than the frame can hold.
        Some(self.n_left.min(self.reader.n_left()))
    }
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Outcome<V::Value> {
        seed.deserialize(&mut *self.reader)
    }
}

/// A variant is its name.
impl<'de> EnumAccess<'de> for &mut Reader<'de> {
    type Error = Refused;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Outcome<(V::Value, Self)> {
        let variant = seed.deserialize(&mut *self)?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Reader<'de> {
    type Error = Refused;

    fn unit_variant(self) -> Outcome<()> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _seed: T) -> Outcome<T::Value> {
        Err(Refused("a variant has no value here".to_owned()))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, _visitor: V) -> Outcome<V::Value> {
        Err(Refused("a variant has no value here".to_owned()))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Outcome<V::Value> {
        Err(Refused("a variant has no value here".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde::de::{DeserializeOwned, IgnoredAny};
    use serde_json::{Value, json};

    use super::*;

    fn read<T: DeserializeOwned>(bytes: &[u8]) -> Outcome<T> {
        T::deserialize(&mut Reader::new(bytes))
    }

    /// What a general writer wrote is read, and passed over, to its last byte.
    #[track_caller]
    fn check(value: &Value) {
        let bytes = rmp_serde::to_vec_named(value).expect("JSON can be written");
        let mut reader = Reader::new(&bytes);
        let found = Value::deserialize(&mut reader).expect("it can be read again");
        assert_eq!((&found, reader.n_left()), (value, 0));
        let mut reader = Reader::new(&bytes);
        IgnoredAny::deserialize(&mut reader).expect("it can be passed over");
        assert_eq!(reader.n_left(), 0);
    }

    #[track_caller]
    fn check_refused<T: DeserializeOwned + std::fmt::Debug>(bytes: &[u8], words: &str) {
        assert_eq!(read::<T>(bytes).unwrap_err().to_string(), words);
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
        check_refused::<u64>(&[0xa1, b'x'], "\"x\" where a whole number belongs");
        check_refused::<u64>(&[0xff], "-1 where a whole number belongs");
        check_refused::<String>(&[0x07], "7 where a text belongs");
        check_refused::<Vec<u64>>(&[0x80], "a map of 0 where a list belongs");
        check_refused::<u64>(&[0xcf, 1], "a value goes on beyond its frame");
        check_refused::<Value>(&[0xc1], "no value begins with 0xc1");
    }

    #[test]
    fn a_column_is_read_cell_by_cell() {
        let cells = (0..64).flat_map(|shift| [Some(u64::MAX >> shift), None, Some(1 << shift)]);
        let cells: Vec<Option<u64>> = cells.chain([Some(0), Some(7)]).collect();
        let bytes = rmp_serde::to_vec(&cells).expect("numbers can be written");
        let mut reader = Reader::new(&bytes);
        let found = reader
            .numbers(Reader::cell)
            .expect("a list of whole numbers");
        assert_eq!((found, reader.n_left()), (cells, 0));
        let refused = |bytes: &[u8]| {
            Reader::new(bytes)
                .numbers(Reader::cell)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(refused(&[0x91, 0xa0]), "\"\" where a whole number belongs");
        assert_eq!(refused(&[0x92, 0x01]), "a value goes on beyond its frame");
        assert_eq!(
            refused(&[0x91, 0xcf, 1]),
            "a value goes on beyond its frame"
        );
        let a_list_of_4_gib = [0xdd, 0xff, 0xff, 0xff, 0xff, 0x00];
        assert_eq!(
            refused(&a_list_of_4_gib),
            "a value goes on beyond its frame"
        );
    }

    #[test]
    fn made_up_lengths_and_depths_cost_nothing() {
        let a_list_of_4_gib = [0xdd, 0xff, 0xff, 0xff, 0xff];
        check_refused::<Vec<u64>>(&a_list_of_4_gib, "a value goes on beyond its frame");
        let a_deep_one = vec![0x91; 1 << 20];
        check_refused::<Value>(&a_deep_one, "values nested deeper than 32");
        check_refused::<IgnoredAny>(&a_deep_one, "a value goes on beyond its frame");
    }
}
