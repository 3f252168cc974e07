//! What the report says before and beside its findings.

use std::collections::{BTreeMap, HashSet};

use super::holders::held_by;
use super::{NOT_READ, Presentation, Prose, Sign, code, figure, idle, place, prose};
use gpumem_analyzer::{
    Analysis, DeviceSummary, FindingGroup, FindingKind, GrowthVerdict, Peak, RunRow, Withdrawn,
    classify_growth, grew_in_a_loop,
};
use gpumem_model::recording::{
    CellIdx, DeviceIdx, DeviceKind, Recording, Run, RunIdx, Series, Status,
};
use gpumem_model::units::{Bytes, Units, count};

/// A loop or marks of fewer points do not show growth.
const N_STEPS: usize = 5;

/// A holder that has less of it than this share is said with what it has.
const NEARLY_ALL: f64 = 0.9;

/// A run that kept as much of a device, and at least as many bytes, has its holder named.
const MUCH_OF_A_DEVICE: u64 = 100;
const MUCH: Bytes = Bytes::mib(64);

/// Nothing is called fine where growth could not have been seen.
fn calm_sign(recording: &Recording, analysis: &Analysis) -> Sign {
    if recording.runs().is_empty() {
        Sign::Note
    } else if died_in(recording).is_some() {
        Sign::Watch
    } else if !grows(analysis) && shows_growth(recording, analysis) {
        Sign::Fine
    } else {
        Sign::Note
    }
}

/// Something grows of which it is not known whether it leaks.
fn grows(analysis: &Analysis) -> bool {
    let mut kinds = analysis.findings.iter().map(|it| it.kind);
    kinds.any(|kind| kind == FindingKind::Growing)
        || grew_inside(analysis)
        || known_leaks(analysis) > 0
}

/// Findings for which a library is known, but those that have ended.
fn known_leaks(analysis: &Analysis) -> usize {
    let findings = analysis.findings.iter();
    let known = findings.filter(|it| it.known_leak.is_some());
    let goes_on = known.filter(|it| {
        it.withdrawn.is_none() && it.state.is_none_or(|it| it != GrowthVerdict::Stable)
    });
    goes_on.count()
}

/// Something came again, so that growth would have been seen: a cell, a block, marked steps, or a loop whose
/// levels were read. A loop that grew by much of which no finding tells shows nothing.
fn shows_growth(recording: &Recording, analysis: &Analysis) -> bool {
    let mut seen = HashSet::new();
    let mut runs = recording.runs().iter();
    let mut series = recording.all_samples();
    let mut rows = analysis.rows.iter();
    if rows.any(|row| grew_much_in_a_loop(recording, analysis, row)) || grew_inside(analysis) {
        return false;
    }
    runs.any(|run| !seen.insert((run.revision, run.parent.is_some().then_some(&run.label))))
        || series.any(|(run, device, series, points)| match series {
            Series::Sampled => false,
            Series::Marked(_) => points.len() > N_STEPS,
            Series::Loop(_) => {
                let is_counted = points.len() > N_STEPS && recording.run(run).ended.is_some();
                is_counted && !kept_beside_its_loops(analysis, run, device)
            }
        })
}

/// A run kept much that no loop of it was seen to keep: most of one may have been over before it was counted.
fn kept_beside_its_loops(analysis: &Analysis, run: RunIdx, device: DeviceIdx) -> bool {
    let row = analysis.row(run, device);
    row.and_then(RunRow::kept_alone)
        .is_some_and(|kept| kept >= MUCH.since(Bytes::ZERO))
}

/// A loop grew by much of what its run kept.
fn grew_much_in_a_loop(recording: &Recording, analysis: &Analysis, row: &RunRow) -> bool {
    let kept = row.kept_alone().unwrap_or_default();
    has_kept_much(analysis, row) && grew_in_a_loop(recording, row, false)
        || kept >= MUCH.since(Bytes::ZERO) && grew_in_a_loop(recording, row, true)
}

