//! Values that several charts derive from a recording and its analysis.

use gpumem_analyzer::{Analysis, DeviceSummary, Finding, FindingKind, Metric, RunRow};
use gpumem_model::recording::{CellIdx, DeviceIdx, DeviceKind, Recording, Run, RunIdx, Status};
use gpumem_model::units::Bytes;
use gpumem_scene::Role;

/// The device to show first: that of the worst finding, else the first accelerator with known levels, else
/// the host, else the first device. `None` if there is no device.
pub fn default_device(recording: &Recording, analysis: &Analysis) -> Option<DeviceIdx> {
    let worst = analysis.findings.first();
    if let Some(device) = worst.and_then(Finding::known_device) {
        return Some(device);
    }
    let mut is_known = vec![false; recording.devices().len()];
    for row in &analysis.rows {
        is_known[row.device.get()] |= row.before.is_some() || row.after.is_some();
    }
    let devices = recording.devices();
    let accelerator = devices
        .iter()
        .find(|device| device.kind.is_accelerator() && is_known[device.idx.get()]);
    accelerator
        .or_else(|| {
            devices
                .iter()
                .find(|device| device.kind == DeviceKind::Host)
        })
        .or_else(|| devices.first())
        .map(|device| device.idx)
}

/// Whether every chart looks the same with either list of findings, so that none needs to be redrawn.
pub fn draw_alike(these: &[Finding], those: &[Finding]) -> bool {
    let drawn = |finding: &'_ Finding| {
        let Finding { kind, device, .. } = *finding;
        let growth = finding.growth();
        let rate = growth.map(|growth| (growth.bytes_per_run, growth.interval));
        (kind, finding.severity, device, finding.state, rate)
    };
    let alike = |(a, b): (&Finding, &Finding)| {
        (a.id == b.id && a.runs == b.runs && a.n_runs == b.n_runs) && drawn(a) == drawn(b)
    };
    these.len() == those.len() && these.iter().zip(those).all(alike)
}

/// One device's side of a recording.
pub(super) struct DeviceView<'a> {
    pub(super) recording: &'a Recording,
    pub(super) device: DeviceIdx,
    /// In the order of the runs.
    rows: Vec<&'a RunRow>,
    /// Of the findings that name the runs, by run.
    roles: Vec<Option<Role>>,
    devices: &'a [DeviceSummary],
    findings: &'a [Finding],
}

impl<'a> DeviceView<'a> {
    pub(super) fn new(recording: &'a Recording, analysis: &'a Analysis, device: DeviceIdx) -> Self {
        let rows = analysis.rows.iter().filter(|row| row.device == device);
        let growing: Vec<&Finding> = analysis
            .findings
            .iter()
            .filter(|finding| finding.device == device)
            .filter(|finding| matches!(finding.kind, FindingKind::Leak | FindingKind::Growing))
            .collect();
        let mut roles = vec![None; recording.runs().len()];
        for finding in growing.iter().copied().rev() {
            for run in &finding.runs {
                roles[recording.outermost(*run).get()] = Some(role_of(finding));
            }
        }
        Self {
            recording,
            device,
            devices: &analysis.devices,
            findings: &analysis.findings,
            rows: rows.collect(),
            roles,
        }
    }

    /// The runs that are not nested in another, in the order begun.
    pub(super) fn runs(&self) -> impl Iterator<Item = &'a Run> {
        self.recording
            .runs()
            .iter()
            .filter(|run| run.parent.is_none())
    }

    pub(super) fn row(&self, run: RunIdx) -> Option<&'a RunRow> {
        let idx = self.rows.binary_search_by_key(&run, |row| row.run).ok()?;
        Some(self.rows[idx])
    }

    /// The role of the finding that names the run.
    pub(super) fn role(&self, run: RunIdx) -> Option<Role> {
        self.roles[run.get()]
    }

    /// The findings that stand of what grew with the iterations of a loop.
    pub(super) fn judged_in_loops(&self) -> impl Iterator<Item = &'a Finding> + use<'a> {
        let device = self.device;
        let findings = self.findings.iter();
        findings.filter(move |it| {
            it.device == device && it.in_loop().is_some() && it.withdrawn.is_none()
        })
    }

    /// The metric that growth is judged on.
    pub(super) fn metric(&self) -> Metric {
        let summary = self.summary();
        summary.map_or(Metric::Allocated, |summary| summary.metric)
    }

    /// The smallest limit that applies to the device.
    pub(super) fn capacity(&self) -> Option<Bytes> {
        self.summary().and_then(|summary| summary.capacity)
    }

    fn summary(&self) -> Option<&'a DeviceSummary> {
        let mut devices = self.devices.iter();
        devices.find(|summary| summary.device == self.device)
    }

    /// The device's name.
    pub(super) fn device_label(&self) -> &'a str {
        let device = self.recording.devices().get(self.device.get());
        device.map_or("this device", |device| &device.label)
    }
}

fn role_of(finding: &Finding) -> Role {
    if finding.kind == FindingKind::Leak {
        Role::Leak
    } else {
        Role::Watch
    }
}

/// The mark of a run's end; `None` if it ended well.
pub(super) fn end_mark(status: Status, room: f64) -> Option<(&'static str, Role)> {
    match status {
        Status::Ok => None,
        Status::Running => Some(("…", Role::Process)),
        Status::Error => Some(("×", Role::Watch)),
        Status::Interrupted => Some(("■", Role::Muted)),
        Status::Died => Some(("†", Role::Leak)),
        Status::OutOfMemory if room >= 36.0 => Some(("OOM", Role::Leak)),
        // Colour alone must not distinguish it from an error.
        Status::OutOfMemory => Some(("!", Role::Leak)),
    }
}

/// Of the runs of each cell, in the order in which the cells were first run.
pub(super) fn by_cell<'a>(
    n_cells: usize,
    runs: impl Iterator<Item = &'a Run>,
) -> Vec<(CellIdx, Vec<&'a Run>)> {
    let mut groups: Vec<(CellIdx, Vec<&Run>)> = Vec::new();
    let mut places = vec![None; n_cells];
    for run in runs {
        let idx = *places[run.cell.get()].get_or_insert_with(|| {
            groups.push((run.cell, Vec::new()));
            groups.len() - 1
        });
        groups[idx].1.push(run);
    }
    groups
}
