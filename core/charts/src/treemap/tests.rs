use proptest::prelude::*;

use super::super::view;
use super::*;
use gpumem_analyzer::analyze;
use gpumem_analyzer::testing::{look, run, session};
use gpumem_model::holders::{
    DeviceHolders, Holder, HolderBranch, Remainder, RootKind, SharedMemory, StorageUse, Traits,
};
use gpumem_model::recording::RunIdx;
use gpumem_model::rules::Rules;
use gpumem_model::units::Bytes;
use gpumem_scene::draw_log::{assert_sound, texts};

/// A variable of this size in MiB with these branches.
fn name(name: &str, n_mib: u64, steps: &[(&str, u64)]) -> Holder {
    let branch = |(step, n_mib): &(&str, u64)| HolderBranch {
        step: (*step).to_owned(),
        what: "tensor".to_owned(),
        n: 1,
        n_bytes: Bytes::mib(*n_mib),
        branches: Vec::new(),
        more: Remainder::default(),
    };
    Holder {
        grown: Some(ByteDelta::new(1 << 20)),
        path: format!("{name}[0]"),
        what: "list".to_owned(),
        traits: Traits {
            part: Some(StorageUse::Names),
            ..Traits::default()
        },
        branches: steps.iter().map(branch).collect(),
        ..Holder::new(RootKind::Variable, name, Bytes::mib(n_mib))
    }
}

/// A look after each run.
fn looked(looks: &[Vec<Holder>]) -> Recording {
    let plays = vec![run(10); looks.len()];
    let (mut recording, _) = session(&[("a()", &plays)]);
    for (idx, roots) in (0..).zip(looks) {
        let holders = DeviceHolders {
            roots: roots.clone(),
            ..DeviceHolders::default()
        };
        look(&mut recording, RunIdx(idx), None, holders);
    }
    recording
}

fn seen(moment: Moment, inside: &[&str]) -> ChartView {
    ChartView {
        moment,
        inside: inside.iter().map(|name| (*name).to_owned()).collect(),
        ..view(880.0)
    }
}

fn drawn(recording: &Recording, view: &ChartView) -> Scene {
    treemap(recording, &analyze(recording, &Rules::default()), view)
}

#[track_caller]
fn check(looks: &[Vec<Holder>], view: &ChartView, expected: &[(&str, &str)]) {
    let recording = looked(looks);
    let map = holder_map(&recording, view).expect("somebody looked");
    let figures: Vec<String> = map
        .fields
        .iter()
        .map(|field| field.figure(Units::Binary))
        .collect();
    let fields = map.fields.iter().map(|field| field.name.as_str());
    let found: Vec<(&str, &str)> = fields.zip(figures.iter().map(String::as_str)).collect();
    assert_eq!(found, expected);
    assert_sound(&drawn(&recording, view));
}

#[test]
fn each_name_has_its_field() {
    let looks = [vec![name("kept", 30, &[]), name("x", 90, &[])]];
    let fields = &[("x", "90 MiB"), ("kept", "30 MiB")];
    check(&looks, &seen(Moment::After, &[]), fields);
    // Without a look before there is no change.
    check(&looks, &seen(Moment::Change, &[]), fields);
}

#[test]
fn a_field_is_entered_by_its_name() {
    let looks = [vec![name("kept", 30, &[("[0]", 20), ("[1]", 10)])]];
    let inside = &[("[0]", "20 MiB"), ("[1]", "10 MiB")];
    check(&looks, &seen(Moment::After, &["kept"]), inside);
    // What is not there, and what holds nothing, is not entered.
    check(&looks, &seen(Moment::After, &["kept", "[0]"]), inside);
    let whole = &[("kept", "30 MiB")];
    check(&looks, &seen(Moment::After, &["lost"]), whole);
}