/// A function kept much until it returned.
fn grew_inside(analysis: &Analysis) -> bool {
    let mut findings = analysis.findings.iter();
    findings.any(|it| it.withdrawn == Some(Withdrawn::Returned))
}

/// A run kept much of its device.
fn has_kept_much(analysis: &Analysis, row: &RunRow) -> bool {
    let device = analysis.summary(row.device);
    let capacity = device.and_then(|it| it.capacity);
    let share = capacity.map_or(0, |it| it.get() / MUCH_OF_A_DEVICE);
    let much = Bytes::new(share).max(MUCH).since(Bytes::ZERO);
    row.kept_alone().is_some_and(|kept| kept >= much)
}

/// A name that holds less than this part of what a run kept is not called its holder.
const MIN_HELD_SHARE: f64 = 0.1;

/// What the one run of a cell kept that kept the most, and who holds it, if that is much of a device.
fn kept_in_one_run(
    recording: &Recording,
    analysis: &Analysis,
    device: DeviceIdx,
    units: Units,
) -> Option<String> {
    let is_only = |row: &&RunRow| {
        let run = recording.run(row.run);
        let mut runs = recording.runs().iter();
        run.parent.is_none() && runs.all(|it| it.idx == run.idx || it.cell != run.cell)
    };
    let rows = analysis.rows.iter().filter(|row| row.device == device);
    let kept = rows
        .filter(|row| has_kept_much(analysis, row) || grew_much_in_a_loop(recording, analysis, row))
        .filter(is_only);
    let held = |row: &RunRow| {
        let look = recording.holders(row.run, device)?;
        let all = look.sharing.iter().chain(&look.roots);
        let most = all.max_by_key(|it| it.grown)?;
        let share = most.grown?.as_f64() / row.kept_alone()?.as_f64();
        (share >= MIN_HELD_SHARE).then_some((most, share))
    };
    // Of libraries that are imported nobody knows who holds what.
    let row = kept.max_by_key(|row| (held(row).is_some(), row.kept_alone()))?;
    let held = held(row).map(|(holder, share)| match holder.grown {
        Some(grown) if share < NEARLY_ALL => {
            let part = units.size(grown.magnitude());
            format!(", {part} of it {}", held_by(holder))
        }
        _ => format!(", {}", held_by(holder)),
    });
    let place = place(" of ", recording.run(row.run).execution_count);
    let kept = units.change(row.kept_alone()?);
    let (what, unnamed) = if grew_much_in_a_loop(recording, analysis, row) {
        ("in a loop", ", but no name was found that holds it")
    } else {
        ("in one run", "")
    };
    let is_looked_at = recording.holders(row.run, device).is_some();
    let unnamed = if is_looked_at { unnamed } else { "" };
    let held = held.as_deref().unwrap_or(unnamed);
    Some(format!("{kept} {what}{place}{held}"))
}

/// The largest growth of a cell on the host, if it is too small to distinguish from the host's own changes.
fn grew_within_noise(
    recording: &Recording,
    analysis: &Analysis,
    device: DeviceIdx,
    units: Units,
) -> Option<String> {
    let rules = &recording.header().rules;
    let noise = recording.device(device).kind.min_growth(rules);
    let is_host = recording.device(device).kind == DeviceKind::Host;
    let mut of_cells: BTreeMap<CellIdx, Vec<&RunRow>> = BTreeMap::new();
    let rows = analysis
        .rows
        .iter()
        .filter(|row| is_host && row.device == device);
    for row in rows {
        let run = recording.run(row.run);
        if run.parent.is_none() {
            of_cells.entry(run.cell).or_default().push(row);
        }
    }
    let grown = of_cells.into_values().filter_map(|rows| {
        let mut kept = 0;
        let levels = rows.iter().map(|row| {
            kept += row.kept_alone().unwrap_or_default().get();
            Bytes::new(kept.max(0).unsigned_abs())
        });
        let levels: Vec<Bytes> = levels.collect();
        let growth = classify_growth(&levels, rules.min_growth, rules);
        let last = rows.last()?.run;
        (growth.state == GrowthVerdict::Leak).then_some((*levels.last()?, last, levels.len()))
    });
    let (kept, run, n_runs) = grown.max_by_key(|(kept, ..)| *kept)?;
    let place = place(" up to ", recording.run(run).execution_count);
    (kept < noise).then(|| {
        let (kept, noise) = (units.size(kept), units.size(noise));
        format!(
            "{n_runs} runs{place} kept {kept} together, less than the {noise} by which the host's memory may grow by itself"
        )
    })
}

