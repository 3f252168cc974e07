//! Figures with decimals, by whole numbers.
//!
//! The page's module never formats a float by `{}`: the standard library finds the digits of every
//! float, however large, and those algorithms are 8 kB of the packed module.

/// A figure with this many decimals.
///
/// ```
/// use gpumem_core::decimal::rounded;
///
/// assert_eq!(rounded(-2.345, 1), "-2.3");
/// assert_eq!(rounded(0.6, 0), "1");
/// assert_eq!(rounded(7.0, 2), "7.00");
/// ```
pub fn rounded(value: f64, n_decimals: u32) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let one = 10_u64.pow(n_decimals);
    let size = match n_decimals {
        0 => value.abs().round_ties_even(),
        _ => value.abs(),
    };
    let decimals = (size.fract() * one as f64).round_ties_even() as u64;
    // 0.96 is 1.0: the decimals may make one more whole.
    let whole = (size as u64).saturating_add(decimals / one);
    let decimals = decimals % one;
    let sign = if value < 0.0 && (whole, decimals) != (0, 0) {
        "-"
    } else {
        ""
    };
    if size.is_infinite() {
        format!("{sign}inf")
    } else if n_decimals == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{decimals:0>0$}", n_decimals as usize)
    }
}

/// A figure with at most this many decimals, none of them a zero at the end.
///
/// ```
/// use gpumem_core::decimal::short;
///
/// assert_eq!(short(600.0, 2), "600");
/// assert_eq!(short(0.5, 2), "0.5");
/// ```
pub fn short(value: f64, n_decimals: u32) -> String {
    let text = rounded(value, n_decimals);
    match text.split_once('.') {
        None => text,
        Some((whole, decimals)) => match decimals.trim_end_matches('0') {
            "" => whole.to_owned(),
            decimals => format!("{whole}.{decimals}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_but_a_zero_has_no_sign() {
        assert_eq!(rounded(-0.004, 2), "0.00");
        assert_eq!(rounded(-0.006, 2), "-0.01");
    }

    #[test]
    fn what_is_no_number_is_named() {
        assert_eq!(rounded(f64::NAN, 1), "NaN");
        assert_eq!(short(f64::NEG_INFINITY, 2), "-inf");
    }

    proptest! {
        #[test]
        fn it_is_what_the_standard_library_writes(value in 0..1_u64 << 30, n_decimals in 0..5_u32) {
            // Odd 128ths: no halves, on which binary and decimal rounding may differ.
            let value = (2 * value + 1) as f64 / 128.0;
            prop_assert_eq!(rounded(value, n_decimals), format!("{value:.*}", n_decimals as usize));
        }
    }
}