#[test]
fn a_field_that_only_says_the_same_again_is_not_entered() {
    let looks = [vec![name("kept", 30, &[("[0] … [9]", 30)])]];
    let whole = &[("kept", "30 MiB")];
    check(&looks, &seen(Moment::After, &["kept"]), whole);
    let mut nested = name("kept", 30, &[("[0]", 30)]);
    nested.branches[0].branches = name("", 0, &[(".data", 30)]).branches;
    check(&[vec![nested]], &seen(Moment::After, &["kept"]), whole);
}

#[test]
fn a_step_has_a_path_that_python_understands() {
    let recording = looked(&[vec![name("kept", 30, &[("[0]", 20), (".<inside>", 9)])]]);
    let map = holder_map(&recording, &seen(Moment::After, &["kept"])).expect("somebody looked");
    let paths: Vec<&str> = map.fields.iter().map(|field| &*field.path).collect();
    assert_eq!(paths, ["kept[0]", ""]);
}

#[test]
fn a_map_shows_before_after_and_change() {
    let before = vec![name("old", 50, &[]), name("x", 90, &[])];
    let after = vec![name("new", 5, &[("[0]", 5)]), name("x", 110, &[])];
    let looks = [before, after];
    let held = &[("x", "110 MiB"), ("new", "5 MiB")];
    check(&looks, &seen(Moment::After, &[]), held);
    let held = &[("x", "90 MiB"), ("old", "50 MiB")];
    check(&looks, &seen(Moment::Before, &[]), held);
    let changed = &[("old", "−50 MiB"), ("x", "+20 MiB"), ("new", "+5 MiB")];
    check(&looks, &seen(Moment::Change, &[]), changed);
    let recording = looked(&looks);
    let map = holder_map(&recording, &seen(Moment::Change, &[])).expect("somebody looked");
    assert_eq!(map.total(Units::Binary), "−25 MiB");
}

#[test]
fn fields_of_a_name_show_their_own_change() {
    let looks = [
        vec![name(
            "model",
            30,
            &[(".weight", 10), (".optimizer", 15), (".best", 5)],
        )],
        vec![name(
            "model",
            55,
            &[(".weight", 10), (".optimizer", 38), (".log", 7)],
        )],
    ];
    let changed = &[
        (".optimizer", "+23 MiB"),
        (".log", "+7 MiB"),
        (".best", "−5 MiB"),
    ];
    check(&looks, &seen(Moment::Change, &["model"]), changed);
    let held = &[
        (".optimizer", "15 MiB"),
        (".weight", "10 MiB"),
        (".best", "5 MiB"),
    ];
    check(&looks, &seen(Moment::Before, &["model"]), held);
}

#[test]
fn several_alike_are_the_same_when_there_are_more_of_them() {
    let list = |n: u64, step: &str| {
        let mut kept = name("kept", 10 * n + 1, &[(step, 10 * n), (".first", 1)]);
        kept.branches[0].n = n;
        vec![kept]
    };
    let looks = [list(1, "[0]"), list(3, "[0] … [2]")];
    let mut grown = looks.clone();
    grown[1][0].branches[1].n_bytes = Bytes::mib(2);
    let changed = &[("[0] … [2]", "+20 MiB"), (".first", "+1 MiB")];
    check(&grown, &seen(Moment::Change, &["kept"]), changed);
}

#[test]
fn what_one_look_sums_up_is_held_against_the_sum() {
    // The look before keeps six of what a name held.
    let steps: Vec<String> = (0..8).map(|idx| format!(".layer_{idx}")).collect();
    let of = |n_mib: u64| -> Vec<(&str, u64)> {
        let sizes = (0..8).map(|idx| n_mib + 20 - idx);
        steps.iter().map(String::as_str).zip(sizes).collect()
    };
    let looks = [
        vec![name("model", 132, &of(0))],
        vec![name("model", 140, &of(1))],
    ];
    let changed = [
        ("and more", "+2 MiB"),
        (".layer_0", "+1 MiB"),
        (".layer_1", "+1 MiB"),
        (".layer_2", "+1 MiB"),
        (".layer_3", "+1 MiB"),
        (".layer_4", "+1 MiB"),
        (".layer_5", "+1 MiB"),
    ];
    check(&looks, &seen(Moment::Change, &["model"]), &changed);
}

