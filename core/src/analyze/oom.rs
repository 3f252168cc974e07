//! Memory that ran out: what was wanted, who held what, what would have been enough.

mod causes;
mod shortage;
#[cfg(test)]
mod tests;

use super::device_rows::Rows;
use super::finding::{Evidence, Figures, Finding, FindingKind};
use super::growth::State;
use super::levels::{DeviceSummary, RunRow};
use super::paths::Paths;
use super::series;
use crate::holders::RootKind;
use crate::recording::{
    CellIdx, DeviceIdx, DeviceKind, Framework, OomFigures, OomHolder, OtherProcess, OutOfMemory,
    Reading, Recording, Run, RunIdx, RunLevels, Status,
};
use crate::severity::Severity;
use crate::sorted::Sorted;
use crate::units::Bytes;
use causes::Cause;
pub use shortage::{Shortage, ShortagePart};

/// A finding for each cell and device where memory ran out, about the last time.
pub(super) fn findings(recording: &Recording, rows: Rows<'_>, paths: &Paths) -> Vec<Finding> {
    let mut last: Sorted<(CellIdx, DeviceIdx), Case<'_>> = Sorted::default();
    for run in recording.runs().iter().filter(|run| run.oom.is_some()) {
        let Some(case) = Case::of(recording, rows, paths, run) else {
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

/// One time that memory ran out, with the levels around it.
struct Case<'a> {
    recording: &'a Recording,
    rows: Rows<'a>,
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
    fn of(recording: &'a Recording, rows: Rows<'a>, paths: &Paths, run: &'a Run) -> Option<Self> {
        let oom = run.oom.as_deref()?;
        let device = oom.device.or_else(|| likely_device(recording, run))?;
        let elsewhere = oom.device.is_none()
            && recording.device(device).kind == DeviceKind::Host
            && !may_be_of_host(oom);
        let outermost = recording.run(recording.outermost(run.idx));
        let of_device = |run: &'a Run| run.levels.iter().find(|it| it.device == device);
        let levels = of_device(outermost).or_else(|| of_device(run))?;
        let levels = Some(levels).filter(|_| !elsewhere);
        let reading = levels.map(|it| it.after.as_ref().unwrap_or(&it.before));
        let nothing = Reading::default();
        Some(Self {
            recording,
            rows,
            outermost,
            oom,
            device,
            elsewhere,
            path: paths.names(run.idx),
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

    /// The most that the framework could have had.
    fn room(&self) -> Option<Bytes> {
        let total = self.figures().total.or(self.now.capacity);
        total.into_iter().chain(self.figures().limit).min()
    }

    /// By how much the device was too small.
    fn missing(&self) -> Option<Bytes> {
        Some(self.figures().wanted?.saturating_sub(self.free()?))
    }

    fn allocated(&self) -> Option<Bytes> {
        self.figures().allocated.or_else(|| self.stood()?.allocated)
    }

    /// Free in the allocator of the framework that asked, but in pieces.
    fn unallocated(&self) -> Option<Bytes> {
        let stood = || {
            let stood = self.stood()?;
            Some(stood.reserved?.saturating_sub(stood.allocated?))
        };
        self.figures().unallocated.or_else(stood)
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
        let told = others.iter().filter_map(|it| it.used).reduce(|a, b| a + b);
        let stood = || {
            let used = self.now.device_used?.since(self.now.process_used?);
            (used.get() > 0).then_some(used.magnitude())
        };
        (told.or_else(stood), others)
    }

    /// In this process, but in no allocator: context, libraries, other frameworks.
    fn beside(&self) -> Option<Bytes> {
        let told = self.figures().this_process.zip(self.figures().reserved);
        let stood = || {
            let stood = self.stood()?;
            stood.process_used.zip(stood.reserved)
        };
        let (process, reserved) = told.or_else(stood)?;
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
        let place = if self.elsewhere {
            "a device that is not read"
        } else {
            &device.label
        };
        let cell = series::cell_ref(self.recording, self.outermost);
        let causes = Cause::all(&self);
        let is_over = self.is_over();
        let subject = format!("{}/{}", cell.id, device.key);
        let (severity, state) = match (is_over, self.survived()) {
            (true, _) => (Severity::Info, State::None),
            (false, true) => (Severity::Warning, State::Watch),
            (false, false) => (Severity::Critical, State::Watch),
        };
        Finding {
            severity,
            state,
            withdrawn: is_over.then_some("a later run of the cell had enough"),
            title: self.title(&cell.label, place),
            detail: self.detail(&causes, is_over),
            suggestions: if is_over {
                Vec::new()
            } else {
                causes.iter().map(|cause| cause.advice.clone()).collect()
            },
            evidence: self.evidence(),
            figures: Some(Figures::OutOfMemory(self.shortage())),
            cell: Some(cell),
            n_runs: self.runs.len(),
            runs: self.runs,
            path: self.path,
            ..Finding::about(
                FindingKind::OutOfMemory,
                &subject,
                self.device,
                self.now.lane,
            )
        }
    }

    fn title(&self, cell: &str, device: &str) -> String {
        let and_then = if self.survived() { " and went on" } else { "" };
        let title = format!("{cell} ran out of memory on {device}{and_then}");
        match (self.figures().wanted, self.free()) {
            (Some(wanted), Some(free)) => format!("{title}: it wanted {wanted}, {free} was free"),
            (Some(wanted), None) => format!("{title}: it wanted {wanted}"),
            (None, Some(free)) => format!("{title}: {free} was free"),
            (None, None) => title,
        }
    }

    fn detail(&self, causes: &[Cause], is_over: bool) -> String {
        let mut parts = vec![self.composition()];
        match self.n_times() {
            Some(n) if n > 1 => parts.push(format!("{n} times in this run")),
            _ => {}
        }
        if is_over {
            parts.push("a later run of the cell had enough".to_owned());
        } else {
            let missing = self.missing().filter(|missing| *missing > Bytes::ZERO);
            parts.extend(missing.map(|missing| format!("{missing} too little")));
            parts.extend(self.held_by());
            parts.extend(causes.iter().filter_map(|cause| cause.words.clone()));
        }
        parts.retain(|part| !part.is_empty());
        parts.join(" · ")
    }

    /// `of 8 GiB: 5.1 GiB in tensors, 1.2 GiB cache, 7 MiB free`.
    fn composition(&self) -> String {
        let (others, who) = self.others();
        let others = others.map(|used| match who.as_slice() {
            [] => format!("{used} other processes"),
            [one] => format!("{used} process {}", one.pid),
            many => format!("{used} {} other processes", many.len()),
        });
        let part = |bytes: Option<Bytes>, words: &str| {
            let bytes = bytes.filter(|bytes| *bytes > Bytes::ZERO);
            bytes.map(|bytes| format!("{bytes} {words}"))
        };
        let parts: Vec<String> = [
            part(self.allocated(), "in tensors"),
            part(self.unallocated(), "cache"),
            part(self.beside(), "context and libraries"),
            others,
        ]
        .into_iter()
        .flatten()
        .collect();
        match (self.figures().total.or(self.now.capacity), parts.as_slice()) {
            (_, []) => String::new(),
            (Some(total), parts) => format!("of {total}: {}", parts.join(", ")),
            (None, parts) => parts.join(", "),
        }
    }

    /// `held by weights 1.5 GiB, last exception 2 GiB`.
    fn held_by(&self) -> Option<String> {
        const SHOWN: usize = 3;
        let holders = &self.oom.holders;
        let name = |holder: &OomHolder| match holder.name.as_str() {
            "" => shortage::name(holder),
            name => format!("`{name}`"),
        };
        let shown = holders.iter().take(SHOWN);
        let mut shown: Vec<String> = shown
            .map(|holder| format!("{} {}", name(holder), holder.used))
            .collect();
        let rest = holders.iter().skip(SHOWN).map(|holder| holder.used);
        let rest: Bytes = rest.sum();
        if rest > Bytes::ZERO {
            shown.push(format!("others {rest}"));
        }
        (!shown.is_empty()).then(|| format!("held by {}", shown.join(", ")))
    }

    /// What names of one kind held, where that was looked at.
    fn held_as(&self, kind: RootKind) -> Option<Bytes> {
        let holders = &self.oom.holders;
        let of_kind = holders.iter().filter(|holder| holder.kind == kind);
        (!holders.is_empty()).then(|| of_kind.map(|holder| holder.used).sum())
    }

    fn evidence(&self) -> Vec<Evidence> {
        let figures = self.figures();
        let figure = |name, words: &str, bytes: Option<Bytes>, threshold: Option<Bytes>| {
            bytes.map(|bytes| Evidence {
                name,
                words: words.to_owned(),
                value: bytes.as_f64(),
                threshold: threshold.map(Bytes::as_f64),
                holds: threshold.is_none_or(|threshold| bytes < threshold),
            })
        };
        let wanted = figures.wanted;
        [
            figure("wanted_bytes", "the request that failed", wanted, None),
            figure("free_bytes", "free on the device", self.free(), wanted),
            figure(
                "largest_free_bytes",
                "the largest piece of the cache",
                figures.largest_free,
                wanted,
            ),
            figure(
                "total_bytes",
                "the most that could be had",
                self.room(),
                None,
            ),
            figure("allocated_bytes", "held by tensors", self.allocated(), None),
            figure(
                "private_pools_bytes",
                "of these, in private pools",
                figures.private_pools,
                None,
            ),
            figure(
                "unallocated_bytes",
                "free in the cache, in pieces",
                self.unallocated(),
                None,
            ),
            figure(
                "other_processes_bytes",
                "held by other processes",
                self.others().0,
                None,
            ),
        ]
        .into_iter()
        .flatten()
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

/// What runs on XLA or TensorFlow does not say that it asked the host; everybody else does.
fn may_be_of_host(oom: &OutOfMemory) -> bool {
    let can_run_there = matches!(oom.framework, Some(Framework::Jax | Framework::Tensorflow));
    can_run_there && !oom.names_accelerator
}
