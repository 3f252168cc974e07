//! What to do about growth, as far as the cell's text and the device tell.

use crate::holders::{Holder, RootKind};
use crate::recording::{DeviceIdx, DeviceKind, Recording, Source};
use crate::units::Bytes;

/// Advice against growth, the most likely first. Where its holder is known, only what helps against
/// that one.
pub(super) fn against_growth(
    recording: &Recording,
    device: DeviceIdx,
    source: Option<&str>,
    steps: bool,
    holder: Option<&Holder>,
) -> Vec<String> {
    let has_graph = holder.is_none_or(|it| it.traits.graph > Bytes::ZERO);
    let is_displayed = holder.is_none_or(|it| it.kind == RootKind::OutputHistory);
    let list = source.and_then(appended_to);
    let mut advice = vec![match (list, steps) {
        (Some(name), _) => format!(
            "`{name}` is appended to and never emptied: keep numbers instead of tensors \
             (`.item()` of a scalar), or `.detach()` what you keep"
        ),
        (None, true) => {
            "look for what the loop collects: a list, a dict, a tensor that is added to \
                         (`total += loss` keeps every graph; `total += loss.item()` does not)"
                .to_owned()
        }
        (None, false) => "look for a name that outlives the cell and gets longer with every run, \
                          and rebind it at the top of the cell"
            .to_owned(),
    }];
    if has_graph && recording.device(device).kind.is_accelerator() {
        let framework = framework(recording, device);
        advice.push(format!(
            "where no backward pass follows, compute under `{framework}.no_grad()`: \
             then no graph keeps the activations"
        ));
    }
    if is_displayed && !steps {
        advice.push(
            "end a displayed last line with `;`: `Out` keeps what it shows for the whole session"
                .to_owned(),
        );
    }
    advice
}

/// The first name that the source appends to.
fn appended_to(source: &str) -> Option<&str> {
    let (before, _) = source.split_once(".append(")?;
    let is_name = |c: char| c.is_alphanumeric() || "_.".contains(c);
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
    use crate::analyze::{Rules, analyze};
    use crate::testing::{Play, run, session};

    #[test]
    fn a_holder_is_helped_by_what_touches_it() {
        let check = |play: Play, expected: &[&str]| {
            let (recording, _) = session(&[("kept.append(t)", &vec![play; 12])]);
            let advice = &analyze(&recording, &Rules::default()).findings[0].suggestions;
            assert_eq!(advice.len(), expected.len(), "{advice:?}");
            for (advice, expected) in advice.iter().zip(expected) {
                assert!(advice.contains(expected), "{advice}");
            }
        };
        let of_a_list = "`kept` is appended to";
        check(run(64).held_by("kept", "list"), &[of_a_list]);
        check(run(64), &[of_a_list, "no_grad()", "displayed last line"]);
    }

    #[test]
    fn the_list_is_named_as_the_cell_names_it() {
        assert_eq!(
            appended_to("for x in y:\n    self.losses.append(x)"),
            Some("self.losses")
        );
        assert_eq!(appended_to("[].append(1)"), None);
        assert_eq!(appended_to("x = 1"), None);
    }
}
