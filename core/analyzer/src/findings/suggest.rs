//! What helps against growth, as far as the cell's text and the device tell.

use std::borrow::Cow;

use super::growth_details::Advice;
use gpumem_heap as heap;
use gpumem_heap::{Fix, Trim, Uses};
use gpumem_model::holders::{Holder, Keeper, RootKind};
use gpumem_model::recording::{DeviceIdx, DeviceKind, Recording, Run, RunKind, Source};
use gpumem_model::source_text::{has_word, is_name_letter};
use gpumem_model::units::Bytes;

/// The fix for a holder, in the text of the run or in that of another cell.
pub(super) fn fix(
    recording: &Recording,
    device: DeviceIdx,
    run: &Run,
    holder: &Holder,
) -> Option<Fix> {
    if let Some(displaying) = displayed_by(recording, holder) {
        let sources = recording.sources(displaying);
        let mut fix = heap::fix(holder, &sources, true)?;
        fix.elsewhere = fix.before.is_some() && displaying.cell != run.cell;
        return Some(fix);
    }
    let sources = recording.sources(run);
    let is_accelerator = recording.device(device).kind.is_accelerator();
    heap::fix(&as_written(run, holder), &sources, is_accelerator)
}

/// The text of a block is that of its module.
fn as_written<'h>(run: &Run, holder: &'h Holder) -> Cow<'h, Holder> {
    match run.kind {
        RunKind::Block => holder.within_module(),
        RunKind::Cell => Cow::Borrowed(holder),
    }
}

/// Whether some cell both reads what a holder collects, and empties it.
pub(super) fn is_emptied(recording: &Recording, holder: &Holder) -> bool {
    recording
        .latest_texts()
        .any(|text| heap::is_emptied(holder, text))
}

/// Whether some cell adds to what a holder collects only what that does not have yet.
pub(super) fn is_cache(recording: &Recording, holder: &Holder) -> bool {
    recording
        .latest_texts()
        .any(|text| heap::is_cache(holder, text))
}

/// How cells use what a holder collects.
pub(super) fn uses(recording: &Recording, run: &Run, holder: &Holder) -> Uses {
    heap::uses(&as_written(run, holder), &recording.sources(run))
}

/// Whether some cell makes a holder anew of what it was and more.
pub(super) fn is_extended(recording: &Recording, holder: &Holder) -> bool {
    recording
        .latest_texts()
        .any(|text| heap::is_extended(holder, text))
}

/// Whether the cells bind a holder anew each time without what it was.
pub(super) fn is_replaced(recording: &Recording, holder: &Holder) -> bool {
    let texts = recording.latest_texts();
    let texts: Vec<&str> = texts.filter(|it| has_word(it, &holder.name)).collect();
    heap::is_replaced(holder, &texts.join("\n"))
}

/// How cells keep what a holder collects from growing without end.
pub(super) fn trim(recording: &Recording, holder: &Holder) -> Option<Trim> {
    let texts: Vec<&str> = recording.latest_texts().collect();
    heap::trim(holder, &texts)
}

/// The run that displayed what IPython keeps as `Out[3]`.
pub(super) fn displayed_by<'a>(recording: &'a Recording, holder: &Holder) -> Option<&'a Run> {
    let name = Some(&*holder.name).filter(|_| holder.kind == RootKind::OutputHistory);
    let number = name?.strip_prefix("Out[")?.strip_suffix(']')?;
    let number: u32 = number.parse().ok()?;
    let mut runs = recording.runs().iter().rev();
    runs.find(|run| run.parent.is_none() && run.execution_count == Some(number))
}

