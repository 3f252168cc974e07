//! What `IPython` and Python keep of what the user let go of: displayed results, the last
//! exception, the debugger, `%run` scripts.

use std::collections::BTreeMap;

use serde::Serialize;

use super::outlived::is_much;
use super::suggest;
use super::{Finding, FindingDetails, FindingKind, Withdrawn};
use crate::cell::CellRef;
use crate::context::Context;
use crate::device_rows::RowsByDevice;
use crate::evidence::{Evidence, Statistic};
use crate::growth::GrowthVerdict;
use crate::levels::DeviceSummary;
use gpumem_model::holders::{DeviceHolders, Holder, IpythonRetention, RootKind};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx, RunKind, Status};
use gpumem_model::severity::Severity;
use gpumem_model::units::Bytes;

/// What a place of IPython's or Python's keeps and none of your names reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RetentionDetails {
    /// `output_history`, `traceback`, `debugger` or `run_module`.
    pub place: RootKind,
    /// What nothing else keeps.
    #[serde(rename = "n_bytes")]
    pub kept: Bytes,
    /// The run that left it there, as counted in the recording.
    #[serde(rename = "since_run")]
    pub since: RunIdx,
    /// The name that keeps the largest object.
    pub name: String,
    /// The Python expression of the largest object.
    pub path: String,
    /// What the largest object is.
    pub what: String,
    /// What to type so that it lets go.
    pub release: Option<&'static str>,
    /// Jupyter's number of the run that left it there.
    pub since_execution_count: Option<u32>,
}

/// At most this many names of a place are reported.
const N_TOLD: usize = 8;

/// A finding for each place and device, where no finding names the place for growth already.
pub(super) fn findings(
    context: Context<'_>,
    is_reported: &mut dyn FnMut(DeviceIdx, RootKind) -> bool,
) -> Vec<Finding> {
    let Context {
        recording, rows, ..
    } = context;
    let mut of_device = |device: &DeviceSummary| {
        let least = context.min_growth(device.device);
        RetainedResult::all(recording, rows, device.device)
            .into_iter()
            .filter(|place| place.kept.n_bytes >= least)
            .filter(|place| !is_reported(place.device, place.kept.place))
            .map(|place| place.finding(recording, device, least))
            .collect::<Vec<_>>()
    };
    context.devices.iter().flat_map(&mut of_device).collect()
}

/// Growth that the place collects is reported by the growing cell's finding.
pub(super) fn is_reported(found: &[Finding], device: DeviceIdx, place: RootKind) -> bool {
    found.iter().any(|finding| {
        finding.device == device
            && finding.state != Some(GrowthVerdict::Stable)
            && finding.holders.first().map(|it| it.kind) == Some(place)
    })
}

/// One place on one device, as the last look that found something there saw it.
struct RetainedResult<'a> {
    device: DeviceIdx,
    kept: &'a IpythonRetention,
    look: &'a DeviceHolders,
    /// The run that left it there.
    since: RunIdx,
    /// The run that deleted the variable which had it, too.
    deleted_in: Option<RunIdx>,
    is_let_go: bool,
}

impl<'a> RetainedResult<'a> {
    fn all(recording: &'a Recording, rows: RowsByDevice<'a>, device: DeviceIdx) -> Vec<Self> {
        let looks = DeviceSearches::new(recording, rows, device);
        let mut last: BTreeMap<RootKind, usize> = BTreeMap::new();
        for (idx, (_, look)) in looks.all.iter().enumerate() {
            for kept in &look.kept {
                last.insert(kept.place, idx);
            }
        }
        let places = last.into_iter();
        let places = places.filter_map(|(place, idx)| {
            let (_, look) = looks.all[idx];
            Some(Self {
                device,
                kept: kept_at(look, place)?,
                look,
                since: looks.since(idx, place),
                deleted_in: looks.deleted_in(place),
                // A later look found nothing there.
                is_let_go: idx + 1 < looks.all.len() || looks.has_fallen_after(idx),
            })
        });
        places.collect()
    }

