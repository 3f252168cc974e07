use super::*;
use crate::testing::{Play, look, run, session};
use crate::{Finding, FindingKind, Rules, analyze};
use gpumem_model::holders::NameLevel;

/// After each run, one name with this many storages of 1 MiB.
fn followed(cells: &[(&str, &[Play])], levels_mib: &[u64]) -> Vec<Finding> {
    let (mut recording, _) = session(cells);
    let mut known = 0;
    for (run, level) in recording.runs().to_vec().iter().zip(levels_mib) {
        let n_bytes = Bytes::mib(*level);
        let changed = (n_bytes.get() != known).then_some(("losses", *level, *level));
        known = n_bytes.get();
        let holders = DeviceHolders {
            device: "sim:0".to_owned(),
            n_bytes: n_bytes.max(Bytes::mib(1)),
            changed: changed.into_iter().map(self::level).collect(),
            ..DeviceHolders::default()
        };
        look(&mut recording, run.idx, None, holders);
    }
    analyze(&recording, &Rules::default()).findings
}

fn level((name, mib, n_storages): (&str, u64, u64)) -> NameLevel {
    NameLevel {
        kind: RootKind::Variable,
        name: name.to_owned(),
        n_bytes: Bytes::mib(mib),
        n_storages,
    }
}

/// The names after looks that found these levels changed.
fn looked_at<'a>(
    recording: &'a Recording,
    looks: impl IntoIterator<Item = (u32, Vec<(&'a str, u64, u64)>)>,
) -> OfDevice {
    let mut names = OfDevice::default();
    for (run, levels) in looks {
        let look = DeviceHolders {
            n_bytes: Bytes::mib(1),
            changed: levels.into_iter().map(level).collect(),
            ..DeviceHolders::default()
        };
        names.take_in(recording, RunIdx(run), &look);
    }
    names
}

/// The names that grow by more than a limit in MiB.
fn growing(recording: &Recording, names: OfDevice, least_mib: u64) -> Vec<String> {
    let names = NameHistory {
        of_devices: vec![names],
    };
    let least = (Bytes::mib(1), Bytes::mib(least_mib));
    let growing = names.growing(recording, DeviceIdx(0), least, None);
    let names = growing.into_iter().flat_map(|it| it.names);
    names.map(|((_, name), _)| name).collect()
}

/// After each of these runs of one cell, what an object has, and one of its attributes: MiB.
fn told_of(text: &str, branch: &str, levels_mib: &[(u64, u64)]) -> Vec<String> {
    let runs = vec![run(1); levels_mib.len()];
    let (recording, _) = session(&[(text, &runs)]);
    let looks = (0..).zip(levels_mib).map(|(run, &(whole, part))| {
        let levels = [("trainer", whole), (branch, part)];
        (run, levels.map(|(name, mib)| (name, mib, mib / 8)).to_vec())
    });
    growing(&recording, looked_at(&recording, looks), 1)
}

/// Whether a name with few looks, by MiB and storages after each of a cell's runs, is reported.
#[track_caller]
fn check_little(looks: &[(u32, u64, u64)], expected: bool) {
    let (recording, _) = session(&[("kept.append(f(x))", &vec![run(1); 12])]);
    let looks = looks
        .iter()
        .map(|&(run, mib, n)| (run, vec![("kept", mib, n)]));
    let found = growing(&recording, looked_at(&recording, looks), 64);
    assert_eq!(!found.is_empty(), expected, "{found:?}");
}

#[test]
fn little_counts_if_each_run_adds_a_storage() {
    check_little(&[(0, 1, 1), (1, 2, 2), (2, 3, 3), (3, 4, 4)], true);
    // Of some runs there is no look.
    check_little(&[(0, 1, 1), (1, 2, 2), (4, 5, 5), (5, 6, 6)], true);
    check_little(&[(0, 1, 1), (1, 2, 2), (4, 3, 3), (5, 4, 4)], false);
    check_little(&[(0, 1, 1), (1, 2, 2), (2, 2, 1), (3, 3, 3)], false);
    check_little(&[(0, 1, 1), (1, 80, 2), (4, 90, 3), (5, 99, 4)], true);
}

#[test]
fn a_branch_that_grows_alone_or_in_a_shrinking_object_is_named() {
    let n = || 0..12_u64;
    let beside_noise: Vec<(u64, u64)> = n().map(|n| (8 * n + 64 * (n % 3), 8 * n)).collect();
    let alone: Vec<(u64, u64)> = n().map(|n| (96 + 8 * n, 8 * n)).collect();
    let moved: Vec<(u64, u64)> = n().map(|n| (96 - n % 2, 8 * n)).collect();
    let history = |levels| told_of("trainer.fit()", "trainer.history", levels);
    assert_eq!(history(&beside_noise), ["trainer.history"]);
    assert_eq!(history(&alone), ["trainer.history"]);
    assert_eq!(history(&moved), [""; 0]);
    // What a library calls its own is its object, but where a cell has written it.
    let own = |text| told_of(text, "trainer._blocks", &alone);
    assert_eq!(own("trainer.fit()"), ["trainer"]);
    assert_eq!(own("trainer._blocks.append(x)"), ["trainer._blocks"]);
}

/// After each run of such a cell, the numbered names that changed, with their MiB.
#[track_caller]
fn check_one(looks: &[(&str, &[(&str, u64)])], expected: bool) {
    let run = [run(1)];
    let cells: Vec<(&str, &[Play])> = looks.iter().map(|(cell, _)| (*cell, &run[..])).collect();
    let (recording, _) = session(&cells);
    let looks = (0..).zip(looks).map(|(run, (_, levels))| {
        let levels = levels.iter().map(|&(name, mib)| (name, mib, mib / 8));
        (run, levels.collect())
    });
    let names = looked_at(&recording, looks);
    assert_eq!(names.are_one("b…"), expected);
}

#[test]
fn numbered_names_of_one_cell_are_one_unless_one_grows() {
    let (first, second) = (("b1", 16), ("b2", 16));
    check_one(&[("make()", &[first]), ("make()", &[second])], true);
    check_one(&[("make()", &[first]), ("remake()", &[second])], false);
    check_one(&[("make()", &[first])], false);
    let trained = ("train()", &[("b1", 32)][..]);
    check_one(
        &[("make()", &[first]), trained, ("make()", &[second])],
        true,
    );
    check_one(
        &[("make()", &[first]), ("make()", &[("b1", 32), second])],
        false,
    );
    // Two lists that one run fills.
    check_one(&[("make()", &[first, second])], false);
    check_one(&[("make()", &[("b1", 8), ("b2", 8)])], true);
    // A recording from before names were followed one by one.
    check_one(&[("make()", &[("b…", 8)])], true);
}

#[test]
fn the_branches_that_gained_nearly_all_are_what_grows() {
    let check = |gains: &[(&'static str, i64, usize)], of_object: i64, expected: &[&str]| {
        let gain = |(name, gained, n_grown): &(&'static str, i64, usize)| BranchGain {
            name,
            gained: ByteDelta::new(*gained),
            n_grown: *n_grown,
        };
        let gains = gains.iter().map(gain).collect();
        let main = main_branches(gains, ByteDelta::new(of_object));
        assert_eq!(main.iter().map(|it| it.name).collect::<Vec<_>>(), expected);
    };
    check(&[("a.w", 0, 0), ("a.logs", 100, 9)], 100, &["a.logs"]);
    check(
        &[("a.x", 30, 9), ("a.logs", 70, 9)],
        100,
        &["a.logs", "a.x"],
    );
    check(&[("a.x", 4, 9), ("a.logs", 96, 9)], 100, &["a.logs"]);
    // What grew once is no growth, and what no branch has is the object's.
    check(&[("a.x", 90, 1), ("a.logs", 70, 9)], 160, &["a.logs"]);
    check(&[("a.logs", 70, 9)], 100, &[]);
    check(&[("a.w", -60, 0), ("a.logs", 70, 9)], 10, &["a.logs"]);
}

fn rounds<'a>(cells: &[(&'a str, Play)], n: usize) -> Vec<(&'a str, Vec<Play>)> {
    let round = |_| cells.iter().map(|(text, play)| (*text, vec![play.clone()]));
    (0..n).flat_map(round).collect()
}