/// Advice against growth without a fix, the most likely first. Where its holder is known, only what
/// helps against that one.
pub(super) fn against_growth(
    recording: &Recording,
    device: DeviceIdx,
    source: Option<&str>,
    steps: bool,
    holder: Option<&Holder>,
) -> Vec<Advice> {
    if holder.is_some_and(|it| it.kind.is_garbage()) {
        return Vec::new();
    }
    if let Some(kind) = holder.map(|it| it.kind).filter(|it| it.is_graph_cycle()) {
        return vec![Advice::BreakGraphCycle { kind }];
    }
    let is_known = |it: &&Holder| it.kind.is_named() || it.kind == RootKind::System;
    let looked_at = holder.filter(|it| is_known(it) && !it.path.is_empty());
    if let Some(object) = looked_at.and_then(has_hooks) {
        return vec![Advice::RemoveHooks { object }];
    }
    let list = source.and_then(appended_to);
    let is_other = |it: &Holder| list.is_none_or(|list| !is_of(list, it));
    if let Some(holder) = looked_at.filter(|it| it.traits.graph == Bytes::ZERO || is_other(it)) {
        let path = holder.path.clone();
        return vec![Advice::LookAt { path }];
    }
    let has_graph = holder.is_none_or(|it| it.traits.graph > Bytes::ZERO);
    let mut advice = vec![match (list, steps) {
        (Some(list), _) => Advice::KeepNumbers {
            list: list.to_owned(),
        },
        (None, true) => Advice::FindWhatLoopCollects,
        (None, false) => Advice::FindWhatOutlives,
    }];
    if has_graph && recording.device(device).kind.is_accelerator() {
        let framework = framework(recording, device);
        advice.push(Advice::NoGrad { framework });
    }
    advice
}

/// What has the hooks that keep it.
fn has_hooks(holder: &Holder) -> Option<String> {
    let (object, _) = holder.path.split_once("_hooks")?;
    let (object, _) = object.rsplit_once('.')?;
    (holder.traits.keeper == Some(Keeper::Hooks)).then(|| object.to_owned())
}

/// The holder's path leads through what a cell calls so: `self.losses` is `trainer.losses`.
fn is_of(list: &str, holder: &Holder) -> bool {
    let word = list.rsplit('.').next().unwrap_or(list);
    has_word(&holder.path, word)
}

/// The first name that the source appends to.
fn appended_to(source: &str) -> Option<&str> {
    let (before, _) = source.split_once(".append(")?;
    let is_name = |c: char| is_name_letter(c) || c == '.';
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, c)| is_name(*c))
        .last()?
        .0;
    Some(&before[start..])
}

/// The module whose `no_grad` counts on a device.
pub(super) fn framework(recording: &Recording, device: DeviceIdx) -> &'static str {
    let is_simulated = recording.device(device).kind == DeviceKind::Simulated;
    if is_simulated {
        Source::Sim.name()
    } else {
        Source::Torch.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Play, run, session};
    use crate::{FindingDetails, Rules, analyze};

    #[test]
    fn a_holder_is_helped_by_what_touches_it() {
        let check = |play: Play, expected: &[Advice]| {
            let (recording, _) = session(&[("kept.append(t)", &vec![play; 12])]);
            let findings = analyze(&recording, &Rules::default()).findings;
            let FindingDetails::Growth(details) = &findings[0].details else {
                panic!("{findings:?}");
            };
            assert_eq!(details.advice, expected);
        };
        let of_a_list = Advice::KeepNumbers {
            list: "kept".to_owned(),
        };
        let no_grad = Advice::NoGrad { framework: "sim" };
        let of_its_path = Advice::LookAt {
            path: "kept[0]".to_owned(),
        };
        check(run(64).held_by("kept", "list"), &[of_its_path]);
        check(run(64), &[of_a_list, no_grad]);
    }

    #[test]
    fn the_cell_s_list_is_no_advice_for_another_holder() {
        let advice = |holder: &Holder| {
            let (recording, _) = session(&[("jobs.append(job)", &[run(64)])]);
            let source = Some("jobs.append(job)");
            against_growth(&recording, DeviceIdx(0), source, false, Some(holder))
        };
        let library = Holder {
            path: "weakref.finalize._registry[<finalize>].args[1]".to_owned(),
            ..Holder::new(RootKind::System, "weakref", Bytes::mib(64))
        };
        let path = library.path.clone();
        assert_eq!(advice(&library), [Advice::LookAt { path }]);
        let mut hooked = Holder {
            path: "model.encoder._forward_hooks[3].<closure>.acts[0]".to_owned(),
            ..Holder::new(RootKind::Variable, "model", Bytes::mib(64))
        };
        hooked.traits.keeper = Some(Keeper::Hooks);
        let object = "model.encoder".to_owned();
        assert_eq!(advice(&hooked), [Advice::RemoveHooks { object }]);
    }

    #[test]
    fn the_list_is_named_as_the_cell_names_it() {
        assert_eq!(
            appended_to("for x in y:\n    self.losses.append(x)"),
            Some("self.losses")
        );
        assert_eq!(appended_to("x = größen.append(1)"), Some("größen"));
        assert_eq!(appended_to("[].append(1)"), None);
        assert_eq!(appended_to("x = 1"), None);
    }
}
