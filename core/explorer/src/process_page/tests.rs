use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::process_page::*;
use gpumem_analyzer::testing::{Play, run, session};
use gpumem_jobs::history::SessionEnding;
use gpumem_jobs::processes::{ChildProcess, processes};
use gpumem_jobs::ranks::{Rank, ranks};
use gpumem_model::downsample::MAX_LEVELS;
use gpumem_model::recording::{Header, Recording};
use gpumem_model::rules::Rules;

fn row(name: &str, levels_mib: &[u64]) -> PageRow {
    let levels = levels_mib.iter().zip(0..).map(|(mib, n)| LevelPoint {
        at: Nanos::millis(10 * n),
        level: Bytes::mib(*mib),
    });
    PageRow {
        name: name.to_owned(),
        until: Nanos::millis(10 * levels_mib.len() as u64),
        levels: levels.collect(),
        ..PageRow::default()
    }
}

fn cause(severity: Severity, rows: &[usize]) -> PageCause {
    PageCause {
        severity,
        words: "something".to_owned(),
        command: String::new(),
        rows: rows.to_vec(),
    }
}

fn names(page: &ProcessPage) -> Vec<&str> {
    page.rows.iter().map(|row| &*row.name).collect()
}

#[test]
fn rows_of_the_worst_cause_come_first() {
    let page = ProcessPage {
        rows: ["a", "b", "c", "d"].map(|name| row(name, &[1])).to_vec(),
        causes: vec![
            cause(Severity::Critical, &[2]),
            cause(Severity::Info, &[1, 2]),
        ],
        ..ProcessPage::default()
    }
    .sorted();
    assert_eq!(names(&page), ["c", "b", "a", "d"]);
    let rows: Vec<_> = page.causes.iter().map(|it| &*it.rows).collect();
    assert_eq!(rows, [&[0][..], &[1, 0]]);
    assert_eq!(page.rows[0].severity, Some(Severity::Critical), "the worst");
    assert_eq!(page.n_outliers(), 2);
}

#[test]
fn a_page_counts_the_rows_it_leaves_out() {
    let mut page = ProcessPage {
        rows: vec![PageRow::default(); MAX_ROWS + 3],
        causes: vec![cause(Severity::Warning, &[MAX_ROWS + 1])],
        ..ProcessPage::default()
    };
    page.rows[MAX_ROWS + 1].name = "ill".to_owned();
    let page = page.sorted();
    assert_eq!(page.rows.len(), MAX_ROWS);
    assert_eq!(page.rows[0].name, "ill", "what matters has a place");
    assert_eq!(page.notes, ["3 more have no room on this page."]);
    assert_eq!(ProcessPage::from_bytes(&page.to_bytes()), Ok(page));
}

#[test]
fn the_band_is_the_middle_of_those_that_are_there() {
    let rows = [1, 2, 3, 4, 100].map(|mib| row("w", &[mib, mib])).to_vec();
    let mut page = ProcessPage {
        span: Nanos::millis(40),
        rows,
        ..ProcessPage::default()
    };
    page.rows[4].until = Nanos::millis(40);
    let bands = bands(&page);
    let first = bands[0];
    let [low, median, high] = [2, 3, 4].map(Bytes::mib);
    assert_eq!((first.low, first.median, first.high), (low, median, high));
    let last = bands.last().map(|it| it.at);
    assert_eq!(last, Some(Nanos::millis(20)), "four of five have ended");
}

#[test]
fn the_last_ones_make_no_band() {
    let mut page = ProcessPage {
        span: Nanos::millis(40),
        rows: vec![row("w", &[1, 1]); 12],
        ..ProcessPage::default()
    };
    let last = |page: &ProcessPage| bands(page).last().map(|it| it.at);
    for row in &mut page.rows[..5] {
        row.until = Nanos::millis(40);
    }
    assert_eq!(
        last(&page),
        Some(Nanos::millis(20)),
        "five of twelve are there"
    );
    page.rows[5].until = Nanos::millis(40);
    assert_eq!(last(&page), Some(Nanos::millis(40)), "half are there");
}

