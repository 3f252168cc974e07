//! Fields of records, checked.

use crate::pickle::{PickleKind, PickleView};

use super::fault::{SnapshotError, SnapshotFault};
use gpumem_model::units::Bytes;

/// Records of snapshots have at most 20.
const MOST_FIELDS: usize = 64;

/// A dict with names as keys.
#[derive(Clone, Copy)]
pub(super) struct PickledDict<'t> {
    view: PickleView<'t>,
}

impl<'t> PickledDict<'t> {
    pub(super) fn new(
        view: PickleView<'t>,
        field: &'static str,
        above: usize,
    ) -> Result<Self, SnapshotError> {
        let offset = view.offset().unwrap_or(above);
        if view.kind() != PickleKind::Dict {
            return Err(wrong(field, PickleKind::Dict, view).at(offset));
        }
        let n = view.entries().len();
        if n > MOST_FIELDS {
            return Err(SnapshotFault::ManyFields { field, n }.at(offset));
        }
        Ok(Self { view })
    }

    pub(super) fn offset(self) -> usize {
        self.view.offset().unwrap_or_default()
    }

    /// Its identity, the same wherever it is shared.
    pub(super) fn identity(self) -> u32 {
        self.view.identity().unwrap_or(u32::MAX)
    }

    /// Names and values; a name that was set twice comes twice.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'t str, PickleView<'t>)> {
        let fields = self.view.entries();
        fields.filter_map(|(key, value)| Some((key.as_text()?, value)))
    }

    pub(super) fn get(self, name: &str) -> Option<PickleView<'t>> {
        self.view.get(name).filter(|value| !value.is_none())
    }

    pub(super) fn number(
        self,
        value: PickleView<'t>,
        field: &'static str,
    ) -> Result<Option<u64>, SnapshotError> {
        if value.is_none() {
            return Ok(None);
        }
        let Some(number) = value.as_int() else {
            return Err(wrong(field, PickleKind::Int, value).at(self.offset()));
        };
        if let Ok(number) = u64::try_from(number) {
            return Ok(Some(number));
        }
        let found = number;
        Err(SnapshotFault::Number { field, found }.at(self.offset()))
    }

    pub(super) fn bytes(
        self,
        value: PickleView<'t>,
        field: &'static str,
    ) -> Result<Option<Bytes>, SnapshotError> {
        Ok(self.number(value, field)?.map(Bytes::new))
    }

    pub(super) fn list(self, field: &'static str) -> Result<Option<PickleView<'t>>, SnapshotError> {
        match self.get(field) {
            Some(value) => list(value, field, self.offset()).map(Some),
            None => Ok(None),
        }
    }
}

/// `value` if it is a list or a tuple.
pub(super) fn list<'t>(
    value: PickleView<'t>,
    field: &'static str,
    above: usize,
) -> Result<PickleView<'t>, SnapshotError> {
    match value.kind() {
        PickleKind::List | PickleKind::Tuple => Ok(value),
        _ => Err(wrong(field, PickleKind::List, value).at(value.offset().unwrap_or(above))),
    }
}

pub(super) fn wrong(
    field: &'static str,
    expected: PickleKind,
    value: PickleView<'_>,
) -> SnapshotFault {
    SnapshotFault::Type {
        field,
        expected,
        found: value.kind(),
    }
}

impl SnapshotFault {
    pub(super) const fn at(self, offset: usize) -> SnapshotError {
        SnapshotError { offset, what: self }
    }
}
