//! A driver source whose panic ends itself only.

use std::panic::AssertUnwindSafe;

use gpumem_model::recording::Source;

use super::DriverSource;
use gpumem_base::guard::quietly;

/// A source that is disabled once it has panicked.
pub(super) struct Guarded {
    driver: Box<dyn DriverSource>,
    failure: Option<String>,
}

impl Guarded {
    pub(super) fn new(driver: Box<dyn DriverSource>) -> Self {
        Self {
            driver,
            failure: None,
        }
    }

    pub(super) fn source(&self) -> Source {
        self.driver.source()
    }

    pub(super) fn run<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn DriverSource) -> T,
    ) -> Result<T, String> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        // A source that panicked is never read again, so nothing sees the state that it left.
        let outcome = quietly(AssertUnwindSafe(|| ask(self.driver.as_mut())));
        outcome.map_err(|message| {
            let failure = format!("not read again in this session: it panicked: {message}");
            self.failure.insert(failure).clone()
        })
    }
}