#[test]
fn ranks_are_sorted_as_people_count() {
    let mut page = ProcessPage {
        rows: ["rank 10", "rank 9", "rank 100"]
            .map(|name| row(name, &[1]))
            .to_vec(),
        ..ProcessPage::default()
    };
    page.rows[1].end = Some(BadEnd::Died);
    let by = |column, is_descending| {
        page.order(&RowOrder {
            column: Some(column),
            is_descending,
            ..RowOrder::default()
        })
    };
    assert_eq!(by(PageColumn::Name, false), [1, 0, 2]);
    assert_eq!(by(PageColumn::Ended, true), [1, 0, 2]);
}

#[test]
fn ranks_with_steps_are_drawn_over_them() {
    let rank = |play: Play| {
        let (recording, analysis) = session(&[("train()", &[play])]);
        Rank::new("a", recording, analysis, SessionEnding::InOrder)
    };
    let steps = || run(0).steps_keeping(&[100, 8, 8, 0]);
    let job = [rank(steps()), rank(steps())];
    let page = ProcessPage::of_ranks(&job, &ranks(&job));
    assert_eq!(page.axis, PageAxis::Steps);
    let mib =
        |row: &PageRow| -> Vec<u64> { row.levels.iter().map(|it| it.level.get() >> 20).collect() };
    assert_eq!(mib(&page.rows[0]), [0, 8, 16, 16]);
    assert_eq!(
        page.scale_words(Units::Binary),
        "each +0 to +16 MiB since its first step, over 4 steps"
    );
    let note = page.notes.last().map(String::as_str).unwrap_or_default();
    assert!(note.contains("imports and loading"), "{note}");
    let job = [rank(steps()), rank(run(0))];
    let page = ProcessPage::of_ranks(&job, &ranks(&job));
    assert_eq!(page.axis, PageAxis::Time, "one has no steps");
}

#[test]
fn a_child_that_was_killed_is_marked_where_it_ended() {
    let child = |pid: u32, code| {
        let process = [("pid", pid.to_string()), ("name", format!("w-{pid}"))];
        let process = process.map(|(name, value)| (name.to_owned(), value));
        let header = Header {
            process: process.to_vec(),
            ..Header::default()
        };
        ChildProcess {
            recording: Recording::new(header),
            exit: Some(gpumem_jobs::processes::Exit {
                at: Nanos::millis(5),
                code: Some(code),
            }),
            ..ChildProcess::default()
        }
    };
    let children = [child(1, 0), child(2, -9), child(3, -9), child(4, 0)];
    let parent = Recording::default();
    let found = processes(&parent, &children, &Rules::default());
    let page = ProcessPage::of_processes(&parent, &found);
    assert_eq!(page.title, "4 child processes");
    let words: Vec<&str> = page.causes.iter().map(|it| &*it.words).collect();
    assert_eq!(words, ["2 of 4 ws (2, 3) were killed by SIGKILL"]);
    assert_eq!(names(&page)[..2], ["w-2", "w-3"]);
    assert_eq!(page.rows[0].end, Some(BadEnd::Died));
    assert_eq!(page.rows[0].caption(), "SIGKILL");
    assert_eq!(page.rows[2].caption(), "");
}

#[track_caller]
fn refused(change: impl FnOnce(&mut ProcessPage), expected: &'static str) {
    let mut page = ProcessPage {
        rows: vec![row("a", &[1])],
        causes: vec![cause(Severity::Info, &[0])],
        ..ProcessPage::default()
    };
    change(&mut page);
    let read = ProcessPage::from_bytes(&page.to_bytes());
    assert_eq!(read, Err(PageError::Invalid(expected)));
}