/// The run in which the kernel died.
fn died_in(recording: &Recording) -> Option<&Run> {
    let mut runs = recording.runs().iter();
    runs.rfind(|run| run.parent.is_none())
        .filter(|run| run.status == Status::Died)
}

/// The conclusion of a session in which nothing needs to be changed, on a device.
pub fn healthy(
    recording: &Recording,
    analysis: &Analysis,
    device: DeviceIdx,
    units: Units,
) -> Presentation {
    let (title, outlook) = conclusion(recording, analysis, device, units);
    Presentation {
        sign: calm_sign(recording, analysis),
        ..Presentation::new(title, outlook)
    }
}

fn conclusion(
    recording: &Recording,
    analysis: &Analysis,
    device: DeviceIdx,
    units: Units,
) -> (String, Prose) {
    if recording.runs().is_empty() {
        let outlook = prose![
            "Put ",
            code("%%gpumem"),
            " above a cell and run it, or run ",
            code("%gpumem on"),
            " to record every cell."
        ];
        return ("Nothing is recorded yet".to_owned(), outlook);
    }
    let summary = analysis.summary(device);
    let died = died_in(recording);
    let levels = summary.map(|it| levels(recording, analysis, it, died.is_some(), units));
    let levels = levels.unwrap_or_default();
    if let Some(run) = died {
        let place = place(" in ", run.execution_count);
        let row = analysis.row(run.idx, device);
        let grown = row.and_then(|row| Some(row.so_far?.saturating_sub(row.before?)));
        let grown = grown.filter(|grown| *grown > Bytes::ZERO);
        let mut outlook = Prose::default();
        if let Some(grown) = grown {
            outlook = prose!["It had grown by ", figure(units.size(grown)), ". "];
        }
        outlook += levels;
        return (format!("The kernel died{place}"), outlook);
    }
    let n_known = known_leaks(analysis);
    if n_known > 0 {
        let known = count(n_known, "known leak");
        return (format!("{known} so far"), levels);
    }
    if grows(analysis) {
        return ("No leak so far".to_owned(), levels);
    }
    let levels = match grew_within_noise(recording, analysis, device, units) {
        Some(grown) => prose![grown, ". ", levels],
        None => levels,
    };
    let kept = kept_in_one_run(recording, analysis, device, units);
    match (shows_growth(recording, analysis), kept) {
        (true, None) => ("Nothing grows".to_owned(), levels),
        (true, Some(kept)) => ("Nothing grows".to_owned(), prose![kept, ". ", levels]),
        (false, Some(kept)) => (kept, levels),
        (false, None) => (
            "Every cell ran once".to_owned(),
            prose![
                "Growth shows when a cell runs again, or in a loop. ",
                levels
            ],
        ),
    }
}

