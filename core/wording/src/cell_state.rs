//! The state of a cell in words, at the end of its row.

use gpumem_analyzer::{Finding, FindingDetails, FindingKind};
use gpumem_model::recording::{Run, Status};
use gpumem_model::units::count;

/// What its worst finding says, else how many runs it had. `n_turns` are the iterations of its loop.
pub fn cell_state(runs: &[&Run], finding: Option<&Finding>, n_turns: Option<u64>) -> String {
    let n_runs = count(runs.len(), "run");
    let n_beside = runs.iter().filter(|run| !run.overlaps.is_empty()).count();
    let alone = match n_beside {
        0 => String::new(),
        n if n == runs.len() => ", none alone".to_owned(),
        n => format!(", {n} not alone"),
    };
    let latest = runs.last().map(|run| run.status);
    let of_finding = finding.and_then(|finding| match (finding.kind, &finding.details) {
        (FindingKind::OutOfMemory, _) => Some("out of memory".to_owned()),
        (FindingKind::Doubling, _) => Some("two copies".to_owned()),
        (FindingKind::Retention, _) => Some("kept by IPython".to_owned()),
        (FindingKind::Outlived, _) if finding.withdrawn.is_none() => Some("still held".to_owned()),
        (_, FindingDetails::Children(_)) if finding.withdrawn.is_none() => {
            Some("child processes".to_owned())
        }
        (FindingKind::Settled, _) => Some(format!("settled, {n_runs}")),
        (_, FindingDetails::Growth(growth)) if finding.counts_steps() => {
            let n_turns = n_turns.and_then(|n| usize::try_from(n).ok());
            let n = n_turns.unwrap_or(finding.n_runs);
            Some(count(n, super::unit(growth)))
        }
        _ => None,
    });
    match latest {
        Some(Status::Running) if finding.is_none_or(|it| it.in_loop().is_none()) => {
            "running".to_owned()
        }
        Some(Status::Died) => "kernel died".to_owned(),
        _ if of_finding.is_some() => of_finding.unwrap_or_default(),
        Some(Status::OutOfMemory) => "out of memory".to_owned(),
        Some(Status::Error) => format!("{n_runs}, failed"),
        Some(Status::Interrupted) => format!("{n_runs}, stopped"),
        _ => n_runs + &alone,
    }
}
