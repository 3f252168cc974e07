//! Words of every kind of finding: one and several, in binary and in decimal units.

use std::fmt::Write as _;

use super::fix::short_fix;
use super::{Prose, Span, present, withdrawn};
use gpumem_analyzer::known_leaks::{CATALOGUE, KnownLeak};
use gpumem_analyzer::testing::{leak, run, session};
use gpumem_analyzer::{
    Advice, ChildrenDetails, Cure, DoublingDetails, Finding, FindingDetails, FindingKind,
    FragmentationDetails, GrowthDetails, GrowthShape, GrowthVerdict, HeldByError, LoopPlace,
    LoopUnit, OomBreakdown, OomCause, OomPart, OomShare, OutlivedDetails, Reason, RetentionDetails,
    SeriesGrowth, TracedRun, Withdrawn,
};
use gpumem_heap::{Fix, FixReason};
use gpumem_model::holders::{Holder, RootKind, Twin, WayOut};
use gpumem_model::recording::{ChildHandle, DeviceKind, OomHolder, Recording, RunIdx, Source};
use gpumem_model::severity::Severity;
use gpumem_model::units::{ByteDelta, Bytes, Units};

const CELL: &str = "kept.append(model(x))";

fn recording() -> Recording {
    let (recording, _) = session(&[(CELL, &[run(420), run(420)])]);
    recording
}

/// A finding with these details over a number of runs.
fn finding(
    kind: FindingKind,
    state: Option<GrowthVerdict>,
    n_runs: usize,
    details: FindingDetails,
) -> Finding {
    Finding {
        kind,
        state,
        n_runs,
        details,
        ..leak(&recording(), 0, 420)
    }
}

fn series(each_mib: i64, reach_mib: i64) -> SeriesGrowth {
    let delta = |mib: i64| ByteDelta::new(mib << 20);
    SeriesGrowth {
        shape: GrowthShape::WarmUp,
        bytes_per_run: delta(each_mib),
        interval: (delta(each_mib - reach_mib), delta(each_mib + reach_mib)),
        total: delta(12 * each_mib),
        sparkline: Vec::new(),
    }
}

fn growth(n: usize) -> GrowthDetails {
    GrowthDetails {
        series: series(420, 0),
        statement: None,
        by: None,
        steps: false,
        in_loop: None,
        of_names: false,
        n_grown: n,
        n_known: n,
        n_moving: None,
        n_missing: 0,
        headroom: Some(Bytes::gib(1)),
        runs_to_oom: Some(2),
        time_to_oom: None,
        traced: None,
        advice: Vec::new(),
    }
}

fn grown(state: GrowthVerdict, n: usize, change: impl Fn(&mut GrowthDetails)) -> Finding {
    let kind = match state {
        GrowthVerdict::Leak => FindingKind::Leak,
        GrowthVerdict::Stable => FindingKind::Settled,
        GrowthVerdict::Suspected | GrowthVerdict::NotEnoughData => FindingKind::Growing,
    };
    let mut details = growth(n);
    change(&mut details);
    let reason = match state {
        GrowthVerdict::Leak => Reason::Accident,
        GrowthVerdict::Suspected => Reason::HolderUnknown,
        GrowthVerdict::Stable => Reason::Stopped,
        GrowthVerdict::NotEnoughData => Reason::TooFewRuns,
    };
    let finding = finding(
        kind,
        Some(state),
        n,
        FindingDetails::Growth(Box::new(details)),
    );
    because(reason, finding)
}

fn because(reason: Reason, finding: Finding) -> Finding {
    Finding {
        reason: Some(reason),
        ..finding
    }
}

fn bounded(by: Reason) -> Finding {
    Finding {
        kind: FindingKind::Bounded,
        ..because(by, grown(GrowthVerdict::Stable, 12, |_| {}))
    }
}

/// With the marks of Markdown, so that a snapshot shows the spans.
fn marked(prose: &Prose) -> String {
    let spans = prose.spans().iter().map(|span| match span {
        Span::Plain(text) => text.clone(),
        Span::Code(text) => format!("`{text}`"),
        Span::Figure(text) => format!("**{text}**"),
    });
    spans.collect()
}

/// As a report shows it.
fn rendered(finding: &Finding, units: Units) -> String {
    let shown = present(&recording(), finding, units);
    let title = marked(&shown.title);
    let mut rendered = format!("{} {} · {title}\n", shown.sign, shown.heading);
    let facts = [&shown.outlook, &shown.row, &shown.detail()].map(marked);
    let line = Prose::joined(&shown.line, " · ").plain();
    let facts = facts.into_iter().chain([line]);
    for fact in facts.filter(|fact| !fact.is_empty() && *fact != title) {
        writeln!(rendered, "  {fact}").expect("a string takes everything");
    }
    for advice in &shown.suggestions() {
        writeln!(rendered, "  → {}", marked(advice)).expect("a string takes everything");
    }
    rendered
}

