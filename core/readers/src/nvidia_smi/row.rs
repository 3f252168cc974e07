//! What one line says of a device or of a process.

use super::columns::{Column, Separator};
use super::quantity;
use crate::level_log::{Ids, Reading, WallTime};
use gpumem_model::units::{Bytes, Nanos};

/// What is known of one reading.
#[derive(Default)]
pub(super) struct Row<'t> {
    pub(super) ids: Ids<'t>,
    pub(super) day: Option<&'t str>,
    pub(super) clock: Option<&'t str>,
    pub(super) elapsed: Option<Nanos>,
    pub(super) device_name: Option<&'t str>,
    pub(super) pid: Option<u64>,
    pub(super) process_name: Option<&'t str>,
    pub(super) process_used: Option<Reading<'t>>,
    pub(super) level: Option<Reading<'t>>,
    pub(super) free: Option<Bytes>,
    pub(super) total: Option<Bytes>,
    /// Whether a level has its unit behind it.
    pub(super) has_unit: bool,
}

impl<'t> Row<'t> {
    /// Takes a field in; false if it cannot be what its column holds.
    pub(super) fn take(
        &mut self,
        field: &'t str,
        column: Column,
        unit: u64,
        separator: Separator,
    ) -> bool {
        let field = field.trim_matches('"');
        let known = (!quantity::is_missing(field)).then_some(field);
        self.has_unit |= column.is_level() && (known.is_none() || quantity::has_unit(field));
        match column {
            Column::Time => {
                self.clock = known;
                let is_wall = known.is_some_and(|text| WallTime::parse(text).is_some());
                if !is_wall {
                    self.elapsed = known.and_then(|text| elapsed(text, SECOND));
                }
            }
            Column::Day => self.day = known,
            Column::Elapsed => self.elapsed = known.and_then(|text| elapsed(text, SECOND)),
            Column::ElapsedMillis => {
                self.elapsed = known.and_then(|text| elapsed(text, SECOND / 1e3));
            }
            Column::Number => {
                self.ids.number = known.map(number);
                let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                // A script may write a name where dmon has a number.
                let may_be_name = separator != Separator::Space;
                return self
                    .ids
                    .number
                    .is_some_and(|text| may_be_name || is_number(text));
            }
            Column::Index => self.ids.index = known,
            Column::Uuid => self.ids.uuid = known,
            Column::Bus => self.ids.bus = known,
            Column::DeviceName => self.device_name = known,
            Column::Pid => {
                self.pid = known.and_then(|pid| pid.parse().ok());
                return known.is_none() || self.pid.is_some();
            }
            Column::ProcessName => self.process_name = known,
            Column::ProcessUsed => {
                self.process_used = quantity::level(field, unit);
                return self.process_used.is_some();
            }
            Column::Used => {
                self.level = quantity::level(field, unit);
                return self.level.is_some();
            }
            Column::Free | Column::Total => {
                let Some(level) = quantity::level(field, unit) else {
                    return false;
                };
                let place = if column == Column::Free {
                    &mut self.free
                } else {
                    &mut self.total
                };
                *place = level.ok();
            }
            Column::Name | Column::Other => (),
        }
        true
    }

    /// What is used: as logged, or what is not free.
    pub(super) fn used(&self) -> Option<Reading<'t>> {
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
    // A Unix time is no time since a start.
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