    fn finding(&self, recording: &Recording, device: &DeviceSummary, least: Bytes) -> Finding {
        let run = recording.run(self.since);
        let holders = self.holders();
        let IpythonRetention {
            n_bytes,
            name,
            path,
            what,
            ..
        } = self.kept;
        let fix = holders.first().filter(|_| !self.is_let_go);
        let place = self.kept.place;
        let details = RetentionDetails {
            place,
            kept: *n_bytes,
            since: self.since,
            name: name.clone(),
            path: path.clone(),
            what: what.clone(),
            release: place.release(),
            since_execution_count: run.execution_count,
        };
        let device_key = &recording.device(self.device).key;
        Finding {
            severity: self.severity(device),
            withdrawn: self.is_let_go.then_some(Withdrawn::LetGo),
            cell: Some(CellRef::for_run(recording, run)),
            runs: [
                Some(self.since),
                self.deleted_in.filter(|it| *it > self.since),
            ]
            .into_iter()
            .flatten()
            .collect(),
            n_runs: 1,
            fix: fix.and_then(|holder| suggest::fix(recording, self.device, run, holder)),
            evidence: vec![Evidence::met(
                Statistic::Kept,
                n_bytes.as_f64(),
                least.as_f64(),
            )],
            holders,
            ..Finding::about(
                FindingKind::Retention,
                &format!("{}/{device_key}", place.name()),
                self.device,
                device.metric,
                FindingDetails::Retention(details),
            )
        }
    }

    /// The names of the place, the most first; where none alone keeps anything, the one that
    /// keeps the largest object.
    fn holders(&self) -> Vec<Holder> {
        let of_place = |holder: &&Holder| holder.kind == self.kept.place;
        let roots = self.look.roots.iter().filter(of_place);
        let mut holders: Vec<Holder> = roots.take(N_TOLD).cloned().collect();
        if holders.is_empty() {
            let kept = self.kept;
            holders.push(Holder {
                path: kept.path.clone(),
                what: kept.what.clone(),
                ..Holder::new(kept.place, &kept.name, kept.n_bytes)
            });
        }
        holders
    }

    /// By what the device has, and whether it is more than what is left.
    fn severity(&self, device: &DeviceSummary) -> Severity {
        let n_bytes = self.kept.n_bytes;
        if self.is_let_go || !is_much(device, n_bytes) {
            return Severity::Info;
        }
        match device.free() {
            Some(free) if n_bytes > free => Severity::Critical,
            _ => Severity::Warning,
        }
    }
}

fn kept_at(look: &DeviceHolders, place: RootKind) -> Option<&IpythonRetention> {
    look.kept.iter().rfind(|kept| kept.place == place)
}

/// The looks at one device, oldest first, and where it stands now.
struct DeviceSearches<'a> {
    recording: &'a Recording,
    rows: RowsByDevice<'a>,
    device: DeviceIdx,
    all: Vec<(RunIdx, &'a DeviceHolders)>,
}

impl<'a> DeviceSearches<'a> {
    fn new(recording: &'a Recording, rows: RowsByDevice<'a>, device: DeviceIdx) -> Self {
        Self {
            recording,
            rows,
            device,
            all: recording.looks(device).collect(),
        }
    }

    /// Since which run the place has kept what the look at `idx` found there.
    fn since(&self, mut idx: usize, place: RootKind) -> RunIdx {
        loop {
            let (run, look) = self.all[idx];
            let kept = kept_at(look, place);
            let exactly = kept.and_then(|kept| exactly_since(self.recording, kept, look, run));
            let before = idx.checked_sub(1).filter(|before| {
                let (_, look) = self.all[*before];
                kept_at(look, place).is_some() && !self.has_fallen_after(*before)
            });
            match (exactly, before) {
                (Some(run), _) => return run,
                (None, Some(before)) => idx = before,
                (None, None) => return run,
            }
        }
    }

    /// After which run a variable was gone of which the place keeps what it held.
    fn deleted_in(&self, place: RootKind) -> Option<RunIdx> {
        let is_its = |look: &DeviceHolders| look.outlived.iter().any(|it| it.kind == place);
        let looks = self.all.iter().rev();
        let looks = looks.take_while(|(_, look)| is_its(look));
        let (run, _) = looks.last()?;
        Some(*run)
    }

    /// After the look, and without another one, most of what all places kept has gone from the
    /// device.
    fn has_fallen_after(&self, idx: usize) -> bool {
        let (seen, look) = self.all[idx];
        let n_bytes: Bytes = look.kept.iter().map(|it| it.n_bytes).sum();
        self.rows
            .gave_back(self.recording, seen, self.device, n_bytes)
    }
}

