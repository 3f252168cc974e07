//! Where the walk starts: objects that have a name.

use std::sync::Arc;

use super::node::NodeIdx;

use gpumem_model::holders::RootKind;

/// A name from which objects are reached. Roots of equal name and kind are one: `Out[3]`, `_3` and
/// IPython's hidden copy hold together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// As the user knows it: `losses`, `Out[3]`, `last exception`.
    pub name: Arc<str>,
    /// What kind of name it is.
    pub kind: RootKind,
    /// The Python expression for `target`; paths begin with it.
    pub path: Arc<str>,
    /// The object that it holds.
    pub target: NodeIdx,
    /// What fills it beside the cells: `worker (thread)`.
    pub filled_by: Option<Arc<str>>,
}

impl Root {
    /// A name whose path is itself.
    pub fn new(name: &str, kind: RootKind, target: NodeIdx) -> Self {
        let name: Arc<str> = name.into();
        Self {
            path: name.clone(),
            name,
            kind,
            target,
            filled_by: None,
        }
    }

    /// A variable of the notebook.
    pub fn variable(name: &str, target: NodeIdx) -> Self {
        Self::new(name, RootKind::Variable, target)
    }

    /// The same name, reached by that expression.
    #[must_use]
    pub fn by(self, path: &str) -> Self {
        Self {
            path: path.into(),
            ..self
        }
    }

    /// The same name, filled by what runs beside the cells.
    #[must_use]
    pub fn filled_by(self, who: Option<&str>) -> Self {
        Self {
            filled_by: who.map(Arc::from),
            ..self
        }
    }
}
