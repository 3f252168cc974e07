//! Bytes, byte deltas and nanoseconds as types, so that a level is never taken for a delta or a time.
//!
//! Arithmetic saturates: figures come from drivers and files, and a wrong one must not panic in the
//! user's kernel.
//!
//! ```
//! use gpumem_model::units::{ByteDelta, Bytes, Nanos};
//!
//! let (before, after) = (Bytes::mib(300), Bytes::mib(720));
//! assert_eq!((after - before).to_string(), "+420 MiB");
//! assert_eq!(Nanos::millis(2_500).since(Nanos::millis(500)).to_string(), "2.0 s");
//! ```

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::named;

const KIB: f64 = 1024.0;
const BINARY_UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DECIMAL_UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];

/// A number that is of one unit; `Add` stops at the largest.
macro_rules! unit {
    ($(#[$docs:meta])* $Unit:ident($number:ty), $zero:literal, $what:literal) => {
        $(#[$docs])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $Unit($number);

        impl $Unit {
            #[doc = $zero]
            pub const ZERO: Self = Self(0);

            #[doc = concat!("`n` ", $what, ".")]
            pub const fn new(n: $number) -> Self {
                Self(n)
            }

            #[doc = concat!("The number of ", $what, ".")]
            pub const fn get(self) -> $number {
                self.0
            }

            #[doc = concat!("The number of ", $what, " for statistics and drawing; exact below 2^53.")]
            pub fn as_f64(self) -> f64 {
                self.0 as f64
            }
        }

        impl Add for $Unit {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $Unit {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sum for $Unit {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, Add::add)
            }
        }
    };
}

unit! {
    /// A level or a size, in bytes.
    ///
    /// `Display` uses binary units and three significant digits. Subtraction gives a [`ByteDelta`].
    Bytes(u64), "No bytes at all, which is not the same as unknown.", "bytes"
}

impl Bytes {
    /// `n` mebibytes (2^20 bytes).
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// `n` gibibytes (2^30 bytes).
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }

    /// The signed change from `before` to `self`, limited to the range of an `i64`.
    pub fn since(self, before: Self) -> ByteDelta {
        let wide = i128::from(self.0) - i128::from(before.0);
        ByteDelta(wide.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// `self - other`, or zero if `other` is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sub for Bytes {
    type Output = ByteDelta;
    fn sub(self, before: Self) -> ByteDelta {
        self.since(before)
    }
}

impl fmt::Display for Bytes {
    /// In binary units, with three significant digits: `420 MiB`, `6.94 GiB`, `512 B`. What a
    /// reader may want in other units is shown by [`Units::size`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Units::Binary.size(*self))
    }
}

unit! {
    /// A signed difference of levels, in bytes.
    ByteDelta(i64), "No change.", "bytes more, or fewer if it is negative"
}

impl ByteDelta {
    /// The nearest whole number of bytes; NaN is no change.
    pub fn from_f64(n: f64) -> Self {
        Self(n.round() as i64)
    }

    /// Its size without its sign.
    pub const fn magnitude(self) -> Bytes {
        Bytes(self.0.unsigned_abs())
    }
}

impl Neg for ByteDelta {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl fmt::Display for ByteDelta {
    /// As [`Units::change`], in binary units.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&Units::Binary.change(*self))
    }
}

unit! {
    /// Nanoseconds: a duration, or an instant counted from the recording's start.
    ///
    /// Instants are not epoch times, because epoch nanoseconds do not fit a JavaScript number exactly; a
    /// recording's [`Header`](crate::recording::Header) has the one wall-clock anchor.
    Nanos(u64), "The recording's start.", "nanoseconds"
}

impl Nanos {
    /// `n` milliseconds.
    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

/// The error of parsing [`Nanos`]; its message says how to write a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotATime {
    text: String,
}

impl fmt::Display for NotATime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text.trim();
        if text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok() {
            return write!(f, "{text:?} has no unit: write {text}ms or {text}s");
        }
        write!(f, "{text:?} is not a duration: write one as 10ms or 0.5s")
    }
}

impl std::error::Error for NotATime {}

impl FromStr for Nanos {
    type Err = NotATime;

    /// A number with its unit: `250us`, `10ms`, `0.5 s`.
    fn from_str(text: &str) -> Result<Self, NotATime> {
        let not_a_time = || NotATime {
            text: text.to_owned(),
        };
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        let (number, unit) = trimmed.split_at(split.ok_or_else(not_a_time)?);
        let nanos_per_unit = match unit.trim_start() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return Err(not_a_time()),
        };
        let number: f64 = number.parse().map_err(|_| not_a_time())?;
        Ok(Self((number * nanos_per_unit).round() as u64))
    }
}

impl fmt::Display for Nanos {
    /// `180 µs`, `35 ms`, `1.2 s`, `3 min 20 s`, `2 h 5 min`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.as_f64();
        let shown = match self.0 {
            0..1_000 => format!("{} ns", self.0),
            1_000..1_000_000 => format!("{} µs", digits(n / 1e3)),
            1_000_000..1_000_000_000 => format!("{} ms", digits(n / 1e6)),
            1_000_000_000..60_000_000_000 => format!("{:.1} s", n / 1e9),
            60_000_000_000..3_600_000_000_000 => {
                let seconds = self.0 / 1_000_000_000;
                format!("{} min {} s", seconds / 60, seconds % 60)
            }
            _ => {
                let minutes = self.0 / 60_000_000_000;
                format!("{} h {} min", minutes / 60, minutes % 60)
            }
        };
        f.pad(&shown)
    }
}

