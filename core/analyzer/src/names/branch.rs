//! Parts of what a variable names: which of them grow, and which are a library's.

use gpumem_model::holders::{RootKind, variable_of};
use gpumem_model::recording::Recording;
use gpumem_model::source_text::has_word;
use gpumem_model::units::ByteDelta;

use super::NameKey;

/// If branches gained this share of what their object did, they are what grows.
const NEARLY_ALL: f64 = 0.9;

/// What did not gain this share of it is no part of that.
pub(super) const WORTH_NAMING: f64 = 0.1;

/// What a branch has more, and at how many looks it had more than at the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BranchGain<'a> {
    pub(crate) name: &'a str,
    pub(crate) gained: ByteDelta,
    pub(crate) n_grown: usize,
}

/// The branches that gained nearly all of what their object did, the most first; none if no few of them did. What
/// grew once does not grow: it is left out of what the object gained, unless nothing else grew yet.
pub(crate) fn main_branches(
    branches: Vec<BranchGain<'_>>,
    of_object: ByteDelta,
) -> Vec<BranchGain<'_>> {
    let gains = branches
        .into_iter()
        .filter(|it| it.gained > ByteDelta::ZERO);
    let (mut gains, mut once): (Vec<_>, Vec<_>) = gains.partition(|it| it.n_grown > 1);
    if gains.is_empty() && once.len() == 1 {
        std::mem::swap(&mut gains, &mut once);
    }
    let sum = |gains: &[BranchGain<'_>]| gains.iter().map(|it| it.gained.as_f64()).sum::<f64>();
    let total = (of_object.as_f64() - sum(&once)).max(sum(&gains));
    gains.retain(|it| it.gained.as_f64() >= WORTH_NAMING * total);
    gains.sort_by_key(|it| std::cmp::Reverse(it.gained));
    if sum(&gains) < NEARLY_ALL * total {
        gains.clear();
    }
    gains
}

/// It is a part of what a variable names.
pub(crate) fn is_branch((kind, name): &NameKey) -> bool {
    *kind == RootKind::Variable && variable_of(name).len() < name.len()
}

/// A branch is an attribute, and no key.
pub(crate) fn is_attribute(branch: &str) -> bool {
    branch[variable_of(branch).len()..].starts_with('.')
}

/// A branch that a library calls its own, and no cell has the name.
pub(crate) fn is_private(recording: &Recording, branch: &str) -> bool {
    let attribute = branch[variable_of(branch).len()..].strip_prefix('.');
    let is_private = |name: &str| {
        let mut texts = recording.latest_texts();
        name.starts_with('_') && !texts.any(|text| has_word(text, name))
    };
    attribute.is_some_and(is_private)
}
