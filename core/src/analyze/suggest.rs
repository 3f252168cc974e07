//! What helps against growth, as far as the cell's text and the device tell.

use super::details::Advice;
use crate::holders::{Holder, RootKind};
use crate::recording::{DeviceIdx, DeviceKind, Recording, Source};
use crate::source_text::is_name_letter;
use crate::units::Bytes;

/// Advice against growth, the most likely first. Where its holder is known, only what helps against
/// that one.
pub(super) fn against_growth(
    recording: &Recording,
    device: DeviceIdx,
    source: Option<&str>,
    steps: bool,
    holder: Option<&Holder>,
) -> Vec<Advice> {
    let has_graph = holder.is_none_or(|it| it.traits.graph > Bytes::ZERO);
    let is_displayed = holder.is_none_or(|it| it.kind == RootKind::OutputHistory);
    let list = source.and_then(appended_to);
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
    if is_displayed && !steps {
        advice.push(Advice::DisplayNothing);
    }
    advice
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

fn framework(recording: &Recording, device: DeviceIdx) -> &'static str {
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
    use crate::analyze::{Details, Rules, analyze};
    use crate::testing::{Play, run, session};

    #[test]
    fn a_holder_is_helped_by_what_touches_it() {
        let check = |play: Play, expected: &[Advice]| {
            let (recording, _) = session(&[("kept.append(t)", &vec![play; 12])]);
            let findings = analyze(&recording, &Rules::default()).findings;
            let Details::Growth(details) = &findings[0].details else {
                panic!("{findings:?}");
            };
            assert_eq!(details.advice, expected);
        };
        let of_a_list = Advice::KeepNumbers {
            list: "kept".to_owned(),
        };
        let no_grad = Advice::NoGrad { framework: "sim" };
        check(
            run(64).held_by("kept", "list"),
            std::slice::from_ref(&of_a_list),
        );
        check(run(64), &[of_a_list, no_grad, Advice::DisplayNothing]);
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
