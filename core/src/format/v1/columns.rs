//! The points of a series as columns: a long session is little else.
//!
//! Times and ordinals are steps from the one before; of a column of which nothing is
//! known there is none.

use crate::format::messagepack::{Outcome, Reader};
use crate::format::record::Record;
use crate::recording::Sample;
use crate::units::{Bytes, Nanos};

/// Whole numbers of which some are unknown.
pub(super) type Column = Vec<Option<u64>>;

/// The columns as they are read.
#[derive(Default)]
pub(super) struct Columns {
    at_steps: Vec<u64>,
    ordinal_steps: Vec<u64>,
    allocated: Column,
    reserved: Column,
    device_used: Column,
    process_used: Column,
}

impl Record for Columns {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "at_steps" => self.at_steps = value.numbers(Reader::whole)?,
            "ordinal_steps" => self.ordinal_steps = value.numbers(Reader::whole)?,
            "allocated" => self.allocated = value.numbers(Reader::cell)?,
            "reserved" => self.reserved = value.numbers(Reader::cell)?,
            "device_used" => self.device_used = value.numbers(Reader::cell)?,
            "process_used" => self.process_used = value.numbers(Reader::cell)?,
            _ => value.skip()?,
        }
        Ok(())
    }
}

impl Columns {
    /// The points; in words which column does not fit where they are none.
    pub(super) fn points(&self) -> Result<Vec<Sample>, String> {
        self.check()?;
        let mut points = vec![Sample::default(); self.at_steps.len()];
        add_up(&mut points, &self.at_steps, |point, at| {
            point.at = Nanos::new(at);
        });
        add_up(&mut points, &self.ordinal_steps, |point, ordinal| {
            point.ordinal = ordinal;
        });
        put(&mut points, &self.allocated, |point| &mut point.allocated);
        put(&mut points, &self.reserved, |point| &mut point.reserved);
        put(&mut points, &self.device_used, |point| {
            &mut point.device_used
        });
        put(&mut points, &self.process_used, |point| {
            &mut point.process_used
        });
        Ok(points)
    }

    fn check(&self) -> Result<(), String> {
        let n_points = self.at_steps.len();
        let levels = [
            ("allocated", &self.allocated),
            ("reserved", &self.reserved),
            ("device_used", &self.device_used),
            ("process_used", &self.process_used),
        ];
        let n_rows = levels.map(|(name, column)| (name, column.len()));
        let mut misfits = n_rows.into_iter().filter(|(_, n)| *n != n_points && *n > 0);
        let ordinals = ("ordinal_steps", self.ordinal_steps.len());
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

/// Gives each point the sum of the steps up to it.
fn add_up(points: &mut [Sample], steps: &[u64], set: impl Fn(&mut Sample, u64)) {
    let mut sum = 0_u64;
    for (point, step) in points.iter_mut().zip(steps) {
        sum = sum.saturating_add(*step);
        set(point, sum);
    }
}

fn put(points: &mut [Sample], column: &Column, level: impl Fn(&mut Sample) -> &mut Option<Bytes>) {
    for (point, cell) in points.iter_mut().zip(column) {
        *level(point) = cell.map(Bytes::new);
    }
}

/// The steps to each point from the one before.
pub(super) fn steps(points: &[Sample], of: impl Fn(&Sample) -> u64) -> Vec<u64> {
    let mut last = 0;
    let mut step = |value: u64| {
        let step = value.saturating_sub(last);
        last = value;
        step
    };
    points.iter().map(|point| step(of(point))).collect()
}

/// One level of each point; empty where it is known of none.
pub(super) fn column(points: &[Sample], of: impl Fn(&Sample) -> Option<Bytes>) -> Column {
    if points.iter().all(|point| of(point).is_none()) {
        return Vec::new();
    }
    points
        .iter()
        .map(|point| of(point).map(Bytes::get))
        .collect()
}
