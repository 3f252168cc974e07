use gpumem_analyzer::testing::{self, Play, run, session};
use gpumem_analyzer::{FindingKind, Rules, analyze};
use gpumem_model::holders::{DeviceHolders, Holder, RootKind, Traits};
use gpumem_model::recording::{
    DeviceIdx, Frame, Loop, LoopIdx, Recording, RunIdx, Sample, Samples, Series,
};
use gpumem_model::severity::Severity;
use gpumem_model::units::{ByteDelta, Bytes, Nanos, Units};
use gpumem_wording::present;

const CELL: &str = "for epoch in epochs:\n    for x in xs:\n        kept.append(f(x))";

/// The only run of a cell, and a loop in its first line with one in its second line, whose iterations
/// keep a number of MiB.
fn nested(
    (cell, play): (&str, Play),
    (n_outer, n_inner): (u64, u64),
    level: impl Fn(u64, u64) -> u64,
) -> Recording {
    let (mut recording, _) = session(&[(cell, &[play])]);
    let begun = recording.run(RunIdx(0)).started.get();
    let sample = |at: u64, ordinal: u64, mib: u64| Sample {
        at: Nanos::new(begun + at * 1000),
        ordinal,
        allocated: Some(Bytes::mib(mib)),
        ..Sample::default()
    };
    let (mut outer, mut inner) = (Vec::new(), Vec::new());
    for pass in 0..n_outer {
        for turn in 1..=n_inner {
            let n = pass * n_inner + turn;
            inner.push(sample(10 * n, n, level(pass, turn)));
        }
        let ended = 10 * (pass + 1) * n_inner + 5;
        outer.push(sample(ended, pass + 1, level(pass + 1, 0)));
    }
    let loops = [
        (0, None, n_outer, outer),
        (1, Some(LoopIdx(0)), n_outer * n_inner, inner),
    ];
    for (idx, parent, n_iterations, points) in loops {
        count(&mut recording, idx, parent, n_iterations);
        let samples = Samples {
            run: RunIdx(0),
            device: DeviceIdx(0),
            series: Series::Loop(LoopIdx(idx)),
            points: points.into_iter().collect(),
        };
        recording.apply(Frame::Samples(samples)).expect("it fits");
    }
    recording
}

#[test]
fn a_loop_of_the_users_goes_before_one_of_a_library_in_it() {
    let mut recording = nested(leaking(), (12, 10), |pass, turn| 4 * (10 * pass + turn));
    let inner = recording.loops(RunIdx(0)).last();
    let mut inner = inner.expect("the inner one").clone();
    inner.is_library = true;
    let frame = Frame::Loop(Box::new(inner));
    recording.apply(frame).expect("it is known");
    let title = "`kept` leaks 40 MiB an iteration of line 1";
    check(&recording, Some((title, Severity::Critical)));
}

fn count(recording: &mut Recording, idx: u32, parent: Option<LoopIdx>, n_iterations: u64) {
    let counted = Loop {
        run: RunIdx(0),
        idx: LoopIdx(idx),
        parent,
        origin: gpumem_model::recording::FrameOrigin::Own,
        line: idx + 1,
        n_iterations,
        ..Loop::default()
    };
    let frame = Frame::Loop(Box::new(counted));
    recording.apply(frame).expect("the run is there");
}

/// What is found in its loops: its title, and how much it matters.
#[track_caller]
fn check(recording: &Recording, expected: Option<(&str, Severity)>) {
    let analysis = analyze(recording, &Rules::default());
    let mut found = analysis.findings.iter();
    let found = found.find(|it| it.in_loop().is_some());
    let shown = found.map(|it| {
        (
            present(recording, it, Units::Binary).title.ticked(),
            it.severity,
        )
    });
    let shown = shown
        .as_ref()
        .map(|(title, severity)| (&**title, *severity));
    assert_eq!(shown, expected, "{found:#?}");
}

