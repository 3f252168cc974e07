//! Sizes in running text: `21.67 GiB`, `800,000,000,000 bytes`, `1.91GiB`, `34.92G`.

use gpumem_model::units::Bytes;

/// From here on a figure means no number (`u64::MAX`, shown as 17179869184.00 GiB) or a negative one, as
/// unsigned arithmetic shows it.
const NO_NUMBER: f64 = 9_223_372_036_854_775_808.0;

/// A whole number of this size without a unit counts bytes; a process id is smaller.
const PLAIN_BYTES: u64 = 1 << 24;

/// The sizes in a lower-case text, with their offsets.
pub(super) struct TextSizes<'a> {
    text: &'a str,
    found: Vec<Size>,
}

struct Size {
    start: usize,
    end: usize,
    /// `None` if the figure means no number.
    bytes: Option<Bytes>,
}

impl<'a> TextSizes<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(step) = text[from..].find(|c: char| c.is_ascii_digit()) {
            let start = from + step;
            let end = start + number_len(&text[start..]);
            let size = Size::read(text, start, end);
            from = size.as_ref().map_or(end, |size| size.end);
            found.extend(size);
        }
        Self { text, found }
    }

    /// The size directly before one of these words; earlier words are preferred.
    pub(super) fn before(&self, words: &[&str]) -> Option<Bytes> {
        let of_place = |place: usize| {
            let idx = self.found.partition_point(|size| size.end <= place);
            let size = &self.found[idx.checked_sub(1)?];
            self.text[size.end..place].trim().is_empty().then_some(size)
        };
        let of_words = |words: &&str| {
            let mut places = self.text.match_indices(words);
            places.find_map(|(place, _)| of_place(place))
        };
        words.iter().find_map(of_words)?.bytes
    }

    /// The size directly after one of these words; earlier words are preferred.
    pub(super) fn after(&self, words: &[&str]) -> Option<Bytes> {
        let of_words = |words: &&str| {
            let mut places = self.text.match_indices(words);
            places.find_map(|(place, found)| self.next(place + found.len()))
        };
        words.iter().find_map(of_words)?.bytes
    }

    /// The size at this offset.
    pub(super) fn at(&self, place: usize) -> Option<Bytes> {
        self.next(place)?.bytes
    }

    /// Only blanks and a colon may be between them.
    fn next(&self, place: usize) -> Option<&Size> {
        let idx = self.found.partition_point(|size| size.start < place);
        let size = self.found.get(idx)?;
        let between = &self.text[place..size.start];
        let is_gap = |c: char| c.is_whitespace() || matches!(c, ':' | '=' | '(');
        between.chars().all(is_gap).then_some(size)
    }
}

impl Size {
    /// The number in `start..end` and the unit after it; `None` if it is part of a word.
    fn read(text: &str, start: usize, end: usize) -> Option<Self> {
        let is_part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if text[..start].ends_with(is_part_of_word) {
            return None;
        }
        let plain: String = text[start..end]
            .chars()
            .filter(|c| !matches!(c, ',' | '_'))
            .collect();
        let after = &text[end..];
        let n_blanks = after
            .bytes()
            .take_while(|b| matches!(b, b' ' | b'\t'))
            .count();
        let word = &after[n_blanks..];
        let n_letters = word.bytes().take_while(u8::is_ascii_alphabetic).count();
        if let Some(factor) = factor_of(&word[..n_letters]) {
            return Some(Self {
                start,
                end: end + n_blanks + n_letters,
                bytes: product(&plain, factor),
            });
        }
        let whole: u64 = plain.parse().ok()?;
        (whole >= PLAIN_BYTES).then(|| Self {
            start,
            end,
            bytes: product(&plain, 1),
        })
    }
}

/// Bytes per unit.
fn factor_of(unit: &str) -> Option<u64> {
    let exponent = match unit {
        "b" | "byte" | "bytes" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        "e" | "eb" | "eib" => 60,
        _ => return None,
    };
    Some(1 << exponent)
}

/// Exact if the number is whole.
fn product(number: &str, factor: u64) -> Option<Bytes> {
    let rounded = number.parse::<f64>().ok()? * factor as f64;
    if rounded.is_nan() || rounded >= NO_NUMBER {
        return None;
    }
    let whole: Option<u64> = number.parse().ok();
    let exact = whole.and_then(|whole| whole.checked_mul(factor));
    Some(Bytes::new(exact.unwrap_or(rounded.round() as u64)))
}

/// Where a number ends: digits, also in groups, a fraction, an exponent.
fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |idx: usize| bytes.get(idx).is_some_and(u8::is_ascii_digit);
    let is_one_of = |idx: usize, signs: &[u8]| bytes.get(idx).is_some_and(|b| signs.contains(b));
    let mut len = 0;
    while is_digit(len) || (is_one_of(len, b",_") && is_digit(len + 1)) {
        len += 1;
    }
    if is_one_of(len, b".") && is_digit(len + 1) {
        len += 1;
        while is_digit(len) {
            len += 1;
        }
    }
    let n_signs = usize::from(is_one_of(len + 1, b"+-"));
    if is_one_of(len, b"e") && is_digit(len + 1 + n_signs) {
        len += 1 + n_signs;
        while is_digit(len) {
            len += 1;
        }
    }
    len
}
