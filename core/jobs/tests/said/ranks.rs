use gpumem_analyzer::analyze;
use gpumem_analyzer::testing::{Play, run, session};
use gpumem_jobs::history::SessionEnding;
use gpumem_jobs::ranks::*;
use gpumem_model::recording::{
    Frame, Header, OomFigures, OutOfMemory, Recording, Run, RunIdx, RunKind, Status,
};
use gpumem_model::rules::Rules;
use gpumem_model::units::{Bytes, Nanos};
use gpumem_report as report;
use gpumem_report::json;

const N_STEPS: usize = 30;
const SOURCE: &str = "train()";

/// A rank whose script is that one run; its clock begins so late, in milliseconds.
fn rank(number: u32, node: &str, began_ms: u64, play: &Play) -> Rank {
    let (recording, _) = session(&[(SOURCE, std::slice::from_ref(play))]);
    let facts = [
        ("rank", number.to_string()),
        ("world_size", "4".to_owned()),
        ("slurm_job", "4711".to_owned()),
        ("slurm_node", node.to_owned()),
    ];
    let facts = facts.map(|(name, value)| (name.to_owned(), value));
    let header = Header {
        wall_anchor: Nanos::millis(1_000_000 + began_ms),
        process: facts.to_vec(),
        ..recording.header().clone()
    };
    let mut named = Recording::new(header);
    for frame in recording.frames().skip(1) {
        named.apply(frame).expect("a frame of a recording");
    }
    judged(&format!("{number:08x}"), named, SessionEnding::InOrder)
}

fn judged(id: &str, recording: Recording, ending: SessionEnding) -> Rank {
    let analysis = analyze(&recording, &Rules::default());
    Rank::new(id, recording, analysis, ending)
}

/// The same, whose last run ended with an error of this kind; as many milliseconds later.
fn failing(rank: &Rank, status: Status, later_ms: u64) -> Rank {
    let mut recording = rank.recording.clone();
    let run = recording.runs().last().expect("a run").clone();
    let ended = run.ended.expect("it ended") + Nanos::millis(later_ms);
    let ran_out = || OutOfMemory {
        at: ended,
        figures: OomFigures {
            wanted: Some(Bytes::gib(2)),
            ..OomFigures::default()
        },
        ..OutOfMemory::default()
    };
    let oom = (status == Status::OutOfMemory).then(|| Box::new(ran_out()));
    let run = Run {
        ended: Some(ended),
        status,
        oom,
        ..run
    };
    recording
        .apply(Frame::Run(run))
        .expect("it refers to what it did");
    judged(&rank.id, recording, rank.ending)
}

fn steady() -> Play {
    run(0).steps(N_STEPS).seconds(30)
}

fn leaking() -> Play {
    run(40 * 30)
        .steps(N_STEPS)
        .seconds(30)
        .held_by("losses", "list")
}

fn findings(job: &[Rank]) -> Vec<String> {
    report::rank_findings(&ranks(job))
}