/// What is said of 8 MiB an iteration of the inner loop.
const LEAK: Option<(&str, Severity)> = Some((
    "`kept` leaks 8 MiB an iteration of line 2",
    Severity::Critical,
));

fn leaking() -> (&'static str, Play) {
    (CELL, run(480).held_by("kept", "list").with_graph())
}

#[test]
fn the_innermost_loop_that_explains_the_growth_is_named() {
    let each_batch = nested(leaking(), (6, 10), |pass, turn| 8 * (10 * pass + turn));
    check(&each_batch, LEAK);
    let each_epoch = nested(leaking(), (12, 10), |pass, _| 40 * pass);
    let title = "`kept` leaks 40 MiB an iteration of line 1";
    check(&each_epoch, Some((title, Severity::Critical)));
}

#[test]
fn what_is_cleared_settles_or_came_five_times_is_no_growth() {
    check(&nested(leaking(), (12, 10), |_, turn| 40 * turn), None);
    check(&nested(leaking(), (5, 40), |pass, _| 96 * pass), None);
    let warm_up = nested(leaking(), (1, 60), |_, turn| 40 * turn.min(12));
    check(&warm_up, None);
}

#[test]
fn what_the_passes_of_the_outer_loop_do_not_leave_is_no_growth() {
    let of_passes = |n_later: u64, last_mib: u64| {
        let level = |_, turn: u64| if turn == 0 { 480 } else { 8 * turn };
        let mut recording = nested(leaking(), (1, 60), level);
        count(&mut recording, 0, None, 4);
        count(&mut recording, 1, Some(LoopIdx(0)), 60 + n_later);
        let begun = recording.run(RunIdx(0)).started.get();
        let point = |pass: u64| Sample {
            at: Nanos::new(begun + 1_000_000 * pass),
            ordinal: pass,
            allocated: Some(Bytes::mib(480 + (last_mib - 480) * (pass - 1) / 3)),
            ..Sample::default()
        };
        let samples = Samples {
            run: RunIdx(0),
            device: DeviceIdx(0),
            series: Series::Loop(LoopIdx(0)),
            points: (2..=4).map(point).collect(),
        };
        recording.apply(Frame::Samples(samples)).expect("it fits");
        recording
    };
    // The levels of the first pass alone were read.
    check(&of_passes(180, 480), None);
    check(&of_passes(180, 480 + 180 * 8), LEAK);
    // Later passes may be shorter.
    check(&of_passes(6, 480 + 6 * 8), LEAK);
}

#[test]
fn one_tensor_that_grew_in_a_pass_may_be_the_last_ones_alone() {
    let text =
        "for prompt in prompts:\n    for x in xs:\n        cache['k'] = torch.cat([cache['k'], x])";
    let grown = |n_passes: u64| {
        let play = run(480).held_by("cache", "dict");
        let mut recording = nested((text, play), (1, 60), |_, turn| 8 * turn);
        // Counting began late, so the levels where the outer loop's passes ended are missing.
        count(&mut recording, 0, None, n_passes);
        recording
    };
    let title = "`cache` collects 8 MiB an iteration of line 2";
    check(&grown(1), Some((title, Severity::Info)));
    check(&grown(5), None);
}

#[test]
fn what_the_user_marks_is_left_to_the_marks() {
    let mut recording = nested(leaking(), (1, 60), |_, turn| 8 * turn);
    check(&recording, LEAK);
    let mut marked = recording
        .loops(RunIdx(0))
        .last()
        .expect("the inner one")
        .clone();
    marked.n_marks = 60;
    recording
        .apply(Frame::Loop(Box::new(marked)))
        .expect("it is known");
    check(&recording, None);
}