#[track_caller]
fn check(cells: &[(&str, Vec<Play>)], levels_mib: &[u64], expected: &[&str]) {
    let cells: Vec<(&str, &[Play])> = cells.iter().map(|(text, it)| (*text, &**it)).collect();
    let found = followed(&cells, levels_mib);
    let grow = found.iter().filter(|it| it.kind != FindingKind::Settled);
    let shown: Vec<String> = grow.map(crate::testing::facts).collect();
    assert_eq!(shown, expected);
}

#[test]
fn a_name_that_grows_in_the_noise_is_found() {
    let noise = [90, -80, 40, 60, -100, 20, -30, 80, -70, 10, 50, -60];
    let kept: Vec<Play> = noise.into_iter().map(run).collect();
    let mut cells = vec![("losses = []", vec![run(1)])];
    cells.extend(
        kept.into_iter()
            .map(|play| ("losses.append(f())", vec![play])),
    );
    let levels: Vec<u64> = (0..13).map(|n| 8 * n).collect();
    check(
        &cells,
        &levels,
        &[
            "growing: losses.append(f()) · 8 MiB a run in 12 of 12, 96 in all · full in 1899 · losses",
        ],
    );
}

#[test]
fn runs_after_which_a_look_was_missed_do_not_lower_the_rate() {
    let check = |last: [i64; 2], expected: &str| {
        let noise = [90, -80, 40, 60, -100, 20, -30, 80, -70, 10];
        let kept = noise.into_iter().chain(last);
        let mut cells = vec![("losses = []", vec![run(1)])];
        cells.extend(kept.map(|mib| ("losses.append(f())", vec![run(mib)])));
        let levels: Vec<u64> = (0..=10).map(|n| 8 * n).collect();
        check(&cells, &levels, &[expected]);
    };
    check(
        [50, -30],
        "growing: losses.append(f()) · 8 MiB a run in 10 of 10, 80 in all · full in 1902 · losses",
    );
    check(
        [50, -60],
        "growing: losses.append(f()) · 8 MiB a run in 10 of 12, 80 in all · full in 1899 · losses",
    );
}

