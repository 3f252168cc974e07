//! The points of a series as columns: a long session is little else.
//!
//! Times and ordinals are steps from the one before; of a column of which nothing is
//! known there is none. What is read becomes the recording's own columns.

use crate::format::messagepack::{Outcome, Reader};
use crate::format::record::DecodeFields;
use crate::recording::{Column, Points};
use crate::units::{Bytes, Nanos};

/// The levels of points as they are written.
pub(super) type Levels = Vec<Option<u64>>;

/// The columns as they are read.
#[derive(Default)]
pub(super) struct Columns {
    at: Vec<Nanos>,
    ordinals: Vec<u64>,
    allocated: Vec<u64>,
    reserved: Vec<u64>,
    device_used: Vec<u64>,
    process_used: Vec<u64>,
}

impl DecodeFields for Columns {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        let unknown = Some(Column::UNKNOWN);
        match name {
            "at_steps" => self.at = value.sums(Nanos::new)?,
            "ordinal_steps" => self.ordinals = value.sums(|ordinal| ordinal)?,
            "allocated" => self.allocated = value.numbers(unknown)?,
            "reserved" => self.reserved = value.numbers(unknown)?,
            "device_used" => self.device_used = value.numbers(unknown)?,
            "process_used" => self.process_used = value.numbers(unknown)?,
            _ => value.skip()?,
        }
        Ok(())
    }
}

impl Columns {
    /// The points; in words which column does not fit where they are none.
    pub(super) fn points(self) -> Result<Points, String> {
        self.check()?;
        let levels = [
            self.allocated,
            self.reserved,
            self.device_used,
            self.process_used,
        ];
        let levels = levels.map(Column::of_levels);
        Ok(Points::of_columns(self.at, self.ordinals, levels))
    }

    fn check(&self) -> Result<(), String> {
        let n_points = self.at.len();
        let levels = [
            ("allocated", &self.allocated),
            ("reserved", &self.reserved),
            ("device_used", &self.device_used),
            ("process_used", &self.process_used),
        ];
        let n_rows = levels.map(|(name, column)| (name, column.len()));
        let mut misfits = n_rows.into_iter().filter(|(_, n)| *n != n_points && *n > 0);
        let ordinals = ("ordinal_steps", self.ordinals.len());
        match misfits
            .next()
            .or(Some(ordinals).filter(|(_, n)| *n != n_points))
        {
            None => Ok(()),
            Some((name, n_rows)) => Err(format!(
                "column {name} has {n_rows} rows, at_steps has {n_points}"
            )),
        }
    }
}

/// The steps to each number from the one before.
pub(super) fn steps(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut last = 0;
    let step = |number: u64| {
        let step = number.saturating_sub(last);
        last = number;
        step
    };
    numbers.map(step).collect()
}

/// One level of each point; empty where it is known of none.
pub(super) fn levels(levels: impl Iterator<Item = Option<Bytes>>) -> Levels {
    let levels: Levels = levels.map(|level| level.map(Bytes::get)).collect();
    let is_known = levels.iter().any(Option::is_some);
    if is_known { levels } else { Vec::new() }
}