/// The run that is known to have left it: the one that displayed the oldest result, the last
/// that failed.
fn exactly_since(
    recording: &Recording,
    kept: &IpythonRetention,
    look: &DeviceHolders,
    seen: RunIdx,
) -> Option<RunIdx> {
    let mut cells = recording.runs()[..=seen.get()]
        .iter()
        .rev()
        .filter(|run| run.kind == RunKind::Cell);
    let run = match kept.place {
        RootKind::OutputHistory => {
            let names = look.roots.iter().map(|holder| &holder.name);
            let number = |name: &String| -> Option<u32> {
                name.strip_prefix("Out[")?.strip_suffix(']')?.parse().ok()
            };
            let first = names.chain([&kept.name]).filter_map(number).min()?;
            cells.find(|run| run.execution_count == Some(first))
        }
        RootKind::Traceback => {
            cells.find(|run| !matches!(run.status, Status::Ok | Status::Running))
        }
        _ => None,
    };
    Some(run?.idx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Play, facts, run};

    fn kept(place: RootKind, name: &str, mib: u64) -> IpythonRetention {
        IpythonRetention {
            place,
            n_bytes: Bytes::mib(mib),
            name: name.to_owned(),
            path: format!("{name}.x"),
            what: "float32[8]".to_owned(),
        }
    }

    fn found(cells: &[(&str, &[Play])], looks: &[(u32, Vec<IpythonRetention>)]) -> Vec<Finding> {
        let looks = looks.iter().map(|(run, kept)| {
            let kept = kept.clone();
            (
                *run,
                DeviceHolders {
                    kept,
                    ..DeviceHolders::default()
                },
            )
        });
        testing::found(cells, looks, FindingKind::Retention)
    }

    /// Each with its severity, the run since which, and what to write or to run.
    #[track_caller]
    fn check(
        cells: &[(&str, &[Play])],
        looks: &[(u32, Vec<IpythonRetention>)],
        expected: &[(Severity, u32, &str)],
    ) {
        let found = found(cells, looks);
        let found: Vec<(Severity, u32, String)> = found
            .iter()
            .map(|it| (it.severity, it.runs[0].0, facts(it)))
            .collect();
        let found: Vec<(Severity, u32, &str)> = found
            .iter()
            .map(|(severity, since, facts)| (*severity, *since, facts.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_place_has_its_bytes_its_run_and_its_own_cure() {
        let output = kept(RootKind::OutputHistory, "Out[1]", 2000);
        let error = kept(RootKind::Traceback, "last exception", 300);
        check(
            &[
                ("model(batch)", &[run(2000)]),
                ("train()", &[run(300).status(Status::Error)]),
            ],
            &[(0, vec![output.clone()]), (1, vec![output.clone(), error])],
            &[
                (
                    Severity::Warning,
                    0,
                    "retention: model(batch) · Out[1] · model(batch);",
                ),
                (
                    Severity::Info,
                    1,
                    "retention: train() · last exception · %gpumem release traceback",
                ),
            ],
        );
    }

    #[test]
    fn more_than_free_is_critical_and_little_is_not_reported() {
        let severity = |kept_mib: i64| {
            let error = kept(
                RootKind::Traceback,
                "last exception",
                kept_mib.unsigned_abs(),
            );
            let plays = [run(kept_mib).status(Status::Error)];
            let found = found(&[("f()", &plays)], &[(0, vec![error])]);
            found.first().map(|it| it.severity)
        };
        assert_eq!(severity(0), None);
        assert_eq!(severity(1), Some(Severity::Info));
        assert_eq!(severity(2000), Some(Severity::Warning));
        assert_eq!(severity(9000), Some(Severity::Critical));
    }

    #[test]
    fn what_was_let_go_is_withdrawn() {
        let output = kept(RootKind::OutputHistory, "Out[1]", 2000);
        let cells: &[(&str, &[Play])] =
            &[("model(batch)", &[run(2000)]), ("release()", &[run(-2000)])];
        let over = (
            Severity::Info,
            0,
            "retention: model(batch) · let_go · Out[1]",
        );
        // Seen by a look, or by the level alone.
        check(
            cells,
            &[(0, vec![output.clone()]), (1, Vec::new())],
            &[over],
        );
        check(cells, &[(0, vec![output])], &[over]);
    }

    #[test]
    fn what_came_back_is_there_since_then() {
        let plays = [run(2000), run(-2000), run(2000)];
        let debugged = || vec![kept(RootKind::Debugger, "%debug", 2000)];
        let looks = [(0, debugged()), (1, Vec::new()), (2, debugged())];
        let found = found(&[("%debug", &plays)], &looks);
        assert_eq!((found.len(), &*found[0].runs), (1, &[RunIdx(2)][..]));
    }

    #[test]
    fn growth_that_a_place_collects_is_reported_once() {
        let plays = vec![run(420).displayed(); 12];
        assert_eq!(found(&[("model(batch)", &plays)], &[]), []);
        let plays = vec![run(420).displayed(); 1];
        assert_eq!(found(&[("model(batch)", &plays)], &[]).len(), 1);
    }
}
