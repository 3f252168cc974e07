//! Findings that the report shows in one line.

use super::findings::{Finding, FindingDetails, FindingKind};
use super::{Analysis, OomCause};
use gpumem_model::recording::{CellIdx, Recording, Run, Status};

/// One finding, or several with one cause.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingGroup<'a> {
    findings: Vec<&'a Finding>,
}

impl<'a> FindingGroup<'a> {
    /// The worst of its findings.
    pub fn first(&self) -> &'a Finding {
        self.findings[0]
    }

    /// All of them, the worst first.
    pub fn findings(&self) -> &[&'a Finding] {
        &self.findings
    }

    fn takes(&self, finding: &Finding) -> bool {
        let first = self.first();
        let is_alike = first.kind == finding.kind
            && first.severity == finding.severity
            && (first.device == finding.device || first.kind == FindingKind::Pressure)
            && first.withdrawn.is_none()
            && finding.withdrawn.is_none();
        is_alike
            && match (&first.details, &finding.details) {
                (FindingDetails::OutOfMemory(a), FindingDetails::OutOfMemory(b)) => {
                    match (a.causes.first(), b.causes.first()) {
                        (Some(a), Some(b)) => is_one_cause(a, b),
                        _ => false,
                    }
                }
                (
                    FindingDetails::Pressure {
                        usable: Some(_), ..
                    },
                    FindingDetails::Pressure {
                        usable: Some(_), ..
                    },
                ) => true,
                _ => first.kind == FindingKind::Settled,
            }
    }
}

/// They are the same thing that many cells can suffer from.
fn is_one_cause(a: &OomCause, b: &OomCause) -> bool {
    match (a, b) {
        (
            OomCause::Growth {
                name: a, cell: x, ..
            },
            OomCause::Growth {
                name: b, cell: y, ..
            },
        ) => {
            if a.is_some() || b.is_some() {
                a == b
            } else {
                x == y
            }
        }
        (
            OomCause::CachedElsewhere { source: a, .. },
            OomCause::CachedElsewhere { source: b, .. },
        ) => a == b,
        (OomCause::Limited { .. }, OomCause::Limited { .. })
        | (OomCause::OtherProcesses { .. }, OomCause::OtherProcesses { .. }) => true,
        _ => false,
    }
}

impl Analysis {
    /// The findings as the report shows them: out-of-memory errors with one cause are one line, and so
    /// are cells that settled, and devices that are nearly full.
    pub fn verdicts(&self) -> Vec<FindingGroup<'_>> {
        let mut verdicts: Vec<FindingGroup<'_>> = Vec::new();
        for finding in &self.findings {
            match verdicts.iter_mut().find(|it| it.takes(finding)) {
                Some(verdict) => verdict.findings.push(finding),
                None => verdicts.push(FindingGroup {
                    findings: vec![finding],
                }),
            }
        }
        verdicts
    }

    /// The cells that ran and are part of no finding that stands. One in which the kernel died is not fine, and
    /// of one that never ran alone nobody knows.
    pub fn fine_cells(&self, recording: &Recording) -> Vec<CellIdx> {
        let standing = self.findings.iter().filter(|it| it.withdrawn.is_none());
        let found: Vec<CellIdx> = standing
            .filter_map(|finding| Some(finding.cell.as_ref()?.idx))
            .collect();
        let cells = recording.cells().iter();
        let is_whole = |run: &Run| run.status != Status::Died;
        let mut ran_alone = vec![false; recording.cells().len()];
        for run in recording
            .runs()
            .iter()
            .filter(|run| run.overlaps.is_empty())
        {
            ran_alone[run.cell.get()] |= run.parent.is_none();
        }
        let ran = cells.filter(|cell| recording.latest_run(cell.idx).is_some_and(is_whole));
        ran.map(|cell| cell.idx)
            .filter(|cell| ran_alone[cell.get()] && !found.contains(cell))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::finding::sort;
    use crate::testing::{leak, run, session};
    use crate::{OomBreakdown, Severity};
    use gpumem_model::recording::RunIdx;
    use gpumem_model::units::Bytes;

    /// It ran out in that run, because of what this cell kept.
    fn oom(of: &Finding, run: u32, causes: Vec<OomCause>) -> Finding {
        let breakdown = OomBreakdown {
            causes,
            ..OomBreakdown::default()
        };
        Finding {
            id: format!("out_of_memory/{run}"),
            kind: FindingKind::OutOfMemory,
            severity: Severity::Critical,
            runs: vec![RunIdx(run)],
            details: FindingDetails::OutOfMemory(Box::new(breakdown)),
            ..of.clone()
        }
    }

    fn grown(finding: &Finding) -> Vec<OomCause> {
        vec![OomCause::Growth {
            kept: finding.growth().expect("it grows").total.magnitude(),
            name: Some("losses".to_owned()),
            cell: finding.cell.as_ref().expect("a cell").label.clone(),
            is_leak: true,
        }]
    }

    /// What each line of the report begins with, and how many findings are in it.
    #[track_caller]
    fn check(findings: Vec<Finding>, expected: &[(FindingKind, usize)]) {
        let mut findings = findings;
        sort(&mut findings);
        let analysis = Analysis {
            findings,
            ..Analysis::default()
        };
        let verdicts = analysis.verdicts();
        let lines = verdicts
            .iter()
            .map(|it| (it.first().kind, it.findings().len()));
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_cause_precedes_what_came_of_it() {
        use FindingKind::{Leak, OutOfMemory};
        let (recording, _) = session(&[("f()", &[run(420), run(420)])]);
        let leak = Finding {
            severity: Severity::Warning,
            ..leak(&recording, 0, 420)
        };
        let ran_out = oom(&leak, 1, grown(&leak));
        check(vec![ran_out, leak.clone()], &[(Leak, 1), (OutOfMemory, 1)]);
        let alone = oom(&leak, 1, vec![OomCause::SmallerStep]);
        check(vec![leak.clone(), alone], &[(OutOfMemory, 1), (Leak, 1)]);
    }

    #[test]
    fn a_cell_in_which_the_kernel_died_is_not_fine() {
        let last = run(0).status(Status::Died);
        let (recording, _) = session(&[("f()", &[run(0)]), ("g()", &[run(0), last])]);
        assert_eq!(Analysis::default().fine_cells(&recording), [CellIdx(0)]);
    }

    #[test]
    fn runs_with_one_cause_are_one_line() {
        use FindingKind::{Leak, OutOfMemory};
        let (recording, _) = session(&[("f()", &[run(420), run(420)])]);
        let leak = leak(&recording, 0, 420);
        let of_one = |run| oom(&leak, run, grown(&leak));
        let of_another = oom(
            &leak,
            4,
            vec![OomCause::TooLarge {
                room: Bytes::gib(1),
            }],
        );
        check(
            vec![leak.clone(), of_one(1), of_another, of_one(2), of_one(3)],
            &[(OutOfMemory, 1), (Leak, 1), (OutOfMemory, 3)],
        );
    }
}
