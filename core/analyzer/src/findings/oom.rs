//! Memory that ran out: what was wanted, who held what, what would have been enough.

mod breakdown;
mod causes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::oom_cause::OomCause;
use super::oom_cures::Cure;
use super::suggest;
use super::{Finding, FindingDetails, FindingKind, Withdrawn};
use crate::cell::CellRef;
use crate::context::Context;
use crate::device_rows::RowsByDevice;
use crate::evidence::{Evidence, Statistic};
use crate::levels::DeviceSummary;
use crate::reason::Reason;
use crate::row::RunRow;
use gpumem_heap::Fix;
use gpumem_model::holders::RootKind;
use gpumem_model::recording::{
    CellIdx, DeviceIdx, DeviceKind, Framework, OomFigures, OtherProcess, OutOfMemory, Reading,
    Recording, Run, RunIdx, RunLevels, Status,
};
use gpumem_model::severity::Severity;
use gpumem_model::units::Bytes;

/// A finding for each cell and device where memory ran out, about the last time.
pub(super) fn findings(context: Context<'_>) -> Vec<Finding> {
    let mut last: BTreeMap<(CellIdx, DeviceIdx), Case<'_>> = BTreeMap::new();
    let runs = context.recording.runs().iter();
    for run in runs.filter(|run| run.oom.is_some()) {
        let Some(case) = Case::for_run(context, run) else {
            continue;
        };
        let key = (case.outermost.cell, case.device);
        let mut runs = last
            .get_mut(&key)
            .map_or_else(Vec::new, |case| std::mem::take(&mut case.runs));
        if runs.last() != Some(&case.outermost.idx) {
            runs.push(case.outermost.idx);
        }
        last.insert(key, Case { runs, ..case });
    }
    last.into_values().map(Case::finding).collect()
}

/// Decides what would have been enough. First comes what grows and holds enough, with its fix; what may be wanted is
/// a cause only in the cell that fails.
pub(super) fn set_cures(ooms: &mut [Finding], growth: &[Finding]) {
    for oom in ooms.iter_mut().filter(|oom| oom.withdrawn.is_none()) {
        join_growth(oom, growth);
        if let FindingDetails::OutOfMemory(breakdown) = &mut oom.details {
            let missing = breakdown.missing.or(breakdown.wanted);
            breakdown.cures = Cure::all(&breakdown.causes, missing.unwrap_or_default());
        }
    }
}

fn join_growth(oom: &mut Finding, growth: &[Finding]) -> Option<()> {
    let cell = |it: &Finding| it.cell.as_ref().map(|cell| cell.idx);
    let failing = cell(oom);
    let FindingDetails::OutOfMemory(breakdown) = &mut oom.details else {
        return None;
    };
    let missing = breakdown.missing.or(breakdown.wanted)?;
    let grows = growth.iter().filter(|it| {
        let grows = matches!(it.kind, FindingKind::Leak | FindingKind::Growing);
        let is_meant = it.reason.is_some_and(Reason::is_meant);
        let counts = grows && (!is_meant || cell(it) == failing);
        counts && it.device == oom.device && it.cell.is_some() && !breakdown.elsewhere
    });
    let finding = grows.max_by_key(|it| (it.growth().map(|growth| growth.total), &it.id))?;
    let kept = finding.growth()?.total.magnitude();
    let grown_in = finding.cell.as_ref().filter(|_| kept >= missing)?;
    // What is enough only with others is not worth it then.
    let is_enough = |it: &OomCause| it.frees().is_none_or(|frees| frees >= missing);
    breakdown.causes.retain(|it| {
        is_enough(it) && !matches!(it, OomCause::SmallerStep | OomCause::Collected { .. })
    });
    let cause = OomCause::Growth {
        kept,
        name: finding.holders.first().map(|holder| holder.name.clone()),
        cell: grown_in.label.clone(),
        is_leak: finding.kind == FindingKind::Leak,
    };
    breakdown.causes.insert(0, cause);
    let is_same = cell(finding) == failing;
    if let (None, Some(fix)) = (&oom.fix, &finding.fix) {
        let elsewhere = fix.elsewhere || (!is_same && fix.before.is_some());
        oom.fix = Some(Fix {
            elsewhere,
            ..fix.clone()
        });
    }
    Some(())
}

/// One time that memory ran out, with the levels around it.
struct Case<'a> {
    recording: &'a Recording,
    rows: RowsByDevice<'a>,
    outermost: &'a Run,
    oom: &'a OutOfMemory,
    device: DeviceIdx,
    /// It happened on one that nobody read: what is known of `device` has nothing to do with it.
    elsewhere: bool,
    /// The names of the blocks in which it happened, outermost first.
    path: Vec<String>,
    /// The device when the run ended, where the error reached the cell with its frames.
    now: DeviceSummary,
    levels: Option<&'a RunLevels>,
    /// Every run of the cell in which it happened.
    runs: Vec<RunIdx>,
}

