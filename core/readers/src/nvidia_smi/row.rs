//! One line's reading of a device or a process.

use super::columns::{Separator, SmiColumn};
use super::quantity;
use crate::level_log::{Ids, LogReading, WallTime};
use gpumem_model::units::{Bytes, Nanos};

/// The fields of one reading.
#[derive(Default)]
pub(super) struct SmiRow<'t> {
    pub(super) ids: Ids<'t>,
    pub(super) day: Option<&'t str>,
    pub(super) clock: Option<&'t str>,
    pub(super) elapsed: Option<Nanos>,
    pub(super) device_name: Option<&'t str>,
    pub(super) pid: Option<u64>,
    pub(super) process_name: Option<&'t str>,
    pub(super) process_used: Option<LogReading<'t>>,
    pub(super) level: Option<LogReading<'t>>,
    pub(super) free: Option<Bytes>,
    pub(super) total: Option<Bytes>,
    /// Whether a unit follows a level.
    pub(super) has_unit: bool,
}

impl<'t> SmiRow<'t> {
    /// Adds a field; false if its value does not fit its column.
    pub(super) fn take(
        &mut self,
        field: &'t str,
        column: SmiColumn,
        unit: u64,
        separator: Separator,
    ) -> bool {
        let field = field.trim_matches('"');
        let known = (!quantity::is_missing(field)).then_some(field);
        self.has_unit |= column.is_level() && (known.is_none() || quantity::has_unit(field));
        match column {
            SmiColumn::Time => {
                self.clock = known;
                let is_wall = known.is_some_and(|text| WallTime::parse(text).is_some());
                if !is_wall {
                    self.elapsed = known.and_then(|text| elapsed(text, SECOND));
                }
            }
            SmiColumn::Day => self.day = known,
            SmiColumn::Elapsed => self.elapsed = known.and_then(|text| elapsed(text, SECOND)),
            SmiColumn::ElapsedMillis => {
                self.elapsed = known.and_then(|text| elapsed(text, SECOND / 1e3));
            }
            SmiColumn::Number => {
                self.ids.number = known.map(number);
                let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                // A script may write a name where dmon has a number.
                let may_be_name = separator != Separator::Space;
                return self
                    .ids
                    .number
                    .is_some_and(|text| may_be_name || is_number(text));
            }
            SmiColumn::Index => self.ids.index = known,
            SmiColumn::Uuid => self.ids.uuid = known,
            SmiColumn::Bus => self.ids.bus = known,
            SmiColumn::DeviceName => self.device_name = known,
            SmiColumn::Pid => {
                self.pid = known.and_then(|pid| pid.parse().ok());
                return known.is_none() || self.pid.is_some();
            }
            SmiColumn::ProcessName => self.process_name = known,
            SmiColumn::ProcessUsed => {
                self.process_used = quantity::level(field, unit);
                return self.process_used.is_some();
            }
            SmiColumn::Used => {
                self.level = quantity::level(field, unit);
                return self.level.is_some();
            }
            SmiColumn::Free | SmiColumn::Total => {
                let Some(level) = quantity::level(field, unit) else {
                    return false;
                };
                let place = if column == SmiColumn::Free {
                    &mut self.free
                } else {
                    &mut self.total
                };
                *place = level.ok();
            }
            SmiColumn::Name | SmiColumn::Other => (),
        }
        true
    }

    /// Used memory: as logged, or the capacity minus free memory.
    pub(super) fn used(&self) -> Option<LogReading<'t>> {
        let of_free = self.total.zip(self.free);
        self.level
            .or_else(|| of_free.map(|(total, free)| Ok(total.saturating_sub(free))))
    }

    pub(super) fn time(&self) -> Option<WallTime> {
        let wall = match (self.day, self.clock) {
            (Some(day), Some(clock)) => WallTime::parse(&format!("{day} {clock}")),
            (Some(one), None) | (None, Some(one)) => WallTime::parse(one),
            (None, None) => None,
        };
        wall.or_else(|| self.elapsed.map(WallTime::since_start))
    }
}

/// Nanoseconds.
const SECOND: f64 = 1e9;

fn elapsed(text: &str, unit: f64) -> Option<Nanos> {
    let number: f64 = text.parse().ok()?;
    // A Unix time is not a time since a start.
    let is_elapsed = (0.0..1e9).contains(&(number * unit / SECOND));
    is_elapsed.then(|| Nanos::new((number * unit) as u64))
}

/// `cuda:0` → `0`.
fn number(text: &str) -> &str {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let prefix = text.get(..text.len() - digits.len()).unwrap_or_default();
    let prefix = prefix
        .trim_end_matches([' ', ':', '#', '-', '_'])
        .to_ascii_lowercase();
    if ["gpu", "cuda", "device"].contains(&prefix.as_str()) {
        digits
    } else {
        text
    }
}