/// `5.8 GiB of 16 GiB in use, 4.9 GiB of it allocated. The highest peak was 8.7 GiB, in In [31]; 7.3 GiB were never needed.`
fn levels(
    recording: &Recording,
    analysis: &Analysis,
    summary: &DeviceSummary,
    died: bool,
    units: Units,
) -> Prose {
    let size = |bytes: Bytes| units.size(bytes);
    let mut sentences = Vec::new();
    let narrowest = summary.narrowest();
    let level = narrowest.map(|(_, level)| level);
    let used = summary.limits.first().and_then(|limit| limit.used);
    let idle = idle::sum(analysis.idle_on(summary.device)).filter(|_| !died);
    let idle_part = idle.map_or_else(Prose::default, |(_, n_bytes)| {
        prose![", ", figure(size(n_bytes)), " of it ", NOT_READ]
    });
    // What every process uses has their use in it.
    let is_own = narrowest.is_some_and(|(name, _)| name != "device_used");
    let children = summary
        .children_used
        .filter(|it| is_own && *it > Bytes::ZERO);
    // The figure of the line below a cell, of *Now* and of `%gpumem`.
    let own = level.map(|level| level + children.unwrap_or_default());
    let in_use = used.or(own);
    let children = children.filter(|_| own <= in_use);
    let of_it = |n_bytes: Bytes, what: &str| format!(", {} of it {what}", size(n_bytes));
    let smaller = narrowest.filter(|(_, level)| Some(*level) < in_use);
    let own_part = smaller.map(|(name, level)| match name {
        "process_used" => of_it(level, "by this process"),
        name => of_it(level, name),
    });
    let in_children = children.map(|it| of_it(it, "by child processes"));
    let parts = own_part.unwrap_or_default() + &in_children.unwrap_or_default();
    match (in_use, summary.capacity) {
        (Some(level), Some(capacity)) => {
            let of = format!(" of {} in use{parts}", size(capacity));
            sentences.push(prose![figure(size(level)), of, idle_part, "."]);
        }
        (Some(level), None) => {
            sentences.push(prose![figure(size(level)), format!(" in use{parts}.")]);
        }
        (None, _) => {}
    }
    let rows = analysis
        .rows
        .iter()
        .filter(|row| row.device == summary.device);
    let rows = rows.filter(|row| recording.run(row.run).parent.is_none());
    let low = |row: &RunRow| row.peak.map(Peak::low);
    let highest = rows
        .filter_map(|row| Some((low(row)?, row.run)))
        .reduce(|most, next| if next.0 > most.0 { next } else { most });
    if let Some((peak, run)) = highest {
        let place = place(", in ", recording.run(run).execution_count);
        let cache = summary.cached().unwrap_or_default();
        let known = summary.capacity.zip(used).filter(|_| !died);
        let spare = known.map(|(capacity, used)| {
            // What others hold could not have been used.
            let beside = used.saturating_sub(level.unwrap_or_default());
            let beside = beside.saturating_sub(cache);
            let rest = capacity.saturating_sub(peak).saturating_sub(beside);
            format!("; {} were never needed", size(rest))
        });
        sentences.push(prose![
            "The highest peak was ",
            figure(size(peak)),
            place,
            spare.unwrap_or_default(),
            "."
        ]);
    }
    Prose::joined(&sentences, " ")
}

/// What was looked for where nothing was found; growth up to `below` does not count.
pub fn nothing_found(recording: &Recording, below: &str) -> String {
    let labels = recording.devices().iter().map(|device| &*device.label);
    let labels: Vec<&str> = labels.collect();
    let devices = match labels.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    };
    format!(
        "Nothing found. {} on {devices} checked for memory that stays after each run, peaks that \
         stand out, and memory that is free only in pieces; growth below {below} does not count.",
        super::counts(recording)
    )
}

/// A count of findings with one sign, of cells without any, or of names that no cell reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingCount {
    /// In front of the findings.
    pub sign: Sign,
    /// How many there are: `2 warnings`.
    pub words: String,
    /// It counts findings, which can be listed.
    pub is_of_findings: bool,
}