/// Each finding in binary units; where decimal ones say something else, in those, too.
#[track_caller]
fn all(findings: &[Finding]) -> String {
    let of_each = findings.iter().map(|finding| {
        let (binary, decimal) = (
            rendered(finding, Units::Binary),
            rendered(finding, Units::Decimal),
        );
        if binary == decimal {
            binary
        } else {
            binary + &decimal
        }
    });
    of_each.collect::<Vec<_>>().join("\n")
}

#[test]
fn growth_in_words() {
    let held = |mut finding: Finding| {
        let holder = Holder::new(RootKind::Variable, "kept", Bytes::gib(1));
        finding.holders = vec![Holder {
            what: "list of 3 tensors".to_owned(),
            ..holder
        }];
        finding
    };
    let withdrawn = |mut finding: Finding| {
        finding.withdrawn = Some(Withdrawn::GivenBack);
        finding
    };
    let grew = Reason::AllocationsGrew {
        n_grown: 11,
        n_runs: 12,
    };
    let findings = [
        held(grown(GrowthVerdict::Leak, 12, |it| {
            it.advice = vec![
                Advice::KeepNumbers {
                    list: "kept".to_owned(),
                },
                Advice::NoGrad { framework: "torch" },
            ];
        })),
        grown(GrowthVerdict::Suspected, 12, |it| {
            it.n_grown = 9;
            it.series = series(420, 12);
            it.runs_to_oom = Some(1);
            it.advice = vec![Advice::FindWhatOutlives];
        }),
        because(
            Reason::AllocationsStayed { n_runs: 12 },
            grown(GrowthVerdict::Suspected, 12, |it| it.runs_to_oom = Some(0)),
        ),
        because(
            grew,
            grown(GrowthVerdict::Leak, 12, |it| {
                it.steps = true;
                it.runs_to_oom = None;
                it.traced = Some(TracedRun {
                    run: RunIdx(1),
                    line: Some((1, Bytes::mib(420))),
                });
                it.advice = vec![Advice::FindWhatLoopCollects];
            }),
        ),
        because(
            Reason::MayBeMeant,
            grown(GrowthVerdict::Suspected, 12, |_| {}),
        ),
        held(grown(GrowthVerdict::Leak, 12, |it| {
            it.by = Some("worker (thread)".to_owned());
        })),
        because(
            Reason::WaitsForCollector,
            grown(GrowthVerdict::Suspected, 12, |_| {}),
        ),
        because(
            Reason::CollectorOff,
            grown(GrowthVerdict::Suspected, 12, |_| {}),
        ),
        bounded(Reason::OneTensor),
        bounded(Reason::FirstWrites),
        bounded(Reason::Fills {
            n: 12,
            most: 50,
            when_full: Bytes::mib(400),
        }),
        Finding {
            severity: Severity::Warning,
            ..bounded(Reason::Fills {
                n: 12,
                most: 50,
                when_full: Bytes::gib(40),
            })
        },
        grown(GrowthVerdict::NotEnoughData, 2, |it| {
            it.n_missing = 7;
            it.series.total = it.series.bytes_per_run + it.series.bytes_per_run;
        }),
        grown(GrowthVerdict::NotEnoughData, 8, |it| it.n_missing = 1),
        grown(GrowthVerdict::Stable, 12, |it| it.n_moving = Some(1)),
        grown(GrowthVerdict::Stable, 12, |it| it.n_moving = Some(3)),
        withdrawn(grown(GrowthVerdict::Stable, 12, |_| {})),
    ];
    let mut findings = Vec::from(findings);
    for finding in &mut findings {
        if finding.counts_steps() {
            finding.path = vec!["epoch".to_owned(), "batch".to_owned()];
        }
    }
    insta::assert_snapshot!(all(&findings));
}

