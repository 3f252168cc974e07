//! Small recordings for the tests of this crate.

use gpumem_model::recording::{
    Cell, CellIdx, Device, DeviceIdx, DeviceKind, DriverLevels, Frame, Reading, Recording,
    Revision, Run, RunIdx, RunKind, RunLevels, Status,
};
use gpumem_model::source_text;
use gpumem_model::units::{Bytes, Nanos};

/// One device and one run after the other, run `i` of the cell `cells[i]`; each
/// lasts a second and takes the device from `i` to `i + 1` GiB.
pub(crate) fn recording_of_runs(cells: &[u32]) -> Recording {
    let mut recording = Recording::default();
    let mut put = |frame| recording.apply(frame).expect("the fixture's frames fit");
    put(Frame::Device(Device {
        idx: DeviceIdx(0),
        key: "sim:0".into(),
        label: "sim:0".into(),
        name: "simulated".into(),
        kind: DeviceKind::Simulated,
    }));
    for cell in 0..cells.iter().max().map_or(0, |last| last + 1) {
        let text = format!("step{cell}(model)\n");
        put(Frame::Cell(Cell {
            idx: CellIdx(cell),
            id: format!("cell-{cell}"),
            revisions: vec![Revision {
                hash: source_text::hash(&text),
                text: Some(text),
            }],
        }));
    }
    for (run, cell) in (0..).zip(cells) {
        put(Frame::Run(Run {
            idx: RunIdx(run),
            cell: CellIdx(*cell),
            revision: source_text::hash(&format!("step{cell}(model)\n")),
            parent: None,
            kind: RunKind::Cell,
            label: None,
            execution_count: Some(run + 1),
            started: Nanos::millis(2000 * u64::from(run)),
            ended: Some(Nanos::millis(2000 * u64::from(run) + 1000)),
            status: Status::Ok,
            levels: vec![RunLevels {
                device: DeviceIdx(0),
                before: used(run),
                after: Some(used(run + 1)),
                peak_reset: false,
            }],
            oom: None,
            overlaps: Vec::new(),
            beside_unrecorded: false,
        }));
    }
    recording
}

fn used(n_gib: u32) -> Reading {
    Reading {
        driver: DriverLevels {
            process_used: Bytes::gib(u64::from(n_gib)).into(),
            ..DriverLevels::default()
        },
        ..Reading::default()
    }
}