/// How many findings there are of each sign, and how many cells have none; before them, how many names of a device
/// no cell has read for a while.
pub fn tally(
    recording: &Recording,
    analysis: &Analysis,
    device: DeviceIdx,
    verdicts: &[&FindingGroup<'_>],
) -> Vec<FindingCount> {
    // Of a loop that grew by much nobody knows, though no finding tells of it.
    let mut fine_cells = analysis.fine_cells(recording);
    for row in &analysis.rows {
        if grew_much_in_a_loop(recording, analysis, row) {
            let of_row = recording.run(row.run).cell;
            fine_cells.retain(|cell| *cell != of_row);
        }
    }
    let of_sign = |sign: Sign, what: &str| {
        let n = verdicts
            .iter()
            .filter(|verdict| Sign::from(verdict.first()) == sign)
            .count();
        (n > 0).then(|| FindingCount {
            sign,
            words: count(n, what),
            is_of_findings: true,
        })
    };
    let fine = (!fine_cells.is_empty()).then(|| FindingCount {
        sign: Sign::Fine,
        words: format!("{} fine", count(fine_cells.len(), "cell")),
        is_of_findings: false,
    });
    let idle = idle::sum(analysis.idle_on(device)).map(|(n, _)| FindingCount {
        sign: Sign::Note,
        words: format!("{} {NOT_READ}", count(n, "name")),
        is_of_findings: false,
    });
    let all = [
        idle,
        of_sign(Sign::Alert, "alert"),
        of_sign(Sign::Watch, "warning"),
        of_sign(Sign::Note, "note"),
        fine,
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_analyzer::known_leaks::{CATALOGUE, KnownLeak};
    use gpumem_analyzer::testing::{Play, held, run, session};
    use gpumem_analyzer::{Rules, analyze};
    use gpumem_model::recording::{Device, Frame, LoopIdx, Points, Sample};

    #[test]
    fn a_session_that_died_is_not_called_well() {
        let died = run(40).status(Status::Died);
        let (recording, _) = session(&[("f()", &[run(0), died])]);
        let analysis = analyze(&recording, &Rules::default());
        assert_eq!(calm_sign(&recording, &analysis), Sign::Watch);
        let words = healthy(&recording, &analysis, DeviceIdx(0), Units::Binary);
        assert_eq!(words.title.plain(), "The kernel died in In [2]");
        let outlook = words.outlook.plain();
        assert!(!outlook.contains("never needed"), "{outlook}");
    }

    #[track_caller]
    fn check(cells: &[(&str, &[Play])], sign: &str, title: &str) {
        let (recording, _) = session(cells);
        let analysis = analyze(&recording, &Rules::default());
        let words = healthy(&recording, &analysis, DeviceIdx(0), Units::Binary);
        assert_eq!((words.sign.glyph(), &*words.title.plain()), (sign, title));
    }

    #[test]
    fn nothing_grows_only_where_growth_would_have_been_seen() {
        check(&[("f()", &[run(0), run(0)])], "✓", "Nothing grows");
        check(
            &[("f()", &[run(0)]), ("g()", &[run(8)])],
            "○",
            "Every cell ran once",
        );
        let steps = run(0).steps_keeping(&[0; 9]);
        check(
            &[("for x in gpumem.steps(xs): f(x)", &[steps])],
            "✓",
            "Nothing grows",
        );
    }

    #[test]
    fn a_loop_in_a_run_that_kept_much_is_well_only_if_it_was_seen_to_keep_nothing() {
        let check = |kept_mib: i64, loop_mib: u64, expected: [&str; 2]| {
            let (mut recording, _) = session(&[("for x in xs: f(x)", &[run(kept_mib)])]);
            let level = recording.run(RunIdx(0)).levels[0].before.handed_out();
            let points = (1..20).map(|n| Sample {
                ordinal: n,
                allocated: level.map(|it| it.n_bytes + Bytes::mib(n * loop_mib)),
                ..Sample::default()
            });
            let series = Series::Loop(LoopIdx(0));
            let points = points.collect::<Points>();
            let frames = [
                Frame::Loop(Box::default()),
                Frame::samples(RunIdx(0), DeviceIdx(0), series, points),
            ];
            for frame in frames {
                recording.apply(frame).expect("of that run");
            }
            let mut analysis = analyze(&recording, &Rules::default());
            // Its memory has a use, for one.
            analysis.findings.clear();
            let words = healthy(&recording, &analysis, DeviceIdx(0), Units::Binary);
            let tally = tally(&recording, &analysis, DeviceIdx(0), &[]);
            let counted = tally.first().map_or("", |it| &*it.words);
            assert_eq!([&*words.title.plain(), counted], expected);
        };
        check(0, 0, ["Nothing grows", "1 cell fine"]);
        check(100, 0, ["Every cell ran once", "1 cell fine"]);
        check(100, 5, ["+100 MiB in a loop of In [1]", ""]);
    }

    #[test]
    fn the_host_grows_by_itself_up_to_its_noise() {
        let check = |kept_mib: i64, expected: &str| {
            let (mut recording, _) = session(&[("f()", &vec![run(kept_mib); 12])]);
            let host = Device {
                kind: DeviceKind::Host,
                ..recording.devices()[0].clone()
            };
            recording.apply(Frame::Device(host)).expect("it is known");
            let analysis = analyze(&recording, &Rules::default());
            let words = healthy(&recording, &analysis, DeviceIdx(0), Units::Binary);
            let outlook = words.outlook.plain();
            assert_eq!(outlook.split(". ").next(), Some(expected));
        };
        let grown = "12 runs up to In [12] kept 48 MiB together, less than the 64 MiB by which the \
                     host's memory may grow by itself";
        check(4, grown);
        check(0, "1.09 GiB of 16 GiB in use, 0 B of it allocated");
    }

    #[test]
    fn a_known_leak_is_counted_until_it_ends() {
        let (recording, _) = session(&[("auc.update(p, t)", &vec![run(8); 7])]);
        let mut analysis = analyze(&recording, &Rules::default());
        let entry = CATALOGUE.first().expect("there are some");
        analysis.findings[0].known_leak = Some(KnownLeak {
            entry,
            version: None,
        });
        let check = |analysis: &Analysis, title: &str| {
            let words = healthy(&recording, analysis, DeviceIdx(0), Units::Binary);
            assert_eq!(words.title.plain(), title);
        };
        check(&analysis, "1 known leak so far");
        analysis.findings[0].kind = FindingKind::Settled;
        analysis.findings[0].withdrawn = Some(Withdrawn::LetGo);
        check(&analysis, "Nothing grows");
    }

    #[test]
    fn a_run_that_kept_much_names_its_holder() {
        let kept = run(3840).held_by("losses", "list");
        let title = "+3.75 GiB in one run of In [2], held by losses (list of tensors)";
        check(&[("f()", &[run(0)]), ("g()", &[kept])], "○", title);
        let kept = [run(3840).held_by("losses", "list")];
        let (recording, _) = session(&[("f()", &[run(0), run(0)]), ("g()", &kept)]);
        let analysis = analyze(&recording, &Rules::default());
        let words = healthy(&recording, &analysis, DeviceIdx(0), Units::Binary);
        let outlook = "+3.75 GiB in one run of In [3], held by losses (list of tensors). ";
        assert!(words.outlook.plain().starts_with(outlook), "{words:?}");
    }

    #[test]
    fn a_name_that_holds_little_of_it_is_not_its_holder() {
        let title_of = |part_mib: i64, is_shared: bool| {
            let (mut recording, _) = session(&[("f()", &[run(0)]), ("g()", &[run(1000)])]);
            let mut held = held(RunIdx(1), "b", "Tensor", part_mib, part_mib);
            if is_shared {
                held.holders.sharing = std::mem::take(&mut held.holders.roots);
            }
            let frame = Frame::Holders(Box::new(held));
            recording.apply(frame).expect("of that run");
            let analysis = analyze(&recording, &Rules::default());
            healthy(&recording, &analysis, DeviceIdx(0), Units::Binary)
                .title
                .plain()
        };
        assert_eq!(title_of(1, false), "+1000 MiB in one run of In [2]");
        let part = "+1000 MiB in one run of In [2], 300 MiB of it held by b (Tensor of tensors)";
        assert_eq!(title_of(300, false), part);
        assert_eq!(title_of(300, true), part);
    }
}
