//! Which storage is which, over time.
//!
//! An address is used again as soon as its block is free. A storage therefore gets a number, which
//! it keeps for as long as something proves that it is still the same one: a weak reference to it.
//! Frameworks that share a block (`DLPack`, `from_numpy`) share its number.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use gpumem_core::units::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use super::StorageId;

/// Proves that a storage is the one that was met before.
pub(super) enum Proof {
    /// A weak reference of torch's own to a storage, and the class that reads it.
    Torch { weak: Py<PyAny>, class: Py<PyAny> },
    /// A weak reference to the object that holds the bytes.
    Object(Py<PyWeakrefReference>),
    /// Nothing but its size.
    Size,
}

struct Known {
    number: u64,
    n_bytes: Bytes,
    proof: Proof,
}

#[derive(Default)]
struct Numbers {
    by_address: HashMap<usize, Known>,
    n_given: u64,
}

/// Above the numbers of simulated storages, which have their own.
const FIRST: u64 = 1 << 48;

static NUMBERS: Mutex<Option<Numbers>> = Mutex::new(None);

impl Proof {
    /// A weak reference, where the object's class has room for one.
    pub(super) fn object(object: &Bound<'_, PyAny>) -> Self {
        let weak = PyWeakrefReference::new(object);
        weak.map_or(Self::Size, |weak| Self::Object(weak.unbind()))
    }

    fn holds(&self, py: Python<'_>) -> bool {
        match self {
            Self::Torch { weak, class } => {
                let expired = class.bind(py).call_method1("_expired", (weak,));
                expired.and_then(|it| it.is_truthy()).is_ok_and(|it| !it)
            }
            Self::Object(weak) => weak.bind(py).upgrade().is_some(),
            Self::Size => true,
        }
    }

    fn let_go(&self, py: Python<'_>) {
        if let Self::Torch { weak, class } = self {
            // It was made by the same class: there is nothing to fail.
            let _ = class.bind(py).call_method1("_free_weak_ref", (weak,));
        }
    }
}

/// The number of the storage at an address. `proof` is asked for where it is new.
pub(super) fn number(
    py: Python<'_>,
    address: usize,
    n_bytes: Bytes,
    proof: impl FnOnce() -> Proof,
) -> StorageId {
    let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    let numbers = numbers.get_or_insert_default();
    if let Some(known) = numbers.by_address.get(&address)
        && known.n_bytes == n_bytes
        && known.proof.holds(py)
    {
        return StorageId(known.number);
    }
    let number = FIRST + numbers.n_given;
    numbers.n_given += 1;
    let known = Known {
        number,
        n_bytes,
        proof: proof(),
    };
    if let Some(gone) = numbers.by_address.insert(address, known) {
        gone.proof.let_go(py);
    }
    StorageId(number)
}

/// Forgets the storages that are gone.
pub(super) fn sweep(py: Python<'_>) {
    let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(numbers) = numbers.as_mut() {
        numbers.by_address.retain(|_, known| {
            let holds = known.proof.holds(py);
            if !holds {
                known.proof.let_go(py);
            }
            holds
        });
    }
}
