//! Pages of ranks and of child processes.

use crate::process_page::{BadEnd, PageAxis, PageCause, PageRow, ProcessPage};
use gpumem_jobs::processes::{ChildEnding, ChildProcesses, Per, ProcessRow};
use gpumem_jobs::ranks::{Rank, RankEnding, RankRow, Ranks};
use gpumem_model::downsample::LevelPoint;
use gpumem_model::recording::Recording;
use gpumem_model::units::{ByteDelta, Nanos, Units};
use gpumem_report as report;
use gpumem_report::{CauseLine, process_causes, rank_causes};

impl ProcessPage {
    /// The ranks of a job side by side.
    pub fn of_ranks(job: &[Rank], found: &Ranks) -> Self {
        let step = report::ranks::step_name(found);
        let rows = found.rows.iter();
        let rows = rows.map(|row| of_rank(row, found.noun(), step));
        let causes = rank_causes(found).into_iter().map(|line| {
            let first = line.rows.first().map(|row| &found.rows[*row]);
            let command = first.and_then(|row| report::ranks::opening(job, row));
            cause(line, command.unwrap_or_default())
        });
        let mut page = Self {
            noun: found.noun().to_owned(),
            title: report::ranks::title(job, found),
            healthy: report::ranks::none_found(found),
            step: step.to_owned(),
            axis: PageAxis::Time,
            span: span(found.rows.iter().map(|row| (row.until, &*row.levels))),
            causes: causes.collect(),
            rows: rows.collect(),
            notes: report::ranks::notes(job, found),
        };
        let has_steps = |row: &RankRow| row.step_levels.len() > 1;
        if !found.rows.is_empty() && found.rows.iter().all(has_steps) {
            page.draw_over_steps(found);
        }
        page.sorted()
    }

    /// The child processes of a session side by side; `parent` is the session's recording.
    pub fn of_processes(parent: &Recording, found: &ChildProcesses) -> Self {
        let first = found.rows.iter().map(|row| row.started).min();
        let began = first.unwrap_or_default();
        let causes = process_causes(parent, found).into_iter();
        let rows = found.rows.iter().map(|row| of_child(row, began));
        let rows: Vec<PageRow> = rows.collect();
        Self {
            noun: "process".to_owned(),
            title: report::processes::title(&found.rows),
            healthy: report::processes::NONE_FOUND.to_owned(),
            step: "step".to_owned(),
            axis: PageAxis::Time,
            span: span(rows.iter().map(|row| (row.until, &*row.levels))),
            causes: causes.map(|line| cause(line, String::new())).collect(),
            rows,
            notes: report::processes::copied_line(&found.rows)
                .into_iter()
                .collect(),
        }
        .sorted()
    }
}

impl ProcessPage {
    /// Imports, loading and whatever else was before the first step are no part of the charts.
    fn draw_over_steps(&mut self, found: &Ranks) {
        let first = |row: &RankRow| row.step_levels.first().map(|it| it.level);
        for (drawn, row) in self.rows.iter_mut().zip(&found.rows) {
            let first = first(row).unwrap_or_default();
            let levels = row.step_levels.iter().map(|point| LevelPoint {
                at: point.at,
                level: point.level.saturating_sub(first),
            });
            drawn.levels = levels.collect();
            drawn.until = drawn.levels.last().map_or(Nanos::default(), |it| it.at);
        }
        self.axis = PageAxis::Steps;
        self.span = span(self.rows.iter().map(|row| (row.until, &*row.levels)));
        if let Some(most) = found.rows.iter().filter_map(first).max() {
            self.notes.push(format!(
                "Not in the charts: what each {} had after its first {}, imports and loading among it (at most {}).",
                self.noun,
                self.step,
                Units::Binary.size(most),
            ));
        }
    }
}

fn cause(line: CauseLine, command: String) -> PageCause {
    PageCause {
        severity: line.severity,
        words: line.words,
        command,
        rows: line.rows,
    }
}

/// From the beginning to the last instant of any of them.
fn span<'a>(rows: impl Iterator<Item = (Nanos, &'a [LevelPoint])>) -> Nanos {
    let ends = rows.map(|(until, levels)| until.max(levels.last().map_or(until, |it| it.at)));
    ends.max().unwrap_or_default()
}

fn of_rank(row: &RankRow, noun: &str, step: &str) -> PageRow {
    let growth = row.growth.as_ref();
    let growth = growth.filter(|it| it.counts_steps != row.steps_are_runs);
    let levels = (row.levels.first(), row.levels.last());
    let grew = match levels {
        (Some(first), Some(last)) => Some(last.level.since(first.level)),
        _ => None,
    };
    PageRow {
        name: format!("{noun} {}", row.called()),
        machine: row.node.clone(),
        device: row.device.clone().unwrap_or_default(),
        pid: None,
        latest: row.latest,
        peak: row.peak,
        grew,
        outside: row.outside,
        gpu_used: None,
        n_steps: Some(row.n_steps),
        growth: growth.map_or_else(String::new, |it| format!("{} a {step}", it.per_step)),
        per_step: growth.map(|it| it.per_step),
        ending: report::ranks::ending_words(row),
        end: match row.ending {
            RankEnding::Running | RankEnding::InOrder => None,
            RankEnding::OutOfMemory | RankEnding::KilledBySystem => Some(BadEnd::OutOfMemory),
            RankEnding::Failed | RankEnding::Lost => Some(BadEnd::Died),
        },
        until: row.until,
        severity: None,
        levels: row.levels.clone(),
    }
}

fn of_child(row: &ProcessRow, began: Nanos) -> PageRow {
    let growing = row.growth.as_ref().filter(|_| row.grows());
    let rate = growing.map(|it| report::processes::rate(it.per, it.bytes_per_step));
    let levels = row.levels.iter().map(|point| LevelPoint {
        at: point.at.since(began),
        level: point.level,
    });
    PageRow {
        name: row.name.clone(),
        machine: String::new(),
        device: String::new(),
        pid: Some(row.pid),
        latest: row.latest,
        peak: row.peak,
        grew: row.grew(),
        outside: None,
        gpu_used: row.device_used,
        n_steps: None,
        growth: rate.map_or_else(String::new, |(bytes, each)| format!("+{bytes} {each}")),
        per_step: growing.map(|it| rate_of(it.per, it.bytes_per_step)),
        ending: report::processes::short_ending(row.ending),
        end: match row.ending {
            ChildEnding::KilledBySystem => Some(BadEnd::OutOfMemory),
            ending if ending.is_bad() => Some(BadEnd::Died),
            _ => None,
        },
        until: row.until.since(began),
        severity: None,
        levels: levels.collect(),
    }
}

/// What a step keeps; without steps, what a second does.
fn rate_of(per: Per, bytes: ByteDelta) -> ByteDelta {
    match per {
        Per::Step | Per::Run => bytes,
        Per::Span(_) => report::processes::rate(per, bytes)
            .0
            .since(gpumem_model::units::Bytes::ZERO),
    }
}
