//! What to do about growth, as far as the cell's text and the device tell.

use crate::recording::{DeviceIdx, DeviceKind, Recording, Source};

/// Advice against growth, the most likely first.
pub(super) fn against_growth(
    recording: &Recording,
    device: DeviceIdx,
    source: Option<&str>,
    steps: bool,
) -> Vec<String> {
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
    if recording.device(device).kind.is_accelerator() {
        let framework = framework(recording, device);
        advice.push(format!(
            "where no backward pass follows, compute under `{framework}.no_grad()`: \
             then no graph keeps the activations"
        ));
    }
    if !steps {
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
