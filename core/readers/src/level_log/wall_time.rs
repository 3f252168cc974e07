//! Times as logs write them.

use std::fmt;

use gpumem_model::units::Nanos;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// What a time is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WallTimeKind {
    /// Day and time in the log's own time zone.
    Local,
    /// Day and time in UTC: it was a Unix time.
    Utc,
    /// The time of day alone.
    OfDay,
    /// Time since an unknown start.
    Elapsed,
}

/// A time in a log, by the clock of the machine that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallTime {
    /// Since 1970, or since midnight.
    nanos: i64,
    kind: WallTimeKind,
}

impl WallTime {
    /// The time in a text, if it is one: `2024/01/17 12:34:56.789`, `2024-01-17T12:34:56+08:00`, `20240117
    /// 12:34:56`, `Wed Jan 17 12:34:56 2024`, `12:34:56`, or seconds, milliseconds, microseconds or nanoseconds since
    /// 1970. Only the time of day of `04-03-2021 12:34:56` counts: its day may be in March or in April.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_between = |c: char| c == 'T' || c.is_ascii_whitespace();
        let (nanos, kind) = if let Some(nanos) = unix(text) {
            (nanos, WallTimeKind::Utc)
        } else if let Some(nanos) = of_date(text) {
            (nanos, WallTimeKind::Local)
        } else {
            match text.split_once(is_between) {
                None => (of_day(text)?, WallTimeKind::OfDay),
                Some((day, clock)) if is_ambiguous_day(day) => {
                    (of_day(clock.trim())?, WallTimeKind::OfDay)
                }
                Some((day, clock)) => {
                    let clock = of_day(clock.trim())?;
                    let nanos = days(day)?.checked_mul(DAY)?.checked_add(clock)?;
                    (nanos, WallTimeKind::Local)
                }
            }
        };
        Some(Self { nanos, kind })
    }

    /// Nanoseconds since 1970, in UTC.
    pub const fn unix_nanos(nanos: i64) -> Self {
        let kind = WallTimeKind::Utc;
        Self { nanos, kind }
    }

    /// A time since the log's start.
    pub(crate) fn since_start(elapsed: Nanos) -> Self {
        let nanos = i64::try_from(elapsed.get()).unwrap_or(i64::MAX);
        let kind = WallTimeKind::Elapsed;
        Self { nanos, kind }
    }

    /// Whether it names an instant, and not only the time since a start.
    pub const fn is_of_clock(self) -> bool {
        !matches!(self.kind, WallTimeKind::Elapsed)
    }

    /// Nanoseconds since 1970 by the log's clock, or since the midnight before its first line.
    pub const fn nanos(self) -> i64 {
        self.nanos
    }

    /// The time from `earlier` to this; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Nanos {
        let nanos = self.nanos.saturating_sub(earlier.nanos);
        Nanos::new(u64::try_from(nanos).unwrap_or(0))
    }

    /// A time of day after `before`: midnight may lie between them.
    pub(crate) fn after_midnight(self, before: Option<Self>) -> Self {
        let Some(before) = before.filter(|_| self.kind == WallTimeKind::OfDay) else {
            return self;
        };
        let mut nanos = self.nanos + before.nanos.div_euclid(DAY) * DAY;
        if before.nanos - nanos > DAY / 2 {
            nanos += DAY;
        }
        Self { nanos, ..self }
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.nanos.rem_euclid(DAY) / SECOND;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let clock = format!("{hour:02}:{minute:02}:{second:02}");
        let (year, month, day) = civil(self.nanos.div_euclid(DAY));
        match self.kind {
            WallTimeKind::OfDay => f.write_str(&clock),
            WallTimeKind::Elapsed => Nanos::new(self.nanos.unsigned_abs()).fmt(f),
            WallTimeKind::Local => write!(f, "{year:04}-{month:02}-{day:02} {clock}"),
            WallTimeKind::Utc => write!(f, "{year:04}-{month:02}-{day:02} {clock} UTC"),
        }
    }
}

/// `Wed Jan 17 12:34:56 2024` of the C library, and the forms of `date`: with a zone, with the day before the
/// month, with twelve hours.
fn of_date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let mut month = None;
    let mut day_and_year = [None; 2];
    let mut clock = None;
    let mut words = text
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .peekable();
    while let Some(word) = words.next() {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let lower = word.to_ascii_lowercase();
        match word.len() {
            _ if word.contains(':') => {
                let half = words.peek().copied().unwrap_or_default();
                clock = clock.or(of_day(&format!("{word} {half}")));
            }
            1 | 2 if is_number => day_and_year[0] = digits(word),
            4 if is_number => day_and_year[1] = digits(word),
            3..=9 if month.is_none() => month = MONTHS.iter().position(|it| lower.starts_with(it)),
            _ => (),
        }
    }
    let ([Some(day), Some(year)], Some(month), Some(clock)) = (day_and_year, month, clock) else {
        return None;
    };
    let days = days(&format!("{year:04}-{:02}-{day:02}", month + 1))?;
    days.checked_mul(DAY)?.checked_add(clock)
}

/// `04-03-2021`.
fn is_ambiguous_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', '/', '.']).collect();
    let n_digits: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let is_number = parts.iter().all(|part| digits(part).is_some());
    is_number && matches!(n_digits[..], [1..=2, 1..=2, 4])
}