#[test]
fn what_else_is_found_in_words() {
    let of = |kind, n_runs, details| finding(kind, None, n_runs, details);
    let fragmentation = |device_kind, largest_free| {
        FindingDetails::Fragmentation(FragmentationDetails {
            inactive_split: Bytes::mib(450),
            reserved: Bytes::mib(1000),
            largest_free,
            reclaimable: Bytes::mib(150),
            mapped: None,
            device_kind,
        })
    };
    let reserved = FindingDetails::ReservedGrowth {
        growth: series(64, 0),
        mapped: None,
    };
    let pressure = |n_flushes, usable| FindingDetails::Pressure { n_flushes, usable };
    let spike = FindingDetails::Spike {
        excess: Bytes::gib(2),
        usual: Bytes::mib(300),
    };
    let doubling = FindingDetails::Doubling(DoublingDetails {
        old: Bytes::gib(2),
        new: Bytes::gib(2),
        rose: Bytes::gib(2),
        n_reruns: 1,
    });
    let long_lived = FindingDetails::LongLived {
        line: 1,
        held: Bytes::gib(1),
        peak: Bytes::gib(3),
    };
    let unattributed = FindingDetails::UnattributedGrowth(series(5, 0));
    insta::assert_snapshot!(all(&[
        of(FindingKind::Growing, 40, unattributed),
        of(
            FindingKind::Fragmentation,
            12,
            fragmentation(DeviceKind::Gpu, Some(Bytes::mib(20)))
        ),
        of(
            FindingKind::Fragmentation,
            12,
            fragmentation(DeviceKind::Simulated, None)
        ),
        of(FindingKind::Fragmentation, 12, reserved),
        of(FindingKind::Pressure, 1, pressure(0, Some(Bytes::ZERO))),
        of(FindingKind::Pressure, 1, pressure(1, None)),
        of(FindingKind::Pressure, 3, pressure(5, None)),
        of(FindingKind::Spike, 12, spike),
        of(
            FindingKind::Repeated,
            5,
            FindingDetails::Repeated { n_all: 6 }
        ),
        of(
            FindingKind::Inefficient,
            3,
            FindingDetails::Inefficient { used_share: 0.2 }
        ),
        of(FindingKind::Doubling, 1, doubling),
        of(FindingKind::Gap, 12, FindingDetails::Gap(series(64, 0))),
        of(FindingKind::LongLived, 1, long_lived),
    ]));
}

#[test]
fn what_is_kept_in_words() {
    let kept = |place, name: &str, n_holders: usize, is_let_go: bool| {
        let details = RetentionDetails {
            place,
            kept: Bytes::gib(2),
            since: RunIdx(0),
            name: name.to_owned(),
            path: format!("{name}[0]"),
            what: "float32[8]".to_owned(),
            release: place.release(),
            since_execution_count: None,
        };
        let holder = Holder::new(place, name, Bytes::gib(2));
        let kind = FindingKind::Retention;
        Finding {
            holders: vec![holder; n_holders],
            withdrawn: is_let_go.then_some(Withdrawn::LetGo),
            ..finding(kind, None, 1, FindingDetails::Retention(details))
        }
    };
    insta::assert_snapshot!(all(&[
        kept(RootKind::OutputHistory, "Out[1]", 1, false),
        kept(RootKind::OutputHistory, "Out[1]", 3, false),
        kept(RootKind::OutputHistory, "Out[1]", 3, true),
        kept(RootKind::Traceback, "last exception", 1, false),
        kept(RootKind::Traceback, "last exception", 1, true),
        kept(RootKind::Debugger, "%debug", 1, false),
        kept(RootKind::RunModule, "train.py", 1, false),
    ]));
}

#[test]
fn what_lives_on_in_words() {
    let outlived = |kind, path: &str, way_out: Option<WayOut>, alive_mib| OutlivedDetails {
        name: "model".to_owned(),
        is_rebound: false,
        had: Bytes::mib(600),
        alive: Bytes::mib(alive_mib),
        kind,
        holder: path.split('.').next().unwrap_or_default().to_owned(),
        path: path.to_owned(),
        what: "Model".to_owned(),
        way_out,
        is_alone: true,
        held_since: Some(RunIdx(1)),
        held_since_execution_count: Some(2),
        given_back: Vec::new(),
        since: RunIdx(0),
        since_execution_count: None,
    };
    let with_details = |details: OutlivedDetails, withdrawn| Finding {
        withdrawn,
        ..finding(
            FindingKind::Outlived,
            None,
            1,
            FindingDetails::Outlived(details),
        )
    };
    let of = |kind, path, way_out| with_details(outlived(kind, path, way_out, 600), None);
    let models = "accelerator._models[0]";
    let method = Some(WayOut::Cache);
    let old = OutlivedDetails {
        is_rebound: true,
        is_alone: false,
        ..outlived(
            RootKind::Variable,
            "failure.__traceback__",
            Some(WayOut::Exception),
            600,
        )
    };
    let part = outlived(RootKind::Variable, models, method, 60);
    let whole = outlived(RootKind::Variable, models, method, 600);
    insta::assert_snapshot!(all(&[
        of(RootKind::Variable, models, method),
        with_details(part, None),
        with_details(whole, Some(Withdrawn::LetGo)),
        with_details(old, None),
        of(RootKind::Variable, "cache.model", Some(WayOut::Thread)),
        of(
            RootKind::ThreadFrame,
            "work() in inference",
            Some(WayOut::Thread)
        ),
        of(
            RootKind::UncollectedGarbage,
            "<Trainer>.model",
            Some(WayOut::Collector)
        ),
        of(RootKind::System, "torch.compile", None),
        of(RootKind::GraphCycle, "<Tensor>", None),
        of(RootKind::GradientCycle, "<Tensor>", None),
        of(RootKind::HookCycle, "<Tensor>", None),
        of(RootKind::Unnamed, "<Tensor>", None),
    ]));
}

