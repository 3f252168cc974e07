//! Small recordings for the tests of this crate.

use gpumem_model::recording::Recording;
use gpumem_model::testing::{Play, recorded, run};

/// Runs of a second with two seconds between them, run `i` of the cell `cells[i]`; each keeps a GiB.
pub(crate) fn recording_of_runs(cells: &[u32]) -> Recording {
    let text = |cell: &u32| format!("step{cell}(model)\n");
    let texts: Vec<String> = cells.iter().map(text).collect();
    let kept = [run(1024)];
    let cells: Vec<(&str, &[Play])> = texts.iter().map(|text| (&**text, &kept[..])).collect();
    recorded(&cells)
}
