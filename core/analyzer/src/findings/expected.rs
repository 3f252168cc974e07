//! Findings whose growth the user means.

use super::{Finding, FindingKind, Withdrawn};
use gpumem_model::holders::path_steps;
use gpumem_model::severity::Severity;

/// Withdraws the findings of what these names and paths lead to. The measured kind and state stay.
pub(super) fn withdraw(expected: &[String], findings: &mut [Finding]) {
    use FindingKind::{Growing, Leak, Outlived};
    if expected.is_empty() {
        return;
    }
    let stands =
        |it: &&mut Finding| it.withdrawn.is_none() && [Leak, Growing, Outlived].contains(&it.kind);
    for finding in findings.iter_mut().filter(stands) {
        let holder = finding.holders.first();
        let is_meant = |wanted: &String| {
            holder.is_some_and(|it| it.name == *wanted || leads_through(&it.path, wanted))
        };
        if expected.iter().any(is_meant) {
            finding.withdrawn = Some(Withdrawn::Expected);
            finding.severity = Severity::Info;
            finding.fix = None;
        }
    }
}

/// `trainer.logs[3]` leads through `trainer.logs`, and not through `trainer.log`.
fn leads_through(path: &str, wanted: &str) -> bool {
    let (path, wanted) = (path_steps(path), path_steps(wanted));
    path.starts_with(&wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{leak, run, session};
    use gpumem_model::holders::Holder;

    #[test]
    fn what_is_meant_is_found_by_its_name_or_its_path() {
        let check = |wanted: &str, is_meant: bool| {
            let (recording, _) = session(&[("f()", &[run(2), run(2)])]);
            let mut findings = [leak(&recording, 0, 2)];
            findings[0].holders = vec![Holder {
                name: "trainer.logs".to_owned(),
                path: "trainer.logs['loss'][3]".to_owned(),
                ..Holder::default()
            }];
            withdraw(&[wanted.to_owned()], &mut findings);
            let reason = is_meant.then_some(Withdrawn::Expected);
            assert_eq!(findings[0].withdrawn, reason, "{wanted}");
            assert_eq!(findings[0].severity == Severity::Info, is_meant);
            assert_eq!(findings[0].kind, FindingKind::Leak);
        };
        check("trainer", true);
        check("trainer.logs", true);
        check("trainer.logs['loss']", true);
        check("trainer.log", false);
        check("logs", false);
    }
}
