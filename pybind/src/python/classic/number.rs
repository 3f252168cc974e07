//! A number that a user wrote into a record: kept as it is, read as a float.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

/// Moves on whenever a record is made, written to, or dropped: while it stands still,
/// a record at a known address is the one that was there, unchanged.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// How often records have changed.
pub(super) fn epoch() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

/// Called on the way of every value into a record, under the GIL that orders it all.
pub(super) fn records_change() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
}

/// A field of a record that is no number.
#[derive(Debug)]
pub(super) struct FieldValue<T>(pub(super) Py<T>);

impl<'py, T> FromPyObject<'_, 'py> for FieldValue<T>
where
    Py<T>: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        records_change();
        object.extract().map(Self).map_err(Into::into)
    }
}

impl<'py, T> IntoPyObject<'py> for &FieldValue<T> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(self.0.bind(py).as_any().clone())
    }
}

/// A field of a record. What is common is kept without a Python object of its own.
#[derive(Debug)]
pub(super) enum Number {
    Whole(i64),
    Real(f64),
    /// An integer beyond 64 bits, another type's number, `None`, or no number at all.
    Other(Py<PyAny>),
}

impl Number {
    /// A level in bytes; `None` where it is not known.
    pub(super) fn level(py: Python<'_>, level: Option<u64>) -> PyResult<Self> {
        let object = level.into_pyobject(py)?;
        object.extract()
    }

    /// As a float; NaN where it is none.
    pub(super) fn to_f64(&self, py: Python<'_>) -> f64 {
        match self {
            Self::Whole(whole) => *whole as f64,
            Self::Real(real) => *real,
            Self::Other(object) => object.extract(py).unwrap_or(f64::NAN),
        }
    }

    /// The difference, of two integers without rounding them before.
    pub(super) fn minus(&self, other: &Self, py: Python<'_>) -> f64 {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => one
                .checked_sub(*other)
                .map_or(*one as f64 - *other as f64, |difference| difference as f64),
            (Self::Other(one), _) => {
                let difference = one.bind(py).sub(other);
                difference.and_then(|it| it.extract()).unwrap_or(f64::NAN)
            }
            (_, Self::Other(_)) => -other.minus(self, py),
            _ => self.to_f64(py) - other.to_f64(py),
        }
    }

    /// It is immutable.
    pub(super) fn is_plain(&self) -> bool {
        !matches!(self, Self::Other(_))
    }

    pub(super) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Self::Whole(whole) => Self::Whole(*whole),
            Self::Real(real) => Self::Real(*real),
            Self::Other(object) => Self::Other(object.clone_ref(py)),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Number {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        records_change();
        if object.is_exact_instance_of::<PyFloat>() {
            return Ok(Self::Real(object.extract()?));
        }
        if object.is_exact_instance_of::<PyInt>()
            && let Ok(whole) = object.extract()
        {
            return Ok(Self::Whole(whole));
        }
        Ok(Self::Other(object.to_owned().unbind()))
    }
}

impl<'py> IntoPyObject<'py> for &Number {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(match self {
            Number::Whole(whole) => whole.into_pyobject(py)?.into_any(),
            Number::Real(real) => real.into_pyobject(py)?.into_any(),
            Number::Other(object) => object.bind(py).clone(),
        })
    }
}
