//! Out-of-memory errors in sessions: what was wanted, who held what, what would have helped.

use crate::testing::{Play, held, run, session};
use crate::{
    Finding, FindingDetails, FindingKind, HeldByError, OomBreakdown, OomCause, OomPart, OomShare,
    Reason, Rules, Severity, Withdrawn, analyze,
};
use gpumem_model::holders::{DeviceHolders, Holder, RootKind, SharedMemory, Twin};
use gpumem_model::recording::{
    Device, DeviceKind, Frame, OomFigures, OomHolder, OutOfMemory, Recording, Status,
};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};
use gpumem_readers::oom::{OomMessage, parse};

const MAKE: &str = "model = build()";

/// `model = build()`, whose runs end as `plays`; the last one that ran out says `message`.
fn recorded(plays: &[Play], message: &str, change: impl Fn(&mut OutOfMemory)) -> Recording {
    recorded_of(MAKE, plays, message, change)
}

/// The same of another cell.
fn recorded_of(
    text: &'static str,
    plays: &[Play],
    message: &str,
    change: impl Fn(&mut OutOfMemory),
) -> Recording {
    let cells = [("data = load()", &[run(1000)][..]), (text, plays)];
    recorded_in(&cells, message, change)
}

/// The same of several cells.
fn recorded_in(
    cells: &[(&'static str, &[Play])],
    message: &str,
    change: impl Fn(&mut OutOfMemory),
) -> Recording {
    let (mut recording, _) = session(cells);
    let is_out = |status| status == Status::OutOfMemory;
    let failed = recording.runs().iter().rfind(|run| is_out(run.status));
    let mut failed = failed.expect("one that ran out").clone();
    let parsed = parse(message);
    let mut oom = OutOfMemory {
        at: Nanos::ZERO,
        device: None,
        names_accelerator: parsed.as_ref().is_some_and(OomMessage::names_accelerator),
        framework: parsed.as_ref().and_then(|parsed| parsed.framework),
        survived: false,
        figures: parsed.map_or_else(OomFigures::default, |parsed| parsed.figures),
        holders: Vec::new(),
        message: Some(message.to_owned()),
    };
    change(&mut oom);
    if oom.survived {
        failed.status = Status::Ok;
    }
    failed.oom = Some(Box::new(oom));
    recording.apply(Frame::Run(failed)).expect("it is known");
    recording
}

fn finding(recording: &Recording) -> Finding {
    let findings = analyze(recording, &Rules::default()).findings;
    let mut of_memory = findings
        .into_iter()
        .filter(|finding| finding.kind == FindingKind::OutOfMemory);
    let finding = of_memory.next().expect("a finding");
    assert_eq!(of_memory.next(), None);
    finding
}

fn breakdown(recording: &Recording) -> OomBreakdown {
    match finding(recording).details {
        FindingDetails::OutOfMemory(breakdown) => *breakdown,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_causes(recording: &Recording, expected: &[OomCause]) {
    assert_eq!(breakdown(recording).causes, expected);
}

fn out(kept_mib: i64) -> Play {
    run(kept_mib).status(Status::OutOfMemory)
}

const TORCH: &str = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
    16.00 GiB of which 512.00 MiB is free. ";

#[test]
fn nothing_helps_but_a_smaller_step() {
    let message = format!(
        "{TORCH}Including non-PyTorch memory, this process has 15.50 GiB memory in use. Of the \
         allocated memory 15.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch \
         but unallocated."
    );
    let recording = recorded(&[out(0)], &message, |_| {});
    assert_eq!(finding(&recording).severity, Severity::Critical);
    let found = breakdown(&recording);
    let parts = [
        (OomPart::Tensors, Bytes::gib(15)),
        (OomPart::Cache, Bytes::mib(100)),
        (OomPart::Context, Bytes::mib(412)),
        (OomPart::Others, Bytes::mib(700)),
        (OomPart::Free, Bytes::mib(512)),
    ];
    assert_eq!(
        found.parts,
        parts.map(|(part, size)| OomShare { part, size })
    );
    assert_eq!(found.causes, [OomCause::SmallerStep]);
}

#[test]
fn the_levels_are_divided_into_parts() {
    let message = format!("{TORCH}Of the allocated memory 15.00 GiB is allocated by PyTorch");
    let breakdown = breakdown(&recorded(&[out(0)], &message, |_| {}));
    let parts = [OomPart::Tensors, OomPart::Cache, OomPart::Free].map(|it| breakdown.part(it));
    let expected = [Some(Bytes::gib(15)), None, Some(Bytes::mib(512))];
    assert_eq!(parts, expected);
    let sizes = (breakdown.wanted, breakdown.room, breakdown.missing);
    let expected = (Bytes::gib(2), Bytes::gib(16), Bytes::mib(1536));
    assert_eq!(
        sizes,
        (Some(expected.0), Some(expected.1), Some(expected.2))
    );
}

#[test]
fn the_traceback_keeps_what_the_failed_frames_held() {
    let recording = recorded(&[out(600)], TORCH, |_| {});
    let kept = HeldByError::UpTo(Bytes::mib(600));
    check_causes(
        &recording,
        &[OomCause::SmallerStep, OomCause::Traceback { kept }],
    );
    let replaced = recorded(&[out(600), run(0).status(Status::Error)], TORCH, |_| {});
    check_causes(&replaced, &[OomCause::SmallerStep]);
}

#[test]
fn what_an_earlier_error_held_would_have_been_enough() {
    let recording = recorded(&[out(1600), out(0)], TORCH, |_| {});
    let earlier = OomCause::EarlierError {
        execution_count: Some(2),
        kept: Bytes::mib(1600),
    };
    check_causes(&recording, &[earlier]);
    let given_back = [out(1600), run(-1600), out(0)];
    check_causes(
        &recorded(&given_back, TORCH, |_| {}),
        &[OomCause::SmallerStep],
    );
}

#[test]
fn pieces_of_the_cache_would_have_been_enough() {
    let message = format!(
        "{TORCH}Of the allocated memory 12.00 GiB is allocated by PyTorch, and 3.00 GiB is \
         reserved by PyTorch but unallocated."
    );
    let recording = recorded(&[out(0)], &message, |oom| {
        oom.figures.largest_free = Some(Bytes::gib(1));
    });
    let fragmented = OomCause::Fragmented {
        unallocated: Bytes::gib(3),
        largest: Some(Bytes::gib(1)),
        can_expand: false,
    };
    check_causes(&recording, &[fragmented]);
    let fits = recorded(&[out(0)], &message, |oom| {
        oom.figures.largest_free = Some(Bytes::gib(2));
    });
    check_causes(&fits, &[OomCause::SmallerStep]);
}

#[test]
fn other_processes_are_named_by_their_ids() {
    let message = format!(
        "{TORCH}Process 41 has 5.00 GiB memory in use. Process 42 has 10.00 GiB memory in use. Of \
         the allocated memory 8.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by \
         PyTorch but unallocated."
    );
    // The container hides that 42 is this very process.
    let recording = recorded(&[out(0)], &message, |_| {});
    let others = OomCause::OtherProcesses {
        used: Bytes::gib(5),
        pids: vec![41],
    };
    check_causes(&recording, &[others]);
}

#[test]
fn the_old_copy_was_still_held() {
    let recording = recorded(&[run(1600), out(0)], TORCH, |_| {});
    let copy = OomCause::OldCopy {
        kept: Bytes::mib(1600),
        name: "model".to_owned(),
    };
    check_causes(&recording, &[copy]);
}

#[test]
fn a_variable_of_a_function_that_failed_has_collected() {
    let check = |name: &str, n_storages, used, expected: &[OomCause]| {
        let recording = recorded(&[out(1700)], TORCH, |oom| {
            oom.holders = vec![OomHolder {
                name: name.to_owned(),
                kind: RootKind::Traceback,
                used: Bytes::mib(used),
                n_storages,
            }];
        });
        let kept = HeldByError::Exactly(Bytes::mib(used));
        let mut expected = expected.to_vec();
        expected.push(OomCause::Traceback { kept });
        check_causes(&recording, &expected);
    };
    let name = "outs in encode()";
    let collected = OomCause::Collected {
        kept: Bytes::mib(2100),
        name: name.to_owned(),
    };
    check(name, 40, 2100, &[collected]);
    // One large tensor, one that has less than was wanted, and what is no variable's.
    check(name, 1, 2100, &[OomCause::SmallerStep]);
    check(name, 40, 2000, &[OomCause::SmallerStep]);
    check("last exception", 40, 2100, &[OomCause::SmallerStep]);
}

#[test]
fn the_old_copy_is_what_still_has_a_name() {
    let copy = |name: &str| OomHolder {
        name: name.to_owned(),
        kind: RootKind::Variable,
        used: Bytes::mib(1700),
        n_storages: 12,
    };
    let text = "model = build()\nloss = model(x)";
    let check = |held: &str, expected: &[OomCause]| {
        let recording = recorded_of(text, &[run(1600), out(0)], TORCH, |oom| {
            oom.holders = vec![copy(held)];
        });
        check_causes(&recording, expected);
    };
    let (kept, name) = (Bytes::mib(1600), "model".to_owned());
    check("model", &[OomCause::OldCopy { kept, name }]);
    check("data", &[OomCause::SmallerStep]);
}

#[test]
fn what_a_name_collected_in_the_run_would_have_been_enough() {
    let collects = out(1600).held_by("kept", "list").with_graph();
    let recording = recorded_of(
        "for x in xs:\n    kept.append(f(x))",
        &[collects],
        TORCH,
        |_| {},
    );
    let collected = OomCause::Collected {
        kept: Bytes::mib(1600),
        name: "kept".to_owned(),
    };
    assert_eq!(breakdown(&recording).causes[0], collected);
    let fix = finding(&recording).fix.expect("of what collects");
    assert_eq!(fix.after, "kept.append(f(x).detach())");
    let model = out(1600).held_by("kept", "Model");
    let recording = recorded_of("kept = Model()", &[model], TORCH, |_| {});
    assert_eq!(breakdown(&recording).causes[0], OomCause::SmallerStep);
}

/// The failed cell after three others, and what a look at its end found.
fn looked_at(first: &'static str, failed: &'static str, found: Holder) -> Recording {
    looked(first, failed, |holders| holders.roots = vec![found])
}

/// The same with a look that found these.
fn looked(
    first: &'static str,
    failed: &'static str,
    fill: impl FnOnce(&mut DeviceHolders),
) -> Recording {
    let others = [
        (first, run(2000)),
        ("model = build()", run(10)),
        ("warm()", run(0)),
    ];
    let others = others.map(|(text, play)| (text, [play]));
    let failed = [(failed, [out(0)])];
    let cells: Vec<_> = others.iter().chain(&failed).collect();
    let cells: Vec<(&'static str, &[Play])> = cells.iter().map(|it| (it.0, &it.1[..])).collect();
    let mut recording = recorded_in(&cells, TORCH, |_| {});
    let run = recording.runs().last().expect("the failed one").idx;
    let mut look = held(run, "", "", 0, 0);
    fill(&mut look.holders);
    let frame = Frame::Holders(Box::new(look));
    recording.apply(frame).expect("it is of a run");
    recording
}

#[test]
fn what_is_idle_and_displayed_is_enough_only_together() {
    let check = |outputs_mib, (idle_mib, are_twins): (&[u64], bool), expected: &[(&str, u64)]| {
        let names = ["first", "second"].map(str::to_owned);
        let cells = [
            ("first = load()", 1),
            ("second = load()", 1),
            ("train()", 4),
            ("plot()", 4),
        ];
        let plays = cells.map(|(cell, n)| (cell, vec![run(0); n]));
        let failed = ("step()", vec![out(0)]);
        let plays = plays.iter().chain([&failed]);
        let plays: Vec<_> = plays.map(|(cell, runs)| (*cell, &runs[..])).collect();
        let mut recording = recorded_in(&plays, TORCH, |oom| {
            oom.holders = vec![OomHolder {
                name: String::new(),
                kind: RootKind::OutputHistory,
                used: Bytes::mib(outputs_mib),
                n_storages: 1,
            }];
        });
        let run = recording.runs().last().expect("the failed one").idx;
        let mut look = held(run, "", "", 0, 0);
        let holder =
            |(name, mib): (&String, &u64)| Holder::new(RootKind::Variable, name, Bytes::mib(*mib));
        look.holders.roots = names.iter().zip(idle_mib).map(holder).collect();
        let [name, other] = names;
        look.holders.twins.extend(are_twins.then_some(Twin {
            name: other,
            other: name,
            n_alike: 9,
            n_all: 9,
            by_shape: true,
        }));
        let frame = Frame::Holders(Box::new(look));
        recording.apply(frame).expect("it is of a run");
        let found = breakdown(&recording);
        let cures = found.cures.iter().map(|it| {
            let command = it.command.as_deref().unwrap_or_default();
            (command, it.leaves)
        });
        let expected: Vec<_> = expected
            .iter()
            .map(|(command, mib)| (*command, Bytes::mib(*mib)))
            .collect();
        assert_eq!(cures.collect::<Vec<_>>(), expected);
        assert_eq!(found.causes == [OomCause::SmallerStep], expected.is_empty());
    };
    let outputs = "%gpumem release outputs";
    // 1536 MiB were missing.
    check(536, (&[1000], false), &[(outputs, 1000), ("del first", 0)]);
    let both = [("del first", 636), ("del second", 0)];
    check(100, (&[900, 1000], false), &both);
    check(1536, (&[1000, 1000], false), &[(outputs, 0)]);
    // Of two that hold the same, one is dead weight. Other processes come last.
    check(100, (&[900, 1000], true), &[("del first", 636), ("", 0)]);
    check(100, (&[700], false), &[]);
    check(
        700,
        (&[900, 1000], true),
        &[(outputs, 836), ("del first", 0)],
    );
}

#[test]
fn a_name_that_no_cell_used_for_a_while_would_have_been_enough() {
    let check = |first, failed, mib, expected: &[OomCause]| {
        let checkpoint = Holder::new(RootKind::Variable, "checkpoint", Bytes::mib(mib));
        check_causes(&looked_at(first, failed, checkpoint), expected);
    };
    let unused = OomCause::Unused {
        kept: Bytes::mib(2000),
        name: "checkpoint".to_owned(),
        execution_count: Some(1),
        twin: None,
    };
    let load = "checkpoint = load()";
    check(load, "step()", 2000, &[unused]);
    check(load, "step()", 1000, &[OomCause::SmallerStep]);
    check(load, "step(checkpoint)", 2000, &[OomCause::SmallerStep]);
    let in_function = "checkpoint = load()\ndef step():\n    return checkpoint[0]";
    check(in_function, "step()", 2000, &[OomCause::SmallerStep]);
    // Several names for one object are deleted together.
    let together = looked("state = checkpoint = load()", "step()", |holders| {
        holders.shared = vec![SharedMemory {
            names: vec!["checkpoint".to_owned(), "state".to_owned()],
            and_others: false,
            n_bytes: Bytes::mib(2000),
            path: "checkpoint['layer']".to_owned(),
            what: "dict of 12 tensors".to_owned(),
            part: None,
        }];
    });
    let unused = OomCause::Unused {
        kept: Bytes::mib(2000),
        name: "checkpoint, state".to_owned(),
        execution_count: Some(1),
        twin: None,
    };
    check_causes(&together, &[unused]);
}

#[test]
fn a_graph_without_a_backward_pass_would_have_been_enough() {
    let check = |first, failed, expected: &[OomCause]| {
        let mut error = Holder::new(RootKind::Traceback, "last exception", Bytes::mib(1800));
        error.traits.graph = Bytes::mib(1700);
        error.grown = Some(ByteDelta::new(1800 << 20));
        check_causes(&looked_at(first, failed, error), expected);
    };
    let graph = OomCause::NoBackward {
        kept: Bytes::mib(1700),
        framework: "sim",
    };
    let evaluates =
        "def evaluate(x):\n    return forward(x)\n\ndef forward(x):\n    return model(x)";
    check(evaluates, "evaluate(x)", std::slice::from_ref(&graph));
    let of_another = "def step(x):\n    model(x).backward()";
    check(of_another, "evaluate(x)", &[graph]);
    check(of_another, "step(x)", &[OomCause::SmallerStep]);
    check(
        of_another,
        "evaluate(x).backward()",
        &[OomCause::SmallerStep],
    );
    check(of_another, "main(config)", &[OomCause::SmallerStep]);
    let mut earlier = Holder::new(RootKind::Variable, "losses", Bytes::mib(1800));
    earlier.traits.graph = Bytes::mib(1700);
    earlier.grown = Some(ByteDelta::ZERO);
    let evaluates = looked_at("losses = run()", "evaluate(losses)", earlier);
    check_causes(&evaluates, &[OomCause::SmallerStep]);
}

#[test]
fn the_state_of_an_optimizer_would_have_been_enough() {
    let check = |path: &str, expected: &[OomCause]| {
        let mut adam = Holder::new(RootKind::Variable, "opt", Bytes::mib(1600));
        adam.path = path.to_owned();
        check_causes(&looked_at("opt = Adam()", "opt.step()", adam), expected);
    };
    let state = OomCause::OptimizerState {
        kept: Bytes::mib(1600),
        name: "opt".to_owned(),
    };
    check("opt.state[…]['exp_avg']", &[state]);
    check("opt.params[0]", &[OomCause::SmallerStep]);
    // What else the name has is not known apart.
    check("opt.inner.state[…]['exp_avg']", &[OomCause::SmallerStep]);
}

#[test]
fn what_a_queue_collected_would_have_been_enough() {
    let mut ahead = Holder::new(RootKind::Variable, "ahead", Bytes::mib(1600));
    ahead.grown = Some(ByteDelta::new(1600 << 20));
    ahead.traits.n_tensors = 24;
    ahead.traits.type_name = "Queue".to_owned();
    let collected = OomCause::Collected {
        kept: Bytes::mib(1600),
        name: "ahead".to_owned(),
    };
    check_causes(
        &looked_at("ahead = Queue()", "ahead.get()", ahead),
        &[collected],
    );
}

#[test]
fn pieces_and_what_was_free_would_have_been_enough() {
    let check = |unallocated: &str, expected: &[OomCause]| {
        let message = format!(
            "{TORCH}Of the allocated memory 12.00 GiB is allocated by PyTorch, and {unallocated} is \
             reserved by PyTorch but unallocated."
        );
        check_causes(&recorded(&[out(0)], &message, |_| {}), expected);
    };
    let fragmented = OomCause::Fragmented {
        unallocated: Bytes::mib(1792),
        largest: None,
        can_expand: false,
    };
    check("1.75 GiB", &[fragmented]);
    check("1.00 GiB", &[OomCause::SmallerStep]);
}

#[test]
fn growth_that_may_be_wanted_is_a_cause_only_where_it_grows() {
    let grows = [(); 12].map(|()| run(1000));
    let cells = [("log.append(step())", &grows[..]), (MAKE, &[out(0)][..])];
    let recording = recorded_in(&cells, TORCH, |_| {});
    let analysis = analyze(&recording, &Rules::default());
    let grown = analysis
        .findings
        .into_iter()
        .find(|it| it.growth().is_some());
    let leak = grown.expect("it grows");
    let is_first = |growth: &Finding, oom: &Finding| {
        let mut ooms = [oom.clone()];
        let FindingDetails::OutOfMemory(breakdown) = &mut ooms[0].details else {
            panic!("{oom:?}");
        };
        breakdown.causes = vec![OomCause::SmallerStep];
        super::set_cures(&mut ooms, std::slice::from_ref(growth));
        let FindingDetails::OutOfMemory(breakdown) = &ooms[0].details else {
            panic!("{oom:?}");
        };
        matches!(breakdown.causes[0], OomCause::Growth { .. })
    };
    let oom = finding(&recording);
    let wanted = Finding {
        kind: FindingKind::Growing,
        reason: Some(Reason::MayBeMeant),
        ..leak.clone()
    };
    assert!(is_first(&leak, &oom));
    assert!(!is_first(&wanted, &oom));
    let cell = leak.cell.clone();
    assert!(is_first(&wanted, &Finding { cell, ..oom }));
}

#[test]
fn a_request_beyond_the_device_never_fits() {
    let message = "CUDA out of memory. Tried to allocate 64.00 GiB. GPU 0 has a total capacity of \
                16.00 GiB of which 15.00 GiB is free.";
    let recording = recorded(&[out(0)], message, |_| {});
    let room = Bytes::gib(16);
    check_causes(&recording, &[OomCause::TooLarge { room }]);
}

#[test]
fn a_limit_that_the_user_set_is_named() {
    let message = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 16.00 GiB total capacity; \
                3.00 GiB already allocated; 12.00 GiB free; 4.00 GiB allowed; 3.00 GiB reserved in \
                total by PyTorch)";
    let recording = recorded(&[out(0)], message, |_| {});
    let limit = Bytes::gib(4);
    check_causes(&recording, &[OomCause::Limited { limit }]);
    let found = breakdown(&recording);
    let available = (found.free, found.missing, found.room);
    let (left, missing) = (Some(Bytes::gib(1)), Some(Bytes::gib(1)));
    assert_eq!(available, (left, missing, Some(limit)));
    assert_eq!(found.part(OomPart::Free), Some(Bytes::gib(12)));
}

#[test]
fn a_cell_that_caught_it_is_only_warned_of() {
    let recording = recorded(&[out(0)], TORCH, |oom| oom.survived = true);
    assert_eq!(finding(&recording).severity, Severity::Warning);
    assert!(breakdown(&recording).survived);
}

#[test]
fn it_is_over_when_a_later_run_had_enough() {
    let recording = recorded(&[out(0), run(100)], TORCH, |_| {});
    let found = finding(&recording);
    assert_eq!(found.withdrawn, Some(Withdrawn::HadEnough));
    assert_eq!(found.severity, Severity::Info);
    let still = finding(&recorded(&[run(0), out(0), out(0)], TORCH, |_| {}));
    assert_eq!((still.withdrawn, still.n_runs), (None, 1));
}

#[test]
fn a_message_without_figures_is_filled_from_the_levels() {
    let recording = recorded(&[out(0)], "CUDA error: out of memory", |_| {});
    let found = breakdown(&recording);
    assert_eq!(found.wanted, None);
    let parts = [OomPart::Tensors, OomPart::Others].map(|it| found.part(it));
    assert_eq!(parts, [Some(Bytes::mib(1000)), Some(Bytes::mib(700))]);
    assert_eq!(found.causes, [OomCause::SmallerStep]);
}

/// The same on a machine whose GPU is not read, from an error with this text.
fn on_the_host(message: &str) -> Recording {
    let mut recording = recorded(&[out(600)], message, |_| {});
    let host = Device {
        kind: DeviceKind::Host,
        label: "host".to_owned(),
        ..recording.devices()[0].clone()
    };
    recording.apply(Frame::Device(host)).expect("it is known");
    recording
}

#[test]
fn a_gpu_that_nobody_reads_is_not_the_host() {
    let recording = on_the_host(TORCH);
    let kept = HeldByError::Unknown;
    check_causes(
        &recording,
        &[
            OomCause::SmallerStep,
            OomCause::Traceback { kept },
            OomCause::Unread,
        ],
    );
    assert_eq!(finding(&recording).known_device(), None);
    for words in [
        "CUDA error: out of memory",
        "RESOURCE_EXHAUSTED: Out of memory allocating 64 bytes on device:GPU:0",
    ] {
        let found = finding(&on_the_host(words));
        assert_eq!(found.known_device(), None, "{words}");
    }
    let of_host = on_the_host("RESOURCE_EXHAUSTED: Out of memory allocating 64 bytes.");
    assert!(finding(&of_host).known_device().is_some());
}