#[test]
fn what_is_used_as_a_whole_is_meant() {
    let play = || run(480).held_by("kept", "list");
    let of_cell = |text: &'static str| nested((text, play()), (1, 60), |_, turn| 8 * turn);
    let title = "`kept` collects 8 MiB an iteration of line 2";
    let meant = "for xs in all:\n  for x in xs:\n    kept.append(f(x))\nresult = torch.cat(kept)";
    check(&of_cell(meant), None);
    let indexed = "for xs in all:\n  for x in xs:\n    kept.append(f(x))\nresult = kept[best]";
    check(&of_cell(indexed), Some((title, Severity::Info)));
    // A later cell may still use it.
    let unread = "for xs in all:\n  for x in xs:\n    kept.append(f(x))";
    check(&of_cell(unread), Some((title, Severity::Info)));
    let counted =
        "for xs in all:\n  for x in xs:\n    kept.append(f(x))\nprint(kept[-1], len(kept))";
    check(&of_cell(counted), Some((title, Severity::Info)));
    let looked_up = "for xs in all:\n  for x in xs:\n    kept.append(f(x))\nprint(y in kept)";
    check(&of_cell(looked_up), LEAK);
}

/// A look inside the run, with this name's growth in MiB.
fn look_inside(recording: &mut Recording, name: &str, grown_mib: u64) {
    let at = recording.run(RunIdx(0)).started;
    let holder = (RootKind::ThreadFrame, name, "list");
    look(recording, Some(at), holder, (grown_mib, grown_mib / 2, 12));
}

/// A look with this name's growth and graphs in MiB, and how many tensors it has.
fn look(
    recording: &mut Recording,
    inside_at: Option<Nanos>,
    name: (RootKind, &str, &str),
    figures: (u64, u64, u64),
) {
    look_at(recording, inside_at, holder(name, figures));
}

fn holder(
    (kind, name, type_name): (RootKind, &str, &str),
    (grown_mib, graph_mib, n_tensors): (u64, u64, u64),
) -> Holder {
    Holder {
        grown: Some(ByteDelta::from_f64(Bytes::mib(grown_mib).as_f64())),
        traits: Traits {
            type_name: type_name.to_owned(),
            n_tensors,
            graph: Bytes::mib(graph_mib),
            ..Traits::default()
        },
        ..Holder::new(kind, name, Bytes::mib(grown_mib))
    }
}

fn look_at(recording: &mut Recording, inside_at: Option<Nanos>, holder: Holder) {
    let holders = DeviceHolders {
        device: "cuda:0".to_owned(),
        roots: vec![holder],
        ..DeviceHolders::default()
    };
    testing::look(recording, RunIdx(0), inside_at, holders);
}

#[test]
fn a_tensor_for_each_iteration_is_seen_in_any_noise() {
    let noisy = |turn: u64| 300 + 8 * turn + turn * turn * 37 % 601;
    let mut recording = nested((CELL, run(480)), (1, 60), |_, turn| noisy(turn));
    check(&recording, None);
    let kept = (RootKind::Variable, "kept", "list");
    look(&mut recording, None, kept, (480, 240, 60));
    check(&recording, LEAK);
    // Two in each: what the levels come closest to.
    look(&mut recording, None, kept, (480, 240, 120));
    check(&recording, LEAK);
    // Fewer tensors than iterations tell nothing.
    look(&mut recording, None, kept, (480, 240, 12));
    check(&recording, None);
}

#[test]
fn a_graph_that_each_iteration_makes_longer_is_seen_where_the_level_falls_at_once() {
    let of_name = |graph_mib: u64, level: fn(u64) -> u64| {
        let cell = "for x in xs:\n    for y in ys:\n        mean = mean_of(f(x))";
        let mut recording = nested((cell, run(300)), (1, 60), |_, turn| 300 + level(turn));
        let name = (RootKind::Variable, "mean_of", "function");
        look(&mut recording, None, name, (300, graph_mib, 1));
        recording
    };
    // Free memory between the graphs grows, too, and is given back at once. One of the 60 was not measured.
    let with_holes = |turn: u64| match turn {
        0..=46 => 8 * turn,
        _ => 5 * turn,
    };
    let title = "`mean_of` leaks 5.08 MiB an iteration of line 2";
    check(&of_name(300, with_holes), Some((title, Severity::Critical)));
    check(&of_name(150, with_holes), None);
    // The graph of the last iteration comes at once.
    let at_once = |turn: u64| 280 * turn.min(1) + turn % 7;
    check(&of_name(300, at_once), None);
}

