//! Simulated tensors, with the graph that they keep as torch's do.

use super::{Adapter, ClassName, Sink, Unread};
use crate::sim;
use crate::still::Object;

pub(super) struct Sim;

impl Adapter for Sim {
    fn claims(&self, class: &ClassName) -> bool {
        class.module == "gpumem.sim" && class.name == "Tensor"
    }

    fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        sim::look(object, sink);
        Ok(())
    }
}