#[test]
fn what_cannot_be_is_refused() {
    refused(|page| page.causes[0].rows = vec![1], "the row of a cause");
    let many = |page: &mut ProcessPage| page.rows = vec![row("a", &[1]); MAX_ROWS + 1];
    refused(many, "the number of rows");
    let back = |page: &mut ProcessPage| {
        page.rows[0] = row("a", &[1, 2]);
        page.rows[0].levels.reverse();
    };
    refused(back, "the levels of a row");
    let long = |page: &mut ProcessPage| page.rows[0] = row("a", &[1; MAX_LEVELS + 1]);
    refused(long, "the levels of a row");
}

prop_compose! {
    fn any_row()(
        texts in vec(".{0,12}", 5),
        pid in option::of(any::<u32>()),
        sizes in vec(option::of(any::<u64>()), 4),
        changes in vec(option::of(any::<i64>()), 2),
        until in any::<u64>(),
        codes in (0..3_usize, 0..4_usize),
        levels in vec((0..1_u64 << 40, any::<u64>()), 0..MAX_LEVELS),
    ) -> PageRow {
        let mut at = 0;
        let levels = levels.into_iter().map(|(later, level)| {
            at += later;
            LevelPoint { at: Nanos::new(at), level: Bytes::new(level) }
        });
        PageRow {
            name: texts[0].clone(),
            machine: texts[1].clone(),
            device: texts[2].clone(),
            growth: texts[3].clone(),
            ending: texts[4].clone(),
            pid,
            latest: sizes[0].map(Bytes::new),
            peak: sizes[1].map(Bytes::new),
            outside: sizes[2].map(Bytes::new),
            gpu_used: sizes[1].map(Bytes::new),
            n_steps: sizes[3],
            grew: changes[0].map(ByteDelta::new),
            per_step: changes[1].map(ByteDelta::new),
            until: Nanos::new(until),
            end: [None, Some(BadEnd::OutOfMemory), Some(BadEnd::Died)][codes.0],
            severity: [None, Some(Severity::Info), Some(Severity::Warning), Some(Severity::Critical)][codes.1],
            levels: levels.collect(),
        }
    }
}

prop_compose! {
    fn any_page()(
        rows in vec(any_row(), 1..6),
        texts in vec(".{0,20}", 4),
        notes in vec(".{0,20}", 0..3),
        causes in vec((0..6_usize, ".{0,20}"), 0..4),
        span in any::<u64>(),
    ) -> ProcessPage {
        let causes = causes.into_iter().map(|(row, words)| PageCause {
            severity: Severity::Warning,
            words,
            command: "jupyter gpumem".to_owned(),
            rows: vec![row % rows.len()],
        });
        ProcessPage {
            noun: texts[0].clone(),
            title: texts[1].clone(),
            healthy: texts[2].clone(),
            step: texts[3].clone(),
            axis: PageAxis::ALL[texts[0].len() % 2],
            span: Nanos::new(span),
            causes: causes.collect(),
            rows,
            notes,
        }
    }
}

proptest! {
    #[test]
    fn reading_what_was_written_gives_the_same(page in any_page()) {
        prop_assert_eq!(ProcessPage::from_bytes(&page.to_bytes()), Ok(page));
    }

    #[test]
    fn a_part_of_a_page_is_an_error(page in any_page(), at in any::<prop::sample::Index>()) {
        let bytes = page.to_bytes();
        prop_assert!(ProcessPage::from_bytes(&bytes[..at.index(bytes.len())]).is_err());
    }

    #[test]
    fn the_middle_half_holds_the_median(page in any_page()) {
        for band in bands(&page) {
            prop_assert!(band.low <= band.median && band.median <= band.high);
        }
    }
}

#[test]
fn a_level_is_known_from_the_first_reading_to_the_end() {
    let levels = vec![LevelPoint {
        at: Nanos::millis(2),
        level: Bytes::mib(7),
    }];
    let row = PageRow {
        levels,
        until: Nanos::millis(9),
        ..PageRow::default()
    };
    let check = |ms, level| assert_eq!(row.level_at(Nanos::millis(ms)), level);
    check(1, None);
    check(5, Some(Bytes::mib(7)));
    check(10, None);
}
