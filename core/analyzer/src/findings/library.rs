//! Findings that a library is known for.

use std::cell::LazyCell;

use super::{Finding, FindingDetails, FindingKind};
use crate::known_leaks::{self, CompiledFunctions, KnownCure, KnownLeak, LeakPattern};
use gpumem_heap::{Fix, FixReason};
use gpumem_model::holders::RootKind;
use gpumem_model::recording::{Recording, RunIdx};
use gpumem_model::source_text;

/// Notes which of these are known leaks, each with the cure of its entry.
pub(super) fn recognise(recording: &Recording, findings: &mut [Finding]) {
    use FindingKind::{Gap, Growing, Leak, Outlived};
    let may_be = [Leak, Growing, Outlived, Gap];
    let functions = LazyCell::new(|| {
        let revisions = recording.cells().iter().flat_map(|cell| &cell.revisions);
        let texts: Vec<&str> = revisions.filter_map(|it| it.text.as_deref()).collect();
        CompiledFunctions::new(&texts)
    });
    let stands = |it: &&mut Finding| it.withdrawn.is_none() && may_be.contains(&it.kind);
    for finding in findings.iter_mut().filter(stands) {
        let found = match finding.holders.first() {
            Some(it) => {
                let is_growth = finding.kind != Outlived;
                known_leaks::known_leak(&it.traits.library_objects, &it.path, is_growth)
            }
            None => unheld(recording, finding, &functions),
        };
        let collects = |known: &KnownLeak| {
            let is_one = matches!(known.entry.pattern, LeakPattern::Within { .. });
            !is_one || !is_made_anew(recording, finding)
        };
        let found = found.filter(|(known, _)| collects(known));
        let Some((known, code)) = found else {
            continue;
        };
        if known.entry.cure != KnownCure::Found {
            finding.fix = code.map(|after| Fix {
                before: None,
                after,
                reason: FixReason::KnownLeak,
                elsewhere: false,
            });
            if let FindingDetails::Growth(details) = &mut finding.details {
                details.advice.clear();
            }
        }
        finding.known_leak = Some(known);
    }
}

/// An object that each run makes anew does not collect from run to run: one by the name that its cell binds, or one
/// that is garbage.
fn is_made_anew(recording: &Recording, finding: &Finding) -> bool {
    let FindingDetails::Growth(details) = &finding.details else {
        return false;
    };
    let Some(holder) = finding.holders.first().filter(|_| !details.steps) else {
        return false;
    };
    let last = finding.runs.last().map(|run| recording.run(*run));
    let text = last.and_then(|run| recording.text(run));
    let is_bound = holder.kind == RootKind::Variable
        && text.is_some_and(|text| source_text::binds(text, holder.variable()));
    holder.kind.is_garbage() || is_bound
}

/// What no name keeps, by the texts of its cells.
fn unheld(
    recording: &Recording,
    finding: &Finding,
    functions: &CompiledFunctions<'_>,
) -> Option<(KnownLeak, Option<String>)> {
    if finding.kind == FindingKind::Outlived
        || matches!(finding.details, FindingDetails::Children(_))
    {
        return None;
    }
    let of_run = |run: &RunIdx| recording.text(recording.run(*run));
    let mut growing: Vec<&str> = finding.runs.iter().filter_map(of_run).collect();
    growing.dedup();
    let is_outside = finding.kind == FindingKind::Gap;
    let (entry, code) = known_leaks::unheld_leak(&growing, functions, is_outside)?;
    let mut versions = recording.header().versions.iter();
    let version = versions.find(|(name, _)| name == entry.library);
    let version = version.map(|(_, version)| version.clone());
    Some((KnownLeak { entry, version }, code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Play, found, held, run};
    use gpumem_model::holders::{DeviceHolders, LibraryObject, Outlived, RootKind};
    use gpumem_model::units::Bytes;

    /// What is said of a model that `accelerator` keeps, whose class is of this module.
    fn known_leak(module: &str, is_freed: bool) -> (Option<&'static str>, Option<String>) {
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
    fn an_object_that_each_run_makes_anew_collects_nothing() {
        let check = |cell: &str, kind: RootKind, is_known: bool| {
            let look = |idx: u32| {
                let mut look = held(RunIdx(idx), "ax", "Axes", 64, 64 * i64::from(idx + 1));
                let holder = &mut look.holders.roots[0];
                holder.kind = kind;
                holder.traits.library_objects = vec![LibraryObject {
                    class: "matplotlib.axes._base._AxesBase".to_owned(),
                    version: "3.11.2".to_owned(),
                    object: "ax".to_owned(),
                    rest: "._children[0]._A".to_owned(),
                }];
                (idx, look.holders)
            };
            let plays: Vec<Play> = (0..4).map(|_| run(64)).collect();
            let found = found(&[(cell, &plays)], (0..4).map(look), FindingKind::Growing);
            let known = found.iter().any(|it| it.known_leak.is_some());
            assert!(!found.is_empty() && known == is_known, "{cell} {found:?}");
        };
        check("ax.imshow(img)", RootKind::Variable, true);
        let cell = "fig, ax = plt.subplots()\nax.imshow(img)";
        check(cell, RootKind::Variable, false);
        check("ax.imshow(img)", RootKind::CyclicGarbage, false);
    }

    #[test]
    fn a_library_differs_from_a_class_of_the_user() {
        let call = Some("accelerator.free_memory()".to_owned());
        let known = (Some("accelerate-prepared-models"), call);
        assert_eq!(known_leak("accelerate.accelerator", false), known);
        assert_eq!(known_leak("__main__", false), (None, None));
        assert_eq!(known_leak("accelerate.accelerator", true), (None, None));
    }
}
