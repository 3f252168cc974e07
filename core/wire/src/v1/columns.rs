//! The points of a series as columns: a long session is little else.
//!
//! Times and ordinals are steps from the one before; of a column of which nothing is
//! known there is none. What is read becomes the recording's own columns.

use serde::Serializer;

use crate::messagepack::Reader;
use crate::record::{Decode, Encode};
use crate::refused::Outcome;
use gpumem_model::recording::{Column, Points};
use gpumem_model::units::Nanos;

#[derive(Default)]
pub(super) struct Columns {
    pub(super) at: Steps<Nanos>,
    pub(super) ordinals: Steps<u64>,
    pub(super) allocated: Levels,
    pub(super) reserved: Levels,
    pub(super) device_used: Levels,
    pub(super) process_used: Levels,
}

/// Numbers that do not fall, as the steps to each of them from the one before.
#[derive(Default)]
pub(super) struct Steps<T>(Vec<T>);

/// In bytes, or [`Column::UNKNOWN`]; empty where all are unknown.
#[derive(Default, PartialEq)]
pub(super) struct Levels(Vec<u64>);

impl From<&Points> for Columns {
    fn from(points: &Points) -> Self {
        let [allocated, reserved, device_used, process_used] = points.levels().map(Levels::from);
        Self {
            at: Steps(points.at().to_vec()),
            ordinals: Steps(points.ordinals().collect()),
            allocated,
            reserved,
            device_used,
            process_used,
        }
    }
}

impl From<&Column> for Levels {
    fn from(column: &Column) -> Self {
        let levels = column.as_slice();
        let is_known = levels.iter().any(|level| *level != Column::UNKNOWN);
        Self(if is_known {
            levels.to_vec()
        } else {
            Vec::new()
        })
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
        let levels = levels.map(|levels| Column::of_levels(levels.0));
        Ok(Points::of_columns(self.at.0, self.ordinals.0, levels))
    }

    fn check(&self) -> Result<(), String> {
        let n_points = self.at.0.len();
        let levels = [
            ("allocated", &self.allocated),
            ("reserved", &self.reserved),
            ("device_used", &self.device_used),
            ("process_used", &self.process_used),
        ];
        let n_rows = levels.map(|(name, column)| (name, column.0.len()));
        let mut misfits = n_rows.into_iter().filter(|(_, n)| *n != n_points && *n > 0);
        let ordinals = ("ordinal_steps", self.ordinals.0.len());
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

impl Decode for Steps<Nanos> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        self.0 = reader.sums(Nanos::new)?;
        Ok(())
    }
}

impl Decode for Steps<u64> {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        self.0 = reader.sums(|number| number)?;
        Ok(())
    }
}

impl Encode for Steps<Nanos> {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(steps(self.0.iter().map(|at| at.get())))
    }
}

impl Encode for Steps<u64> {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(steps(self.0.iter().copied()))
    }
}

fn steps(numbers: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let mut last = 0;
    numbers.map(move |number| {
        let step = number.saturating_sub(last);
        last = number;
        step
    })
}

impl Decode for Levels {
    fn fill(&mut self, reader: &mut Reader<'_>) -> Outcome<()> {
        self.0 = reader.numbers(Some(Column::UNKNOWN))?;
        Ok(())
    }
}

impl Encode for Levels {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = |level: &u64| (*level != Column::UNKNOWN).then_some(*level);
        serializer.collect_seq(self.0.iter().map(known))
    }
}