#[test]
fn a_name_that_is_emptied_begins_anew() {
    let fill = ("losses.append(f())", run(200));
    let empty = ("losses = []", run(-1800));
    let mut cells = vec![("import f", vec![run(1)])];
    for _ in 0..2 {
        cells.extend(rounds(std::slice::from_ref(&fill), 9));
        cells.extend(rounds(std::slice::from_ref(&empty), 1));
    }
    cells.extend(rounds(std::slice::from_ref(&fill), 9));
    let round = |_| (1..=9).map(|n| 200 * n).chain([0]);
    let levels: Vec<u64> = std::iter::once(0).chain((0..3).flat_map(round)).collect();
    let of_third =
        "leak: losses.append(f()) · 200 MiB a run in 9 of 9, 1800 in all · full in 67 · losses";
    check(&cells, &levels, &[of_third]);
}

#[test]
fn what_the_cell_empties_itself_has_a_bound() {
    let mut cells = vec![("import f", vec![run(1)])];
    cells.extend(rounds(&[("window.append(f())", run(200))], 10));
    cells.extend(rounds(&[("window.append(f())", run(-1800))], 1));
    cells.extend(rounds(&[("window.append(f())", run(200))], 9));
    let levels: Vec<u64> = (0..=10).chain(1..=10).map(|n| 200 * n).collect();
    check(&cells, &levels, &[]);
}
