//! Who holds what after a run that left more than it found, or let go of what was kept.

use gpumem_core::holders::{HandedOut, Holders, Inventory, Limits, Look, ObjectGraph};
use gpumem_core::recording::{Reading, RunIdx};
use gpumem_core::units::Bytes;
use pyo3::prelude::*;

use super::reading::handed_out_of;
use super::{is_owner, with_session};
use crate::adapters::own::Asks;
use crate::adapters::torch_is_imported;
use crate::recorder::SourceText;
use crate::sources::Found;
use crate::walk::{self, Extent, Search};
use crate::{extension, trouble};

/// Before the first run that is recorded: what is there already, so that the look after it tells what
/// is new.
pub(super) fn look_before(py: Python<'_>, before: &[(Found, Reading)]) -> PyResult<()> {
    let is_first = with_session(py, |session| {
        let keeps_names = session.recorder.source_text() == SourceText::Full;
        keeps_names && session.inventory.is_none()
    })?;
    if !is_first {
        return Ok(());
    }
    let handed_out = handed_out_of(before);
    let is_empty = if handed_out.is_empty() {
        !torch_is_imported(py)
    } else {
        handed_out.iter().all(|(_, it)| it.n_bytes == Bytes::ZERO)
    };
    let inventory = if is_empty {
        Some(Inventory::default())
    } else {
        look(py, &handed_out, Extent::Names, None).map(|(_, inventory)| inventory)
    };
    with_session(py, |session| session.inventory = inventory)
}

/// Looks for the names that hold memory, where the run makes it worth a look, and records them,
/// with what each holds more than at the look before.
///
/// Where names do not tell of most of it, everything else is looked at as well.
pub(crate) fn look_for_holders(py: Python<'_>, run: RunIdx) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let asked = with_session(py, |session| {
        // Names are text of the user's, too.
        let keeps_names = session.recorder.source_text() == SourceText::Full;
        let devices = session.recorder.worth_a_look(run);
        (keeps_names && !devices.is_empty()).then(|| {
            let handed_out = session.recorder.handed_out(run);
            (devices, handed_out, session.inventory.take())
        })
    })?;
    let Some((devices, handed_out, before)) = asked else {
        return Ok(());
    };
    let before = before.as_ref();
    let Some((mut holders, mut inventory)) = look(py, &handed_out, Extent::Names, before) else {
        return Ok(());
    };
    let is_cut = holders.devices.iter().any(|device| device.is_cut);
    if !is_cut
        && inventory.hides_growth_since(before)
        && let Some(further) = look(py, &handed_out, Extent::Everything, before)
    {
        (holders, inventory) = further;
    }
    with_session(py, |session| {
        session.inventory = Some(inventory);
        for (device, label) in devices {
            let found = holders.on(&label).cloned();
            session.recorder.held(run, device, label, found);
        }
    })
}

/// Who holds what now, and what there is; `None` where that cannot be known, which is said once.
fn look(
    py: Python<'_>,
    handed_out: &[(String, HandedOut)],
    extent: Extent,
    before: Option<&Inventory>,
) -> Option<(Holders, Inventory)> {
    let search = Search {
        extent,
        limits: walk::Limits::at_a_prompt(),
        asks: Asks::AfterRuns,
    };
    let mut graph: ObjectGraph = match walk::find(py, &extension::shells(py), search) {
        Ok(found) => found.graph,
        Err(error) => {
            let message = format!("who held memory is not known: {error}");
            trouble::log_once(py, &message);
            return None;
        }
    };
    for (device, handed_out) in handed_out {
        graph.account(device, *handed_out);
    }
    Some(py.detach(|| {
        let look = Look::at(&graph);
        let inventory = look.inventory();
        let since = before.map(|before| inventory.since(before));
        (look.holders(&Limits::default(), since), inventory)
    }))
}
