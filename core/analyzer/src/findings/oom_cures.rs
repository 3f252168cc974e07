//! What would have been enough when memory ran out: the rows of a table.

use serde::Serialize;

use super::oom_cause::OomCause;
use gpumem_model::named;
use gpumem_model::units::Bytes;

named! {
    /// Whether it would have been enough: [`Cure::suffices`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Sufficiency {
        /// Alone.
        Alone = "alone",
        /// With those above it that are not enough alone.
        Together = "together",
        /// Not even with these.
        No = "no",
    }
}

/// A way to have had enough memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cure {
    /// What it removes.
    #[serde(skip)]
    pub cause: OomCause,
    /// The statement or the magic that does it, if one does: `del checkpoint`.
    pub command: Option<String>,
    /// What it frees, at most.
    #[serde(rename = "frees_bytes")]
    pub frees: Option<Bytes>,
    /// Freed by those above it that are not enough alone.
    #[serde(skip)]
    pub above: Bytes,
    /// Whether it is enough.
    pub suffices: Sufficiency,
    /// What is missing even with it and with those above it.
    #[serde(rename = "leaves_bytes")]
    pub leaves: Bytes,
}

impl Cure {
    /// Nothing else is needed.
    pub fn is_alone(&self) -> bool {
        self.suffices == Sufficiency::Alone
    }

    /// The cures for these causes, given the missing bytes.
    pub fn all(causes: &[OomCause], missing: Bytes) -> Vec<Self> {
        let mut sum = Bytes::ZERO;
        let is_cure =
            |it: &&OomCause| it.frees().is_some() || matches!(it, OomCause::Limited { .. });
        let cures = causes.iter().filter(is_cure).map(|cause| {
            let frees = cause.frees();
            // A limit counts only if what is beyond it is enough.
            let is_alone = frees.is_none_or(|frees| frees >= missing);
            let above = if is_alone { Bytes::ZERO } else { sum };
            if !is_alone {
                sum += frees.unwrap_or_default();
            }
            let leaves = if is_alone {
                Bytes::ZERO
            } else {
                missing.saturating_sub(sum)
            };
            Self {
                cause: cause.clone(),
                command: cause.command(),
                frees,
                above,
                suffices: match (is_alone, leaves) {
                    (true, _) => Sufficiency::Alone,
                    (false, Bytes::ZERO) => Sufficiency::Together,
                    (false, _) => Sufficiency::No,
                },
                leaves,
            }
        });
        cures.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(frees_mib: &[u64], expected: &[(&str, u64)]) {
        let outputs = |mib: &u64| OomCause::Outputs {
            held: Bytes::mib(*mib),
        };
        let causes: Vec<OomCause> = frees_mib.iter().map(outputs).collect();
        let found = Cure::all(&causes, Bytes::mib(300));
        let found: Vec<(&str, Bytes)> = found
            .iter()
            .map(|it| (it.suffices.name(), it.leaves))
            .collect();
        let expected: Vec<(&str, Bytes)> = expected
            .iter()
            .map(|(name, mib)| (*name, Bytes::mib(*mib)))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_cure_counts_with_those_above_it_that_are_not_enough_alone() {
        check(&[300, 299], &[("alone", 0), ("no", 1)]);
        check(&[100, 150, 50], &[("no", 200), ("no", 50), ("together", 0)]);
        check(
            &[100, 400, 200],
            &[("no", 200), ("alone", 0), ("together", 0)],
        );
    }

    #[test]
    fn what_frees_nothing_is_none() {
        let limit = Bytes::gib(1);
        let causes = [
            OomCause::TooLarge { room: limit },
            OomCause::Limited { limit },
            OomCause::SmallerStep,
            OomCause::Unread,
        ];
        let found = Cure::all(&causes, Bytes::mib(300));
        let found: Vec<_> = found.iter().map(|it| (&it.cause, it.suffices)).collect();
        assert_eq!(found, [(&causes[1], Sufficiency::Alone)]);
    }
}
