//! `1234 MiB` → bytes, and the texts in place of missing figures.

use crate::level_log::LogReading;
use gpumem_model::units::Bytes;

/// Bytes per unit of a column. nvidia-smi's MB are MiB, too.
pub(super) fn unit(name: &str) -> Option<u64> {
    match name.trim().to_ascii_lowercase().as_str() {
        "b" | "bytes" => Some(1),
        "kib" | "kb" => Some(1 << 10),
        "mib" | "mb" => Some(1 << 20),
        "gib" | "gb" => Some(1 << 30),
        _ => None,
    }
}

/// A level with its unit, or in a column's unit; `None` if it is neither a level nor a text for a missing one.
pub(super) fn level(text: &str, column_unit: u64) -> Option<LogReading<'_>> {
    let text = text.trim();
    if is_missing(text) {
        return Some(Err(text));
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    let unit = if rest.is_empty() {
        column_unit
    } else {
        unit(rest)?
    };
    let bytes = if let Ok(whole) = number.parse::<u64>() {
        whole.checked_mul(unit)?
    } else {
        let is_decimal = number.contains('.') && number.bytes().any(|byte| byte.is_ascii_digit());
        let number: f64 = number.parse().ok().filter(|_| is_decimal)?;
        (number * unit as f64).round() as u64
    };
    Some(Ok(Bytes::new(bytes)))
}

/// A text for a missing figure: `[N/A]`, `[Not Supported]`, `[Insufficient Permissions]`, `-`.
pub(super) fn is_missing(text: &str) -> bool {
    text.starts_with('[') && text.ends_with(']') || matches!(text, "N/A" | "-" | "" | "ERR!")
}

/// Whether a unit follows a level.
pub(super) fn has_unit(text: &str) -> bool {
    text.trim().ends_with('B')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<LogReading<'static>>) {
        assert_eq!(level(text, 1 << 20), expected, "{text}");
    }

    #[test]
    fn levels_have_their_unit_or_that_of_the_column() {
        check(" 1234 MiB", Some(Ok(Bytes::mib(1234))));
        check("1234", Some(Ok(Bytes::mib(1234))));
        check("1.5 GiB", Some(Ok(Bytes::mib(1536))));
        check("7 KiB", Some(Ok(Bytes::new(7168))));
        for missing in [
            "[N/A]",
            "[Not Supported]",
            "[Insufficient Permissions]",
            "N/A",
            "-",
        ] {
            check(missing, Some(Err(missing)));
        }
        for wrong in [
            "12 Mi",
            "python",
            "-4",
            "1.2.3",
            ".",
            "99999999999999999999 MiB",
            "18446744073709551615",
        ] {
            check(wrong, None);
        }
    }
}
