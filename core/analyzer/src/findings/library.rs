//! Findings that a library is known for.

use super::{Details, Finding, FindingKind};
use crate::known_leaks::{self, KnownCure};
use gpumem_heap::{Fix, FixReason};
use gpumem_model::holders::Holder;

/// Notes which of these are known leaks, each with the cure of its entry.
pub(super) fn recognise(findings: &mut [Finding]) {
    use FindingKind::{Growing, Leak, Outlived};
    let stands =
        |it: &&mut Finding| it.withdrawn.is_none() && [Leak, Growing, Outlived].contains(&it.kind);
    for finding in findings.iter_mut().filter(stands) {
        let is_growth = finding.kind != Outlived;
        let of_holder =
            |it: &Holder| known_leaks::known_leak(&it.traits.library_objects, &it.path, is_growth);
        let Some((known, code)) = finding.holders.first().and_then(of_holder) else {
            continue;
        };
        if known.entry.cure != KnownCure::Found {
            finding.fix = code.map(|after| Fix {
                before: None,
                after,
                reason: FixReason::KnownLeak,
                elsewhere: false,
            });
            if let Details::Growth(details) = &mut finding.details {
                details.advice.clear();
            }
        }
        finding.known_leak = Some(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Play, found, run};
    use gpumem_model::holders::{DeviceHolders, LibraryObject, Outlived, RootKind};
    use gpumem_model::units::Bytes;

    /// What is said of a model that `accelerator` keeps, whose class is of this module.
    fn told(module: &str, is_freed: bool) -> (Option<&'static str>, Option<String>) {
        let owner = LibraryObject {
            class: format!("{module}.Accelerator"),
            version: "1.15.0".to_owned(),
            object: "accelerator".to_owned(),
            rest: "._models[0]".to_owned(),
        };
        let outlived = Outlived {
            name: "model".to_owned(),
            had: Bytes::mib(2000),
            n_bytes: Bytes::mib(2000),
            kind: RootKind::Variable,
            holder: "accelerator".to_owned(),
            path: "accelerator._models[0]".to_owned(),
            library_objects: vec![owner],
            ..Outlived::default()
        };
        let plays = [run(2000)];
        let last = run(if is_freed { -2000 } else { 0 });
        let cells: &[(&str, &[Play])] = &[
            ("model = f()", &plays),
            ("del model", &[run(0)]),
            ("g()", &[last]),
        ];
        let look = DeviceHolders {
            outlived: vec![outlived],
            ..DeviceHolders::default()
        };
        let found = found(cells, [(1, look)], FindingKind::Outlived);
        let known = found.first().and_then(|it| it.known_leak.as_ref());
        assert!(known.is_none_or(|it| it.version.as_deref() == Some("1.15.0")));
        let fix = found.first().and_then(|it| it.fix.as_ref());
        let fix = fix.map(|fix| fix.after.clone());
        (known.map(|it| it.entry.id), fix)
    }

    #[test]
    fn a_library_is_told_from_a_class_of_the_users_own() {
        let call = Some("accelerator.free_memory()".to_owned());
        let known = (Some("accelerate-prepared-models"), call);
        assert_eq!(told("accelerate.accelerator", false), known);
        assert_eq!(told("__main__", false), (None, None));
        assert_eq!(told("accelerate.accelerator", true), (None, None));
    }
}