#[test]
fn a_known_leak_in_words() {
    let known = |id: &str| {
        let entry = CATALOGUE.iter().find(|entry| entry.id == id);
        Some(KnownLeak {
            entry: entry.expect("it is in the catalogue"),
            version: Some("1.2.0".to_owned()),
        })
    };
    let leak = FindingDetails::Growth(Box::new(growth(12)));
    let leak = finding(FindingKind::Leak, Some(GrowthVerdict::Leak), 12, leak);
    let call = Fix {
        before: None,
        after: "accelerator.free_memory()".to_owned(),
        reason: FixReason::KnownLeak,
        elsewhere: false,
    };
    insta::assert_snapshot!(all(&[
        Finding {
            fix: Some(call),
            known_leak: known("accelerate-prepared-models"),
            ..leak.clone()
        },
        Finding {
            known_leak: known("xarray-cached-variables"),
            ..leak
        },
    ]));
}

#[test]
fn child_processes_in_words() {
    let details = |n: u32, handle| ChildrenDetails {
        n,
        n_bytes: Bytes::mib(80 * u64::from(n)),
        pid: 4123,
        name: "EngineCore-1".to_owned(),
        handle,
        deleted: None,
        since: Some(RunIdx(0)),
        since_execution_count: Some(4),
        growth: None,
    };
    let with_details = |details: ChildrenDetails, withdrawn| Finding {
        withdrawn,
        ..finding(
            FindingKind::Children,
            None,
            1,
            FindingDetails::Children(details),
        )
    };
    let grown = |handle| {
        let rate = ByteDelta::new(80 << 20);
        let growth = SeriesGrowth {
            shape: GrowthShape::Growth,
            bytes_per_run: rate,
            interval: (rate, rate),
            total: ByteDelta::new(640 << 20),
            sparkline: Vec::new(),
        };
        let details = ChildrenDetails {
            growth: Some(growth),
            ..details(8, handle)
        };
        let kind = FindingKind::Growing;
        finding(
            kind,
            Some(GrowthVerdict::Suspected),
            8,
            FindingDetails::Children(details),
        )
    };
    let deleted = ChildrenDetails {
        deleted: Some("llm".to_owned()),
        ..details(1, ChildHandle::Lost)
    };
    insta::assert_snapshot!(all(&[
        grown(ChildHandle::Lost),
        grown(ChildHandle::Held),
        with_details(details(1, ChildHandle::Lost), None),
        with_details(details(3, ChildHandle::Detached), None),
        with_details(deleted, None),
        with_details(details(2, ChildHandle::Lost), Some(Withdrawn::LetGo)),
    ]));
}

fn every_cause() -> Vec<OomCause> {
    vec![
        OomCause::TooLarge {
            room: Bytes::gib(16),
        },
        OomCause::Limited {
            limit: Bytes::gib(4),
        },
        OomCause::Fragmented {
            unallocated: Bytes::gib(3),
            largest: Some(Bytes::gib(1)),
            can_expand: true,
        },
        OomCause::CachedElsewhere {
            source: Source::Cupy,
            cached: Bytes::gib(2),
        },
        OomCause::OtherProcesses {
            used: Bytes::gib(5),
            pids: vec![41, 42],
        },
        OomCause::OldCopy {
            kept: Bytes::gib(2),
            name: "model".to_owned(),
        },
        OomCause::EarlierError {
            execution_count: Some(7),
            kept: Bytes::gib(2),
        },
        OomCause::Outputs {
            held: Bytes::gib(2),
        },
        OomCause::OptimizerState {
            kept: Bytes::gib(2),
            name: "optimizer".to_owned(),
        },
        OomCause::NoBackward {
            kept: Bytes::gib(2),
            framework: "torch",
        },
        OomCause::Unused {
            kept: Bytes::gib(2),
            name: "checkpoint".to_owned(),
            execution_count: Some(3),
            twin: Some(Twin {
                name: "checkpoint".to_owned(),
                other: "model".to_owned(),
                n_alike: 9,
                n_all: 9,
                by_shape: true,
            }),
        },
        OomCause::SmallerStep,
        OomCause::Traceback {
            kept: HeldByError::UpTo(Bytes::gib(1)),
        },
        OomCause::Unread,
    ]
}

