//! How many looks were taken, and what became of them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use pyo3::prelude::*;

use super::{Look, LookResult, NoAnswer};
use gpumem_base::locks::lock;

static TRIES: Mutex<Tries> = Mutex::new(Tries {
    n_begun: 0,
    n_answered: 0,
    missed: BTreeMap::new(),
});

/// Since the process began.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tries {
    n_begun: u64,
    n_answered: u64,
    /// How many were left out or failed, by reason.
    missed: BTreeMap<String, u64>,
}

impl Tries {
    pub(super) fn count(begun: &Result<Look, NoAnswer>) {
        let mut tries = lock(&TRIES);
        tries.n_begun += 1;
        if let Err(reason) = begun {
            tries.miss(reason);
        }
    }

    pub(super) fn answered(outcome: &LookResult) {
        let mut tries = lock(&TRIES);
        match outcome {
            Ok(_) => tries.n_answered += 1,
            Err(reason) => tries.miss(reason),
        }
    }

    /// One was left out.
    pub(super) fn rest() {
        let mut tries = lock(&TRIES);
        tries.n_begun += 1;
        tries.miss(&"the looks before it took more than 1 % of the time");
    }

    /// Reasons may name figures: what was not met before has only so much room.
    fn miss(&mut self, reason: &impl ToString) {
        const MOST: usize = 32;
        let reason = reason.to_string();
        if self.missed.len() < MOST || self.missed.contains_key(&reason) {
            *self.missed.entry(reason).or_default() += 1;
        }
    }
}

/// How many looks at the heap were begun and answered, and how many were missed for which reason.
#[pyfunction]
pub fn _looks() -> (u64, u64, BTreeMap<String, u64>) {
    let tries = lock(&TRIES);
    (tries.n_begun, tries.n_answered, tries.missed.clone())
}