#[test]
fn the_output_of_the_last_and_largest_batch_is_no_growth() {
    let of_statement = |statement: &str| {
        let cell = format!("for xs in all:\n    for x in xs:\n        {statement}");
        let mut recording = nested((&cell, run(480)), (1, 60), |_, turn| 300 + 8 * turn);
        let out = holder((RootKind::Variable, "out", "Tensor"), (480, 470, 1));
        let path = out.name.clone();
        look_at(&mut recording, None, Holder { path, ..out });
        recording
    };
    check(&of_statement("out = net(x)"), None);
    let title = "`out` leaks 8 MiB an iteration of line 2";
    let carried = of_statement("out = net(x, out)");
    check(&carried, Some((title, Severity::Critical)));
}

#[test]
fn the_graph_of_a_call_under_way_is_no_growth() {
    let found = |function: &str, of_loop: &str, n_tensors: u64| {
        let cell =
            "def fit():\n    for x in xs:\n        total = total + f(x)\nfor x in xs:\n    net(x)";
        let mut recording = nested((cell, run(480)), (1, 60), |_, turn| 8 * turn);
        reopen(&mut recording);
        for idx in 0..2 {
            let counted = recording.loops(RunIdx(0)).nth(idx);
            let mut counted = counted.expect("there are two").clone();
            of_loop.clone_into(&mut counted.function);
            let frame = Frame::Loop(Box::new(counted));
            recording.apply(frame).expect("it is known");
        }
        let name = format!("total in {function}()");
        let local = (RootKind::ThreadFrame, &*name, "Tensor");
        let at = recording.run(RunIdx(0)).started;
        look(&mut recording, Some(at), local, (480, 470, n_tensors));
        let analysis = analyze(&recording, &Rules::default());
        let mut found = analysis.findings.iter();
        found.any(|it| it.severity == Severity::Critical)
    };
    assert!(!found("forward", "<module>", 1));
    assert!(!found("forward", "fit", 1));
    // The loop's own function keeps it until the loop ends, as does a generator what it collects.
    assert!(found("fit", "fit", 1));
    assert!(found("load", "<module>", 12));
}

#[test]
fn what_is_made_below_the_loop_is_not_collected_in_it() {
    let of_rest = |rest: &str| {
        let cell = format!("for xs in all:\n    for x in xs:\n        kept.append(f(x))\n{rest}");
        let mut recording = nested((&cell, run(480)), (1, 60), |_, turn| 8 * turn);
        look(
            &mut recording,
            None,
            (RootKind::Variable, "df", "DataFrame"),
            (480, 0, 6),
        );
        recording
    };
    check(&of_rest("df = concat(kept)"), None);
    let title = "`df` collects 8 MiB an iteration of line 2";
    check(&of_rest("show(df)"), Some((title, Severity::Info)));
}

#[test]
fn what_threads_of_a_run_collect_may_be_meant_until_it_ends() {
    let found = |inside: bool| {
        let mut recording = nested((CELL, run(480)), (1, 60), |_, turn| 8 * turn);
        let at = recording.run(RunIdx(0)).started;
        let tasks = (RootKind::ThreadFrame, "worker() in 3 threads", "list");
        look(&mut recording, inside.then_some(at), tasks, (480, 0, 60));
        let analysis = analyze(&recording, &Rules::default());
        let mut found = analysis.findings.iter();
        found.any(|it| it.severity == Severity::Critical)
    };
    assert!(!found(true));
    assert!(found(false));
}

