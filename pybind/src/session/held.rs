//! Who holds what after a run that left more than it found.

use std::time::Duration;

use gpumem_core::holders::{Limits, Look, Step};
use gpumem_core::recording::RunIdx;
use pyo3::prelude::*;

use super::{is_owner, with_session};
use crate::recorder::SourceText;
use crate::walk::{self, Extent};
use crate::{extension, trouble};

/// A cell has ended: its user waits for the next prompt.
const PATIENCE: walk::Limits = walk::Limits {
    time: Duration::from_millis(250),
    n_nodes: 5_000_000,
};

/// Looks for the names that hold memory, where a device has more allocated after the run than
/// before it, and records them, with what each holds more than at the look before.
pub(crate) fn look_for_holders(py: Python<'_>, run: RunIdx) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let grown = with_session(py, |session| {
        // Names are text of the user's, too.
        let keeps_names = session.recorder.source_text() == SourceText::Full;
        keeps_names.then(|| session.recorder.grown(run))
    })?;
    let grown = grown.unwrap_or_default();
    if grown.is_empty() {
        return Ok(());
    }
    let graph = match walk::find(py, &extension::shells(py), Extent::Names, PATIENCE) {
        Ok(found) => found.graph,
        Err(error) => {
            let message = format!("who held memory is not known: {error}");
            trouble::log_once(py, &message);
            return Ok(());
        }
    };
    let before = with_session(py, |session| session.inventory.take())?;
    let (holders, inventory) = py.detach(|| {
        let look = Look::at(&graph);
        let holders = look.holders(&Limits::default(), before.as_ref(), &mut |_, _| {
            Step::Opaque
        });
        (holders, look.inventory())
    });
    with_session(py, |session| {
        session.inventory = Some(inventory);
        for (device, label) in grown {
            if let Some(holders) = holders.on(&label) {
                session.recorder.held(run, device, holders.clone());
            }
        }
    })
}