impl<'a> Case<'a> {
    fn for_run(context: Context<'a>, run: &'a Run) -> Option<Self> {
        let recording = context.recording;
        let oom = run.oom.as_deref()?;
        let device = oom.device.or_else(|| likely_device(recording, run))?;
        let elsewhere = oom.device.is_none()
            && recording.device(device).kind == DeviceKind::Host
            && !may_be_of_host(oom);
        let outermost = recording.run(recording.outermost(run.idx));
        let levels = outermost.levels_on(device);
        let levels = levels.or_else(|| run.levels_on(device))?;
        let levels = Some(levels).filter(|_| !elsewhere);
        let reading = levels.map(|it| it.after.as_ref().unwrap_or(&it.before));
        let nothing = Reading::default();
        Some(Self {
            recording,
            rows: context.rows,
            outermost,
            oom,
            device,
            elsewhere,
            path: context.paths.names(run.idx),
            now: DeviceSummary::now(device, reading.unwrap_or(&nothing)),
            levels,
            runs: Vec::new(),
        })
    }

    /// The cell went on after it.
    fn survived(&self) -> bool {
        self.oom.survived || self.outermost.status != Status::OutOfMemory
    }

    fn figures(&self) -> &OomFigures {
        &self.oom.figures
    }

    fn row(&self) -> Option<&'a RunRow> {
        let own = self.rows.row(self.outermost.idx, self.device);
        own.filter(|_| !self.elsewhere)
    }

    /// The device at the run's end, where that is still the moment of the error.
    fn stood(&self) -> Option<&DeviceSummary> {
        Some(&self.now).filter(|_| !self.survived())
    }

    /// Free on the device at that moment: as the message says, else as it stood with the
    /// failed frames still alive.
    fn free(&self) -> Option<Bytes> {
        self.figures().free.or_else(|| self.stood()?.free())
    }

    /// What the framework's own limit left of what was free.
    fn available(&self) -> Option<Bytes> {
        let within_limit = self.limit().zip(self.reserved());
        let within_limit = within_limit.map(|(limit, reserved)| limit.saturating_sub(reserved));
        self.free().into_iter().chain(within_limit).min()
    }

    /// A limit of the framework, below the device's capacity.
    fn limit(&self) -> Option<Bytes> {
        let limit = self.figures().limit?;
        let is_below = self.figures().total.is_none_or(|total| limit < total);
        is_below.then_some(limit)
    }

    /// Whether the limit was reached before the device was full.
    fn is_limited(&self) -> bool {
        self.available() != self.free()
    }

    /// The most that the framework could have had.
    fn room(&self) -> Option<Bytes> {
        let total = self.figures().total.or(self.now.capacity);
        total.into_iter().chain(self.figures().limit).min()
    }

    /// By how much the device was too small.
    fn missing(&self) -> Option<Bytes> {
        Some(self.figures().wanted?.saturating_sub(self.available()?))
    }

    fn allocated(&self) -> Option<Bytes> {
        self.figures().allocated.or_else(|| self.stood()?.allocated)
    }

    fn reserved(&self) -> Option<Bytes> {
        self.figures().reserved.or_else(|| self.stood()?.reserved)
    }

    /// Free in the allocator of the requesting framework, but in pieces.
    fn unallocated(&self) -> Option<Bytes> {
        self.figures()
            .unallocated
            .or_else(|| self.stood()?.cached())
    }

    /// What other processes held, and which.
    fn others(&self) -> (Option<Bytes>, Vec<&OtherProcess>) {
        let figures = self.figures();
        let is_own = |other: &OtherProcess| {
            // A container hides this process's number: then it is the one that holds
            // at least what its own allocator reserved.
            let own = figures.reserved.filter(|_| figures.this_process.is_none());
            own.is_some_and(|own| other.used.is_some_and(|used| used >= own))
        };
        let others: Vec<&OtherProcess> = figures.others.iter().filter(|it| !is_own(it)).collect();
        let stated = others.iter().filter_map(|it| it.used).reduce(|a, b| a + b);
        let stood = || {
            let used = self.now.device_used?.since(self.now.process_used?);
            (used.get() > 0).then_some(used.magnitude())
        };
        (stated.or_else(stood), others)
    }

    /// In this process, but in no allocator: context, libraries, other frameworks.
    fn beside(&self) -> Option<Bytes> {
        let stated = self.figures().this_process.zip(self.figures().reserved);
        let stood = || {
            let stood = self.stood()?;
            stood.process_used.zip(stood.reserved)
        };
        // A message rounds to 10 MiB and more: the driver's figure is exact, if it is the same.
        let is_same = |(process, _): &(Bytes, Bytes)| {
            stated.is_none_or(|(stated, _)| {
                stated.since(*process).magnitude().as_f64() <= 0.01 * stated.as_f64()
            })
        };
        let (process, reserved) = stood().filter(is_same).or(stated)?;
        Some(process.saturating_sub(reserved)).filter(|beside| *beside > Bytes::ZERO)
    }

    /// How often it happened in the run, as the allocators count.
    fn n_times(&self) -> Option<u64> {
        let count = |reading: &Reading| {
            let counts = reading.allocators.iter().filter_map(|it| it.n_ooms);
            counts.reduce(u64::saturating_add)
        };
        let levels = self.levels?;
        let before = count(&levels.before).unwrap_or_default();
        let after = count(levels.after.as_ref()?)?;
        Some(after.saturating_sub(before))
    }

    /// A later run of the cell went through.
    fn is_over(&self) -> bool {
        let later = &self.recording.runs()[self.outermost.idx.get() + 1..];
        later.iter().any(|run| {
            let is_same = run.cell == self.outermost.cell && run.parent.is_none();
            is_same && run.status == Status::Ok && run.oom.is_none()
        })
    }

    fn finding(self) -> Finding {
        let device = self.recording.device(self.device);
        let cell = CellRef::for_run(self.recording, self.outermost);
        let is_over = self.is_over();
        let severity = match (is_over, self.survived()) {
            (true, _) => Severity::Info,
            (false, true) => Severity::Warning,
            (false, false) => Severity::Critical,
        };
        let breakdown = self.breakdown();
        let is_cause = |cause: &OomCause| matches!(cause, OomCause::Collected { .. });
        let collects =
            causes::collecting_holder(&self).filter(|_| breakdown.causes.iter().any(is_cause));
        let fix = collects
            .and_then(|holder| suggest::fix(self.recording, self.device, self.outermost, holder));
        Finding {
            severity,
            fix,
            withdrawn: is_over.then_some(Withdrawn::HadEnough),
            cell: Some(cell.clone()),
            evidence: self.evidence(),
            n_runs: self.runs.len(),
            runs: self.runs,
            path: self.path,
            ..Finding::about(
                FindingKind::OutOfMemory,
                &format!("{}/{}", cell.id, device.key),
                self.device,
                self.now.metric,
                FindingDetails::OutOfMemory(Box::new(breakdown)),
            )
        }
    }

    /// What names of one kind held, where that was looked at.
    fn held_as(&self, kind: RootKind) -> Option<Bytes> {
        let holders = &self.oom.holders;
        let of_kind = holders.iter().filter(|holder| holder.kind == kind);
        (!holders.is_empty()).then(|| of_kind.map(|holder| holder.used).sum())
    }

    fn evidence(&self) -> Vec<Evidence> {
        let figures = self.figures();
        let wanted = figures.wanted;
        [
            (Statistic::Wanted, wanted, None),
            (Statistic::Free, self.free(), wanted),
            (Statistic::LargestFree, figures.largest_free, wanted),
            (Statistic::Total, self.room(), None),
            (Statistic::Allocated, self.allocated(), None),
            (Statistic::PrivatePools, figures.private_pools, None),
            (Statistic::Unallocated, self.unallocated(), None),
            (Statistic::OtherProcesses, self.others().0, None),
        ]
        .into_iter()
        .filter_map(|(statistic, bytes, threshold)| {
            let bytes = bytes?;
            Some(Evidence {
                statistic,
                value: bytes.as_f64(),
                threshold: threshold.map(Bytes::as_f64),
                holds: threshold.is_none_or(|threshold| bytes < threshold),
            })
        })
        .collect()
    }
}

/// An error that names no device of the recording is of the only accelerator there is. Where there is
/// none, the card stands with the host.
fn likely_device(recording: &Recording, run: &Run) -> Option<DeviceIdx> {
    let is_accelerator = |device: &DeviceIdx| recording.device(*device).kind != DeviceKind::Host;
    let outermost = recording.run(recording.outermost(run.idx));
    let mut devices = outermost.levels.iter().map(|levels| levels.device);
    let mut accelerators = devices.clone().filter(is_accelerator);
    match (accelerators.next(), accelerators.next()) {
        (Some(only), None) => Some(only),
        (None, _) => devices.next(),
        (Some(_), Some(_)) => None,
    }
}

/// Errors of XLA and TensorFlow do not say that the host ran out; all others do.
fn may_be_of_host(oom: &OutOfMemory) -> bool {
    let can_run_there = matches!(oom.framework, Some(Framework::Jax | Framework::Tensorflow));
    can_run_there && !oom.names_accelerator
}
