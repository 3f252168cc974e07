//! How a run ended, from the exception that ended it.

use gpumem_model::recording::Status;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::recording::oom::{self, OomReport};

#[derive(Debug, Clone)]
pub(crate) struct RunEnding {
    pub(crate) status: Status,
    /// Where memory ran out.
    pub(crate) oom: Option<OomReport>,
}

impl RunEnding {
    pub(crate) const OK: Self = Self::plain(Status::Ok);

    pub(crate) const fn plain(status: Status) -> Self {
        Self { status, oom: None }
    }

    pub(crate) fn of_error(error: &Bound<'_, PyAny>) -> PyResult<Self> {
        if error.is_instance_of::<PyKeyboardInterrupt>() {
            return Ok(Self::plain(Status::Interrupted));
        }
        let oom = oom::of_error(error)?;
        let status = match oom {
            Some(_) => Status::OutOfMemory,
            None => Status::Error,
        };
        Ok(Self { status, oom })
    }
}
