//! What the reader looks at, as code to go on with in a cell.

use std::fmt::Write as _;

use crate::model::Model;
use crate::state::Choice;

/// Python that finds what is picked in the page.
pub(crate) fn code(model: &Model) -> String {
    let state = model.state();
    let mut code = String::from("import gpumem\n\nreport = gpumem.report()\n");
    let device = model.recording().devices().get(state.device.get());
    let device = device.map_or("", |device| &device.label);
    let mut conditions = vec![format!("run[\"device\"] == {}", literal(device))];
    match &state.chosen {
        Some(Choice::Finding(id)) => {
            let id = literal(id);
            writeln!(
                code,
                "finding = next(f for f in report.findings if f.id == {id})"
            )
            .expect("a string takes everything");
            conditions.push("run[\"run\"] in finding.runs".to_owned());
        }
        Some(Choice::Cell(cell)) => {
            let id = literal(&model.recording().cell(*cell).id);
            conditions.push(format!("run[\"cell\"][\"id\"] == {id}"));
        }
        Some(Choice::Search(text)) => {
            let text = literal(text);
            conditions.push(format!(
                "{text}.lower() in run[\"cell\"][\"label\"].lower()"
            ));
        }
        None => {}
    }
    if let Some((from, to)) = state.span {
        let (from, to) = (from.get(), to.get());
        conditions.push(format!("{from} <= run[\"started_nanos\"] <= {to}"));
    }
    let conditions = conditions.join(" and ");
    writeln!(code, "runs = [run for run in report.runs if {conditions}]")
        .expect("a string takes everything");
    code
}

/// A string of Python, whatever is in it.
fn literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => literal.extend(['\\', letter]),
            letter if letter.is_control() => {
                write!(literal, "\\x{:02x}", u32::from(letter)).expect("a string takes everything");
            }
            letter => literal.push(letter),
        }
    }
    literal + "\""
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recording_of_runs;
    use crate::state::Event;

    #[test]
    fn what_is_picked_is_found_again_in_python() {
        let mut model = Model::new(recording_of_runs(&[0, 1, 0]));
        model.handle(Event::Searched("a\"b".to_owned()));
        let expected = "import gpumem\n\nreport = gpumem.report()\n\
            runs = [run for run in report.runs if run[\"device\"] == \"sim:0\" \
            and \"a\\\"b\".lower() in run[\"cell\"][\"label\"].lower()]\n";
        assert_eq!(code(&model), expected);
    }
}
