//! Simulated tensors, with the graph that they keep as torch's do.

use pyo3::prelude::*;

use super::{Adapter, ClassName, Sink};
use crate::sim;

pub(super) struct Sim;

impl Adapter for Sim {
    fn claims(&self, class: &ClassName) -> bool {
        class.module == "gpumem.sim" && class.name == "Tensor"
    }

    fn look<'py>(&self, object: &Bound<'py, PyAny>, sink: &mut Sink<'_, '_, 'py>) -> PyResult<()> {
        sim::look(object, sink);
        Ok(())
    }
}