named! {
    /// How sizes are shown. The reader chooses; binary is the default.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Units {
        /// Powers of 1024: `6.94 GiB`.
        #[default]
        Binary = "GiB",
        /// Powers of 1000: `7.45 GB`.
        Decimal = "GB",
        /// To the byte: `7451000000 B`.
        Bytes = "B",
    }
}

impl Units {
    /// A size with three significant digits, or exact in [`Units::Bytes`].
    pub fn size(self, size: Bytes) -> String {
        match self {
            Self::Binary => scaled(size.as_f64(), KIB, BINARY_UNITS),
            Self::Decimal => scaled(size.as_f64(), 1000.0, DECIMAL_UNITS),
            Self::Bytes => format!("{} B", size.get()),
        }
    }

    /// A change with its sign: `+420 MiB`, `−1.5 GiB`; zero has none: `0 B`.
    pub fn change(self, change: ByteDelta) -> String {
        let sign = match change.get() {
            0 => "",
            n if n < 0 => "−",
            _ => "+",
        };
        format!("{sign}{}", self.size(change.magnitude()))
    }
}

fn scaled(n_bytes: f64, thousand: f64, names: [&str; 6]) -> String {
    let mut unit_idx = 0;
    let mut value = n_bytes;
    // 1023.5 would be shown as 1024 of the smaller unit.
    while value >= thousand - 0.5 && unit_idx + 1 < names.len() {
        value /= thousand;
        unit_idx += 1;
    }
    format!("{} {}", digits(value), names[unit_idx])
}

/// Three significant digits without trailing zeros: 6.94, 12.3, 420, 0.5.
fn digits(value: f64) -> String {
    let n_decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    trimmed(value, n_decimals)
}

/// A figure with at most this many decimals, without zeros at their end.
pub fn trimmed(value: f64, n_decimals: usize) -> String {
    let text = format!("{value:.n_decimals$}");
    match n_decimals {
        0 => text,
        _ => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// [`count`] of what may be more than memory holds.
pub fn count_of(n: u64, what: &str) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), what)
}

/// A count with its noun.
pub fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_bytes(n: u64, shown: &str) {
        assert_eq!(Bytes::new(n).to_string(), shown);
    }

    #[track_caller]
    fn check_nanos(n: u64, shown: &str) {
        assert_eq!(Nanos::new(n).to_string(), shown);
    }

    #[test]
    fn bytes_are_shown_in_binary_units() {
        check_bytes(0, "0 B");
        check_bytes(512, "512 B");
        check_bytes(1023, "1023 B");
        check_bytes(1024, "1 KiB");
        check_bytes(420 << 20, "420 MiB");
        check_bytes(7_451_000_000, "6.94 GiB");
        check_bytes((1 << 30) - 1, "1 GiB");
        check_bytes(u64::MAX, "16384 PiB");
    }

    #[test]
    fn sizes_are_shown_as_the_reader_wants_them() {
        let shown = |units: Units| {
            let shown = [7_451_000_000, 999, 1_000_000].map(|n| units.size(Bytes::new(n)));
            (shown, units.change(ByteDelta::new(-2000)))
        };
        let expect = |shown: [&str; 3], delta: &str| (shown.map(str::to_owned), delta.to_owned());
        assert_eq!(
            shown(Units::Decimal),
            expect(["7.45 GB", "999 B", "1 MB"], "−2 kB")
        );
        assert_eq!(
            shown(Units::Bytes),
            expect(["7451000000 B", "999 B", "1000000 B"], "−2000 B")
        );
        for units in Units::ALL {
            assert_eq!(Units::from_name(units.name()), Some(units));
        }
    }

    #[test]
    fn deltas_carry_their_sign() {
        assert_eq!(ByteDelta::new(420 << 20).to_string(), "+420 MiB");
        assert_eq!(ByteDelta::new(-(3 << 29)).to_string(), "−1.5 GiB");
        assert_eq!(ByteDelta::ZERO.to_string(), "0 B");
        assert_eq!(ByteDelta::new(i64::MIN).magnitude(), Bytes::new(1 << 63));
    }

    #[test]
    fn times_are_shown_in_the_unit_that_reads_best() {
        check_nanos(950, "950 ns");
        check_nanos(180_000, "180 µs");
        check_nanos(35_000_000, "35 ms");
        check_nanos(1_234_000_000, "1.2 s");
        check_nanos(200_000_000_000, "3 min 20 s");
        check_nanos(7_500_000_000_000, "2 h 5 min");
    }

    #[track_caller]
    fn check_time(text: &str, expected: Result<Nanos, &str>) {
        let read: Result<Nanos, _> = text.parse();
        let read = read.map_err(|error: NotATime| error.to_string());
        assert_eq!(read, expected.map_err(ToOwned::to_owned));
    }

    #[test]
    fn a_time_is_read_with_its_unit() {
        check_time("10ms", Ok(Nanos::millis(10)));
        check_time(" 0.5 s ", Ok(Nanos::millis(500)));
        check_time("250us", Ok(Nanos::new(250_000)));
        check_time("3µs", Ok(Nanos::new(3_000)));
        check_time("5", Err("\"5\" has no unit: write 5ms or 5s"));
        for no_time in ["fast", "", "-5ms", "1.2.3s", "ms", "5 min", "nan", "1e3ms"] {
            let words = format!("{no_time:?} is not a duration: write one as 10ms or 0.5s");
            check_time(no_time, Err(&words));
        }
    }

    #[test]
    fn differences_never_wrap() {
        assert_eq!(Bytes::new(u64::MAX).since(Bytes::ZERO).get(), i64::MAX);
        assert_eq!(Bytes::ZERO.since(Bytes::new(u64::MAX)).get(), i64::MIN);
    }
}