#[test]
fn an_older_run_shows_only_growth() {
    let looks = [10, 20, 30].map(|n_mib| vec![name("x", n_mib, &[("[0]", n_mib)])]);
    let first = ChartView {
        selected: [RunIdx(0)].into(),
        ..seen(Moment::After, &[])
    };
    check(&looks, &first, &[("x", "+1 MiB")]);
    let recording = looked(&looks);
    assert_eq!(
        holder_map(&recording, &first).map(|map| map.run),
        Some(RunIdx(0))
    );
}

#[test]
fn what_nobody_looked_at_is_said() {
    let (recording, _) = session(&[("a()", &[run(10)])]);
    let scene = drawn(&recording, &view(880.0));
    assert!(texts(&scene)[0].starts_with("who holds sim:0 is not known"));
}

#[test]
fn a_field_has_the_colour_of_what_it_is_for() {
    let recording = looked(&[vec![name("x", 9, &[])]]);
    let mut field = holder_map(&recording, &view(880.0)).expect("a look").fields[0].clone();
    let colours = Colours {
        moment: Moment::After,
        alarm: None,
        units: Units::Binary,
    };
    assert_eq!(colours.role(&field), Role::Category(Category::Names));
    field.part = Some(StorageUse::Gradients);
    assert_eq!(colours.role(&field), Role::Category(Category::Gradients));
}

#[test]
fn what_leaks_has_the_colour_of_its_row() {
    let leaking = vec![run(420).held_by("losses", "list"); 12];
    let (recording, _) = session(&[("a()", &leaking)]);
    let has = |view: &ChartView, role: Role| {
        let scene = drawn(&recording, view);
        scene.items.iter().any(|it| it.role() == role)
    };
    let after = seen(Moment::After, &[]);
    assert!(has(&after, Role::Leak));
    assert!(!has(&after, Role::Category(Category::Names)));
    assert!(!has(&seen(Moment::Change, &[]), Role::Leak));
}

#[test]
fn what_names_share_is_one_field() {
    let shared = SharedMemory {
        names: vec!["model".to_owned(), "best".to_owned()],
        and_others: true,
        n_bytes: Bytes::mib(8),
        path: "model".to_owned(),
        what: "tensor".to_owned(),
        part: None,
    };
    let mut recording = looked(&[vec![]]);
    let holders = DeviceHolders {
        shared: vec![shared],
        more: Remainder {
            n: 3,
            n_bytes: Bytes::mib(1),
        },
        ..DeviceHolders::default()
    };
    look(&mut recording, RunIdx(0), None, holders);
    let map = holder_map(&recording, &view(880.0)).expect("somebody looked");
    let names: Vec<&str> = map.fields.iter().map(|field| &*field.name).collect();
    assert_eq!(names, ["model, best, …", "further names"]);
    assert_eq!(map.n_bytes(), Bytes::mib(9));
}

proptest! {
    #[test]
    fn it_is_sound_at_any_width(
        sizes in prop::collection::vec((1..40_000_u64, "[a-z_]{1,30}"), 1..30),
        steps in prop::collection::vec(1..4000_u64, 0..6),
        width in 160.0..1600.0_f64,
    ) {
        let steps: Vec<(&str, u64)> = steps.iter().map(|n| ("[0].grad_fn", *n)).collect();
        let roots = sizes.iter().map(|(n_mib, text)| name(text, *n_mib, &steps)).collect();
        let recording = looked(&[roots]);
        for moment in [Moment::Before, Moment::After, Moment::Change] {
            let view = ChartView { width, ..seen(moment, &[]) };
            let scene = drawn(&recording, &view);
            assert_sound(&scene);
            prop_assert_eq!(scene.hits.len(), sizes.len());
        }
    }
}