/// A number of seconds, milliseconds, microseconds or nanoseconds since 1970; its size decides which.
fn unix(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let n_digits = whole.len();
    // Times before 2001 do not occur; eight digits are a day.
    if !(10..=19).contains(&n_digits) {
        return None;
    }
    let nanos_each: i64 = match n_digits {
        10..=11 => SECOND,
        12..=14 => 1_000_000,
        15..=17 => 1_000,
        _ => 1,
    };
    let whole = digits(whole)?.checked_mul(nanos_each)?;
    let part = if fraction.is_empty() {
        0
    } else {
        part(fraction)? / (SECOND / nanos_each)
    };
    whole.checked_add(part)
}

/// Days since 1970 of `2024/01/17`, `2024-01-17` or `20240117`.
fn days(text: &str) -> Option<i64> {
    let is_between = |c: char| c == '/' || c == '-';
    let (year, month, day) = if text.contains(is_between) {
        let mut parts = text.splitn(3, is_between);
        (parts.next()?, parts.next()?, parts.next()?)
    } else if text.len() == 8 {
        (text.get(..4)?, text.get(4..6)?, text.get(6..)?)
    } else {
        return None;
    };
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    let is_day = (1970..=9999).contains(&year) && (1..=12).contains(&month);
    if !is_day || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have their leap day last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let in_year = (153 * month + 2) / 5 + day - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + in_year - 719_468)
}

/// The inverse of [`days`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, in_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let in_era_years = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * in_era_years + in_era_years / 4 - in_era_years / 100);
    let month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + in_era_years + later, month, day)
}

/// Nanoseconds since midnight of `12:34:56.789`; a time zone after it is ignored.
fn of_day(text: &str) -> Option<i64> {
    let end = text.find(['+', '-', 'Z', ' ']).unwrap_or(text.len());
    let (text, behind) = text.split_at(end);
    let half = behind.split_whitespace().next().unwrap_or_default();
    let mut parts = text.splitn(3, ':');
    let (hour, minute, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (second, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, "0"));
    let (hour, minute, second) = (digits(hour)?, digits(minute)?, digits(second)?);
    if hour >= 24 || minute >= 60 || second > 60 {
        return None;
    }
    let hour = match half.to_ascii_lowercase().as_str() {
        "am" => hour % 12,
        "pm" => hour % 12 + 12,
        _ => hour,
    };
    let seconds = hour * 3600 + minute * 60 + second;
    Some(seconds * SECOND + part(fraction)?)
}

/// `789` behind a point, in billionths.
fn part(fraction: &str) -> Option<i64> {
    let fraction = fraction.get(..9).unwrap_or(fraction);
    let n_zeros = 9_u32.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    digits(fraction)?.checked_mul(10_i64.checked_pow(n_zeros)?)
}

fn digits(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let shown = WallTime::parse(text).map(|time| time.to_string());
        assert_eq!(shown.as_deref(), expected, "{text}");
    }

    #[test]
    fn times_are_read_as_logs_write_them() {
        check("2024/02/29 23:59:59.999", Some("2024-02-29 23:59:59"));
        check("2025-09-08T17:26:50+08:00", Some("2025-09-08 17:26:50"));
        check("2025-09-08T17:26:50Z", Some("2025-09-08 17:26:50"));
        check("20230305   17:52:13", Some("2023-03-05 17:52:13"));
        check(" 7:52:13", Some("07:52:13"));
        for unix in [
            "1705494896",
            "1705494896.5",
            "1705494896500",
            "1705494896500000",
            "1705494896500000000",
        ] {
            check(unix, Some("2024-01-17 12:34:56 UTC"));
        }
        check("Tue Oct 29 19:00:23 2024", Some("2024-10-29 19:00:23"));
        check("Tue Oct 29 19:00:23 UTC 2024", Some("2024-10-29 19:00:23"));
        check(
            "Tue 29 Oct 2024 07:00:23 PM CET",
            Some("2024-10-29 19:00:23"),
        );
        check("29/10/2024 07:00:23 PM", Some("19:00:23"));
        check("29/10/2024 19:00:23", Some("19:00:23"));
        check("04-03-2021 13:32:39", Some("13:32:39"));
        for none in [
            "",
            "Tue Oct 29 2024",
            "04-03-2021",
            "12",
            "12:34",
            "2024/13/01 00:00:00",
            "2024/01/17",
            "20240117",
            "NVIDIA A100",
            "4211",
            "9223372036854775807:00:00",
            "00:9223372036854775807:00",
        ] {
            check(none, None);
        }
    }

    #[test]
    fn a_time_of_day_goes_on_after_midnight() {
        let first = WallTime::parse("23:59:58").unwrap();
        let second = WallTime::parse("00:00:01")
            .unwrap()
            .after_midnight(Some(first));
        let third = WallTime::parse("00:00:02")
            .unwrap()
            .after_midnight(Some(second));
        assert_eq!(second.since(first), Nanos::millis(3000));
        assert_eq!(third.since(first), Nanos::millis(4000));
    }

    proptest! {
        #[test]
        fn every_day_is_shown_as_it_was_written(days_since in 0_i64..2_900_000) {
            let (year, month, day) = civil(days_since);
            prop_assert_eq!(days(&format!("{year:04}/{month:02}/{day:02}")), Some(days_since));
        }

        #[test]
        fn no_text_panics(text in "[0-9TZ:/., +-]{0,30}") {
            if let Some(time) = WallTime::parse(&text) {
                prop_assert!(!time.to_string().is_empty());
            }
        }
    }
}