#[test]
fn out_of_memory_in_words() {
    let holder = |name: &str, kind, mib| OomHolder {
        name: name.to_owned(),
        kind,
        used: Bytes::mib(mib),
        n_storages: 1,
    };
    let mut breakdown = OomBreakdown {
        wanted: Some(Bytes::gib(2)),
        free: Some(Bytes::mib(512)),
        total: Some(Bytes::gib(16)),
        room: Some(Bytes::gib(16)),
        parts: [
            (OomPart::Tensors, Bytes::gib(12)),
            (OomPart::Cache, Bytes::gib(3)),
            (OomPart::Context, Bytes::mib(300)),
            (OomPart::Others, Bytes::mib(200)),
            (OomPart::Free, Bytes::mib(512)),
        ]
        .map(|(part, size)| OomShare { part, size })
        .to_vec(),
        largest_free: None,
        missing: Some(Bytes::mib(1536)),
        mapped: None,
        elsewhere: false,
        survived: false,
        n_times: Some(3),
        others: vec![4242],
        cures: Vec::new(),
        holders: vec![
            holder("weights", RootKind::Variable, 8000),
            holder("", RootKind::Traceback, 2000),
            holder("", RootKind::Variable, 300),
            holder("x", RootKind::Variable, 100),
        ],
        causes: every_cause(),
    };
    let missing = breakdown.missing.unwrap_or_default();
    breakdown.cures = Cure::all(&breakdown.causes, missing);
    let parts = [300, 700, 600].map(|mib| OomCause::Unused {
        kept: Bytes::mib(mib),
        name: format!("x_{mib}"),
        execution_count: None,
        twin: None,
    });
    let together = OomBreakdown {
        missing: Some(missing),
        cures: Cure::all(&parts, missing),
        causes: parts.to_vec(),
        ..OomBreakdown::default()
    };
    let little = OomBreakdown {
        elsewhere: true,
        survived: true,
        causes: vec![OomCause::Traceback {
            kept: HeldByError::Unknown,
        }],
        ..OomBreakdown::default()
    };
    let of = |breakdown| {
        let kind = FindingKind::OutOfMemory;
        finding(
            kind,
            None,
            1,
            FindingDetails::OutOfMemory(Box::new(breakdown)),
        )
    };
    insta::assert_snapshot!(all(&[of(breakdown), of(together), of(little)]));
}

#[test]
fn every_reason_to_withdraw_has_words() {
    use Withdrawn::{Edited, GivenBack, HadEnough, LetGo};
    let words = [GivenBack, Edited, HadEnough, LetGo].map(withdrawn);
    assert_eq!(
        words,
        [
            "given back since",
            "the cell was edited since",
            "a later run of the cell had enough",
            "freed since",
        ]
    );
}

#[test]
fn a_name_s_memory_is_separate_from_its_cell_s_growth() {
    let outlook = |of_names| {
        let finding = grown(GrowthVerdict::Leak, 12, |details| {
            details.of_names = of_names;
        });
        present(&recording(), &finding, Units::Binary)
            .outlook
            .plain()
    };
    assert!(outlook(true).starts_with("4.92 GiB in it so far"));
    assert!(outlook(false).starts_with("4.92 GiB so far"));
}

#[test]
fn a_short_fix_is_what_it_adds() {
    let fix = Fix {
        before: Some("kept.append(model(x))".to_owned()),
        after: "kept.append(model(x).detach())".to_owned(),
        reason: FixReason::Detached,
        elsewhere: false,
    };
    assert_eq!(short_fix(&fix).ticked(), "`.detach()`");
}

#[test]
fn iterations_before_a_loop_is_found_are_not_told_of() {
    let check = |unit: LoopUnit, expected: &str| {
        let finding = grown(GrowthVerdict::Leak, 12, |it| {
            it.in_loop = Some(LoopPlace {
                unit,
                ..LoopPlace::default()
            });
        });
        let detail = present(&recording(), &finding, Units::default()).detail();
        assert!(detail.plain().contains(expected), "{}", detail.plain());
    };
    check(LoopUnit::Iteration, "grew in all 12 measured iterations");
    check(LoopUnit::Call, "grew in all 12 measured calls");
    check(LoopUnit::Item, "12 items");
}