#[test]
fn a_run_without_loops_is_judged_by_the_second() {
    let by_the_second = |type_name: &str, seconds: u64| {
        let play = run(480).seconds(seconds);
        let (mut recording, _) = session(&[("train(kept)", &[play])]);
        let begun = recording.run(RunIdx(0)).started.get();
        let sample = |n: u64| Sample {
            at: Nanos::new(begun + n * seconds * 1_000_000),
            ordinal: n,
            // More than the name has: the driver's level has the cache, too.
            allocated: Some(Bytes::mib(300 + n * 600 / 1000 + n % 7)),
            ..Sample::default()
        };
        let samples = Samples {
            run: RunIdx(0),
            device: DeviceIdx(0),
            series: Series::Sampled,
            points: (0..1000).map(sample).collect(),
        };
        recording.apply(Frame::Samples(samples)).expect("it fits");
        look(
            &mut recording,
            None,
            (RootKind::Variable, "kept", type_name),
            (480, 240, 12),
        );
        recording
    };
    let title = "`kept` leaks 16 MiB a second";
    check(
        &by_the_second("list", 30),
        Some((title, Severity::Critical)),
    );
    check(&by_the_second("list", 5), None);
    // A model is loaded part by part.
    check(&by_the_second("LlamaForCausalLM", 30), None);
}

#[test]
fn memory_of_a_returned_function_is_reported() {
    let mut recording = nested((CELL, run(0)), (1, 60), |_, turn| 8 * turn);
    check(&recording, None);
    look_inside(&mut recording, "made in stream()", 240);
    let title = "`made` grew 8 MiB an iteration of line 2";
    check(&recording, Some((title, Severity::Info)));
}

#[test]
fn a_look_inside_of_a_run_tells_what_none_after_it_could() {
    let mut recording = nested((CELL, run(480)), (1, 60), |_, turn| 8 * turn);
    look_inside(&mut recording, "kept", 240);
    check(&recording, LEAK);
}

#[test]
fn little_that_a_function_gave_back_is_no_growth() {
    let mut recording = nested((CELL, run(0)), (1, 7), |_, turn| 8 * turn);
    look_inside(&mut recording, "made in collected()", 240);
    check(&recording, None);
}

/// The run has not ended.
fn reopen(recording: &mut Recording) {
    let mut run = recording.run(RunIdx(0)).clone();
    run.ended = None;
    recording.apply(Frame::Run(run)).expect("it is known");
}

#[test]
fn a_possibly_intended_loop_is_forecast_after_a_part() {
    let forecast = |n_turns: u64| {
        let meant =
            "for xs in all:\n  for x in xs:\n    kept.append(f(x))\nresult = torch.cat(kept)";
        let grown = i64::try_from(16 * n_turns).expect("it is little");
        let play = run(grown).held_by("kept", "list");
        let mut recording = nested((meant, play), (1, n_turns), |_, turn| 16 * turn);
        reopen(&mut recording);
        let found = recording.holders(RunIdx(0), DeviceIdx(0)).cloned();
        let found = found.expect("it was looked at");
        let started = recording.run(RunIdx(0)).started;
        testing::look(&mut recording, RunIdx(0), Some(started), found);
        let analysis = analyze(&recording, &Rules::default());
        gpumem_report::forecast_line(&recording, &analysis, RunIdx(0), 100)
    };
    let (severity, line) = forecast(60).expect("it fills the device");
    assert!(line.starts_with("○ kept +16 MiB"), "{line}");
    assert_eq!(severity, Severity::Info);
    assert_eq!(forecast(9), None);
}

#[test]
fn a_loop_that_goes_on_is_judged_once_a_look_tells_who_grows() {
    let mut recording = nested(leaking(), (1, 60), |_, turn| 8 * turn);
    reopen(&mut recording);
    let mut looked_at = recording.clone();
    look_inside(&mut looked_at, "kept", 480);
    check(&looked_at, LEAK);
    let findings = analyze(&recording, &Rules::default()).findings;
    let is_growth = |kind: FindingKind| matches!(kind, FindingKind::Leak | FindingKind::Growing);
    assert!(
        !findings
            .iter()
            .any(|it| is_growth(it.kind) && it.in_loop().is_some())
    );
}