#[test]
fn the_rank_that_leaks_and_runs_out_is_named_first() {
    let others = [0, 1, 3].map(|number| {
        let rank = rank(number, "node-1", 0, &steady());
        failing(&rank, Status::Error, 1_200 + u64::from(number))
    });
    let ill = failing(&rank(2, "node-1", 0, &leaking()), Status::OutOfMemory, 0);
    let job = [&others[..], &[ill]].concat();
    assert_eq!(
        findings(&job),
        [
            "▲ rank 2 ran out of memory first, in step 31: 2 GiB were wanted; 3 others stopped after it, rank 0 after \
             1.2 s",
            "▲ rank 2 keeps 40 MiB a step, held by losses; the others keep nothing",
        ]
    );
    let text = report::ranks(&job, &ranks(&job), 100);
    assert!(text.starts_with("4 ranks · job 4711\n"), "{text}");
    assert!(
        text.contains(
            "\nThe report of rank 2, with holders and fixes: jupyter gpumem report 00000002\n"
        ),
        "{text}"
    );
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("node-1"))
        .collect();
    assert!(rows[0].trim_start().starts_with("2 node-1"), "{text}");
    assert!(rows[0].contains("+40 MiB  out of memory at"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}

#[test]
fn what_opens_a_rank_can_be_pasted() {
    let mut job = vec![rank(0, "n", 0, &leaking())];
    for (id, expected) in [
        ("job/1-2.gpumem", "report job/1-2.gpumem"),
        ("my job/a", "report 'my job/a'"),
        ("ada's/a", r"report 'ada'\''s/a'"),
    ] {
        job[0].id = id.to_owned();
        let text = report::ranks(&job, &ranks(&job), 100);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn ranks_that_leak_alike_are_one_finding() {
    let job: Vec<Rank> = (0..4)
        .map(|number| rank(number, "n", 0, &leaking()))
        .collect();
    assert_eq!(
        findings(&job),
        ["▲ all 4 ranks keep up to 40 MiB a step each, held by losses"]
    );
    let mixed = [&job[..3], &[rank(3, "n", 0, &steady())]].concat();
    assert_eq!(
        findings(&mixed),
        [
            "▲ 3 of 4 ranks (0, 1, 2) keep up to 40 MiB a step each, held by losses; the other keeps nothing"
        ]
    );
    let found: serde_json::Value =
        serde_json::from_str(&json::ranks_json(&mixed, &ranks(&mixed))).expect("JSON");
    assert_eq!(found["findings"][0]["ranks"], serde_json::json!([0, 1, 2]));
    assert_eq!(found["ranks"][3]["growth"], serde_json::Value::Null);
    assert_eq!(found["ranks"][0]["growth"]["holder"], "losses");
    assert_eq!(found["ranks"][0]["growth"]["bytes_per_step"], 40 << 20);
}

#[test]
fn a_healthy_job_has_no_findings() {
    let job: Vec<Rank> = (0..4)
        .map(|number| rank(number, "n", 0, &steady()))
        .collect();
    let text = report::ranks(&job, &ranks(&job), 100);
    assert!(
        text.contains("○ No rank ran out of memory, grows, or differs from the others."),
        "{text}"
    );
    assert!(!text.contains('▲') && !text.contains('!'), "{text}");
}

#[test]
fn the_first_one_is_so_by_the_corrected_clock() {
    // The clock of node-2 is ahead by an hour: by it, its ranks began, and ended, later.
    let hour = 3_600_000;
    let first = failing(
        &rank(3, "node-2", hour, &steady()),
        Status::OutOfMemory,
        100,
    );
    let job = [
        failing(&rank(0, "node-1", 0, &steady()), Status::Error, 900),
        failing(&rank(1, "node-1", 0, &steady()), Status::Error, 901),
        rank(2, "node-2", hour, &steady()),
        first,
    ];
    let found = ranks(&job);
    assert_eq!(found.rows[found.findings[0].rows[0]].number, 3);
    let line = &report::rank_findings(&found)[0];
    assert!(
        line.ends_with("2 others stopped after it, rank 0 after 800 ms"),
        "{line}"
    );
    assert_eq!(found.skew, Some(Nanos::new(0)));
    let text = report::ranks(&job, &found, 100);
    assert!(text.starts_with("4 ranks on 2 machines"), "{text}");
    assert!(text.contains("put right by up to"), "{text}");
}

#[test]
fn a_killed_rank_is_not_taken_for_the_cause() {
    let killed = |number, later_ms: u64| {
        let mut rank = failing(&rank(number, "n", 0, &steady()), Status::Ok, later_ms);
        rank.ending = SessionEnding::Lost;
        rank
    };
    // Rank 0 was heard of last a second before rank 1 ran out; rank 3 long before.
    let failed = failing(&rank(1, "n", 0, &steady()), Status::OutOfMemory, 9_000);
    let job = [killed(0, 8_000), failed.clone()];
    let line = "▲ rank 1 ran out of memory first, in step 31: 2 GiB were wanted; then rank 0";
    assert_eq!(findings(&job), [line]);
    let job = [killed(3, 1_000), failed];
    let line = "▲ rank 3 stopped without a word first, in step 31; rank 1 stopped 8.0 s after it";
    assert_eq!(findings(&job), [line]);
}

#[test]
fn a_rank_that_needs_more_than_the_others_is_found() {
    let needs = |number: u32, mib| rank(number, "n", 0, &run(mib));
    let job = [
        needs(0, 4_000),
        needs(1, 2_000),
        needs(2, 2_010),
        needs(3, 1_990),
    ];
    let lines = findings(&job);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("○ rank 0 needs 3.9"), "{lines:?}");
    let alike = [
        needs(0, 2_100),
        needs(1, 2_000),
        needs(2, 2_010),
        needs(3, 1_990),
    ];
    assert_eq!(findings(&alike), Vec::<String>::new());
}

#[test]
fn ranks_without_a_recording_are_named() {
    let job = [rank(0, "n", 0, &steady()), rank(2, "n", 0, &steady())];
    let found = ranks(&job);
    assert_eq!(found.missing, [1, 3]);
    let text = report::ranks(&job, &found, 100);
    assert!(
        text.contains("! of 4 ranks, ranks 1, 3 have no recording here"),
        "{text}"
    );
}

#[test]
fn growth_that_begins_late_says_when() {
    let kept: Vec<i64> = (0..40).map(|step| if step < 20 { 0 } else { 50 }).collect();
    let late = run(1_000).steps_keeping(&kept).seconds(40);
    let job = [rank(0, "n", 0, &late), rank(1, "n", 0, &steady())];
    let row = &ranks(&job).rows[0];
    let growth = row.growth.as_ref().expect("it grows");
    assert_eq!(growth.since, Some(23));
    assert_eq!(row.n_steps, 40);
}

#[test]
fn five_hundred_ranks_are_joined() {
    let one = rank(0, "n", 0, &steady());
    let all = (0..512).map(|number| rank(number, &format!("node-{}", number / 8), 0, &steady()));
    let mut job: Vec<Rank> = all.collect();
    job[300] = rank(300, "node-37", 0, &leaking());
    job[301] = one;
    let found = ranks(&job);
    let text = report::ranks(&job, &found, 100);
    assert!(text.contains("▲ rank 300 keeps 40 MiB a step"), "{text}");
    assert!(text.contains("… and 480 more ranks"), "{text}");
}

#[test]
fn the_job_that_ran_last_is_taken() {
    let at = |number, began_ms| rank(number, "n", began_ms, &steady());
    let check = |found: Vec<Rank>, expected: &[(u32, u64)], n_others| {
        let (job, others) = of_last_job(found);
        let mut kept: Vec<(u32, u64)> = job
            .iter()
            .map(|rank| {
                (
                    rank.number().expect("a number"),
                    rank.span().0.get() / 1_000_000,
                )
            })
            .collect();
        kept.sort_unstable();
        let expected: Vec<_> = expected
            .iter()
            .map(|(n, ms)| (*n, 1_000_000 + ms))
            .collect();
        assert_eq!((kept, others), (expected, n_others));
    };
    check(vec![at(0, 5), at(1, 0)], &[(0, 5), (1, 0)], 0);
    // Rank 1 was started anew.
    check(
        vec![at(1, 0), at(0, 5), at(1, 9_000)],
        &[(0, 5), (1, 9_000)],
        1,
    );
    // What names a job tells it from another one, whenever they ran.
    let mut other = at(1, 0);
    let header = other.recording.header().clone();
    let process = header.process.iter().cloned();
    let process = process.map(|(name, value)| match &*name {
        "slurm_job" => (name, "4712".to_owned()),
        _ => (name, value),
    });
    other.recording = Recording::new(Header {
        process: process.collect(),
        ..header
    });
    check(vec![at(0, 1), other], &[(0, 1)], 1);
}

#[test]
fn ranks_without_a_loop_are_joined_by_their_runs() {
    let of = |number: u32, kept_mib: i64| {
        let play = if kept_mib > 0 {
            run(kept_mib).held_by("losses", "list")
        } else {
            run(0)
        };
        let (recording, _) = session(&[("step()", &vec![play; 12])]);
        let process = vec![("rank".to_owned(), number.to_string())];
        let mut named = Recording::new(Header {
            process,
            ..recording.header().clone()
        });
        for frame in recording.frames().skip(1) {
            named.apply(frame).expect("a frame of a recording");
        }
        judged("x", named, SessionEnding::InOrder)
    };
    let job = [of(0, 0), of(1, 32), of(2, 0)];
    let found = ranks(&job);
    assert_eq!(
        report::rank_findings(&found),
        ["◆ rank 1 may keep 32 MiB a run, held by losses; the others keep nothing"]
    );
    assert_eq!(
        (found.rows[1].n_steps, found.rows[1].steps_are_runs),
        (12, true)
    );
    let text = report::ranks(&job, &found, 100);
    assert!(text.contains("  runs      a run  ended"), "{text}");
    assert!(
        text.contains("The last rank ends a run 0 ns after the first"),
        "{text}"
    );
}

/// A worker of a cluster, whose tasks are blocks of each interval, and what it kept in each.
fn worker(name: &str, began_ms: u64, kept_mib: i64, ending: SessionEnding) -> Rank {
    let play = run(kept_mib).held_by("get_worker().cache", "list");
    let play = if kept_mib > 0 { play } else { run(0) };
    let (recording, _) = session(&[("epoch()", &vec![play; 12])]);
    let facts = [("worker", name), ("cluster", "c"), ("host", "n")];
    let process = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut named = Recording::new(Header {
        process: process.to_vec(),
        wall_anchor: Nanos::millis(1_000_000 + began_ms),
        ..recording.header().clone()
    });
    for frame in recording.frames().skip(1) {
        let frame = match frame {
            Frame::Run(it) => {
                // The whole interval is one task.
                let task = Run {
                    idx: RunIdx(it.idx.0 * 2 + 1),
                    parent: Some(RunIdx(it.idx.0 * 2)),
                    kind: RunKind::Block,
                    label: Some("train_step".to_owned()),
                    ..it.clone()
                };
                let interval = Run {
                    idx: RunIdx(it.idx.0 * 2),
                    ..it
                };
                named.apply(Frame::Run(interval)).expect("a run");
                Frame::Run(task)
            }
            Frame::Samples(mut it) => {
                it.run = RunIdx(it.run.0 * 2);
                Frame::Samples(it)
            }
            Frame::Holders(mut it) => {
                it.run = RunIdx(it.run.0 * 2);
                Frame::Holders(it)
            }
            frame => frame,
        };
        named.apply(frame).expect("a frame of a recording");
    }
    judged("", named, ending)
}

#[test]
fn workers_have_names_and_come_back() {
    let job = [
        worker("10", 0, 32, SessionEnding::Running),
        worker("2", 9_000, 0, SessionEnding::Running),
        worker("2", 0, 0, SessionEnding::Lost),
        worker("tcp://10.0.0.1:41", 0, 32, SessionEnding::Running),
    ];
    let found = ranks(&job);
    let names: Vec<String> = found.rows.iter().map(RankRow::called).collect();
    assert_eq!(names, ["2", "2 (2)", "10", "10.0.0.1:41"]);
    assert_eq!((found.noun(), found.n_expected), ("worker", 3));
    let lines = findings(&job);
    assert!(
        lines[0].starts_with("▲ worker 2 stopped without a word at "),
        "{lines:?}"
    );
    assert!(
        lines[1].contains(
            "`train_step` may keep up to 32 MiB a task on 2 of 3 workers (10, 10.0.0.1:41)"
        ),
        "{lines:?}"
    );
    assert!(
        lines[1].contains("held by worker state `cache`; the others keep nothing"),
        "{lines:?}"
    );
    let text = report::ranks(&job, &found, 100);
    assert!(text.starts_with("3 workers\n"), "{text}");
    assert!(!text.contains("jupyter gpumem report"), "{text}");
    assert!(text.contains("     worker machine"), "{text}");
}
