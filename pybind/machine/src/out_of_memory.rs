//! The listener for out-of-memory errors: the recording, which this module does not know.

use std::sync::OnceLock;

use gpumem_model::recording::{Framework, OomFigures};
use gpumem_model::segments::Segments;
use pyo3::prelude::*;

static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Where memory lay, or why that is unknown; `None` if no source reports it.
type LayoutResult = Option<Result<Segments, String>>;

/// Who is told when memory runs out.
pub struct Observer {
    /// Memory of a device of this label ran out just now.
    pub note: fn(Python<'_>, Framework, String, OomFigures, LayoutResult),
    /// Attaches to one kind of torch device, once per process; torch must be initialised.
    pub attach_to_torch: fn(&Bound<'_, PyAny>, &str),
}

/// Calls these from now on. A second interpreter's are the same.
pub fn observe_with(observer: Observer) {
    OBSERVER.get_or_init(|| observer);
}

/// The one that [`observe_with`] has set.
pub fn observer() -> &'static Observer {
    OBSERVER.get().expect("set when the module is loaded")
}
