//! The points of a series as columns: a long session is little else.
//!
//! Times and ordinals are steps from the one before; of a column of which nothing is
//! known there is none. What is read becomes the recording's own columns.

use serde::Serializer;

use crate::record::{Encode, decoded_as};
use gpumem_model::recording::{Column, Points};
use gpumem_model::units::Nanos;

#[derive(Default)]
pub(super) struct SampleColumns {
    pub(super) at: StepColumn<Nanos>,
    pub(super) ordinals: StepColumn<u64>,
    pub(super) allocated: LevelColumn,
    pub(super) reserved: LevelColumn,
    pub(super) device_used: LevelColumn,
    pub(super) process_used: LevelColumn,
}

/// Numbers that do not fall, as the steps to each of them from the one before.
#[derive(Default)]
pub(super) struct StepColumn<T>(Vec<T>);

/// In bytes, or [`Column::UNKNOWN`]; empty where all are unknown.
#[derive(Default, PartialEq)]
pub(super) struct LevelColumn(Vec<u64>);

impl From<&Points> for SampleColumns {
    fn from(points: &Points) -> Self {
        let [allocated, reserved, device_used, process_used] =
            points.levels().map(LevelColumn::from);
        Self {
            at: StepColumn(points.at().to_vec()),
            ordinals: StepColumn(points.ordinals().collect()),
            allocated,
            reserved,
            device_used,
            process_used,
        }
    }
}

impl From<&Column> for LevelColumn {
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

impl SampleColumns {
    /// The points; in words which column does not fit where they are none.
    pub(super) fn points(self) -> Result<Points, String> {
        self.check()?;
        let Self {
            allocated,
            reserved,
            device_used,
            process_used,
            ..
        } = self;
        let levels = [allocated, reserved, device_used, process_used];
        let levels = levels.map(|levels| Column::of_levels(levels.0));
        Ok(Points::of_columns(self.at.0, self.ordinals.0, levels))
    }

    fn check(&self) -> Result<(), String> {
        let n_points = self.at.0.len();
        let columns = [
            ("allocated", self.allocated.0.len(), true),
            ("reserved", self.reserved.0.len(), true),
            ("device_used", self.device_used.0.len(), true),
            ("process_used", self.process_used.0.len(), true),
            ("ordinal_steps", self.ordinals.0.len(), false),
        ];
        let mut columns = columns.into_iter();
        match columns.find(|&(_, n, may_be_absent)| n != n_points && !(may_be_absent && n == 0)) {
            None => Ok(()),
            Some((name, n_rows, _)) => Err(format!(
                "column {name} has {n_rows} rows, at_steps has {n_points}"
            )),
        }
    }
}

decoded_as! {
    StepColumn<Nanos>: reader => Self(reader.sums(Nanos::new)?);
    StepColumn<u64>: reader => Self(reader.sums(|number| number)?);
    LevelColumn: reader => Self(reader.numbers(Some(Column::UNKNOWN))?);
}

impl Encode for StepColumn<Nanos> {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(steps(self.0.iter().map(|at| at.get())))
    }
}

impl Encode for StepColumn<u64> {
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

impl Encode for LevelColumn {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = |level: &u64| (*level != Column::UNKNOWN).then_some(*level);
        serializer.collect_seq(self.0.iter().map(known))
    }
}
