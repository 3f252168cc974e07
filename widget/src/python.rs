//! What the reader looks at, as code to go on with in a cell.

use std::fmt::Write as _;

use crate::model::ReportModel;
use crate::state::Choice;

/// Python that finds what is picked in the page.
pub(crate) fn code(model: &ReportModel) -> String {
    let state = model.state();
    let rules = rules(model);
    let mut code = format!("import gpumem\n\nreport = gpumem.report({rules})\n");
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

/// The rules as the reader moved them; nothing if they are those that stand in the recording.
fn rules(model: &ReportModel) -> String {
    let rules = model.rules();
    if rules == model.recorded_rules() {
        return String::new();
    }
    let moved = rules.moved();
    let moved = moved.map(|it| format!("{}={}", it.name(), rules.get(it)));
    let moved: Vec<String> = moved.collect();
    format!("rules=gpumem.Rules({})", moved.join(", "))
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
    use gpumem_model::recording::{Frame, Header};
    use gpumem_model::rules::Rules;
    use gpumem_wire as wire;

    use super::*;
    use crate::fixture::recording_of_runs;
    use crate::settings::ThresholdSetting;
    use crate::state::UiEvent;

    #[test]
    fn what_is_picked_is_found_again_in_python() {
        let mut model = ReportModel::new(recording_of_runs(&[0, 1, 0]));
        model.handle(UiEvent::Searched("a\"b".to_owned()));
        let expected = "import gpumem\n\nreport = gpumem.report()\n\
            runs = [run for run in report.runs if run[\"device\"] == \"sim:0\" \
            and \"a\\\"b\".lower() in run[\"cell\"][\"label\"].lower()]\n";
        assert_eq!(code(&model), expected);
    }

    #[track_caller]
    fn check_rules(model: &ReportModel, expected: &str) {
        let code = code(model);
        let report = code.lines().nth(2).expect("the report's line");
        assert_eq!(report, format!("report = gpumem.report({expected})"));
    }

    #[test]
    fn what_the_reader_moved_is_moved_in_python() {
        let mut model = ReportModel::new(recording_of_runs(&[0, 1, 0]));
        check_rules(&model, "");
        model.set(ThresholdSetting::Runs, 2);
        model.set(ThresholdSetting::Cache, 8);
        let moved = "rules=gpumem.Rules(min_runs=5, fragmentation_ratio=0.45)";
        check_rules(&model, moved);
    }

    #[test]
    fn the_rules_of_the_recording_are_where_the_reader_starts() {
        let rules = Rules {
            min_runs: 5,
            ..Rules::default()
        };
        let mut model = ReportModel::new(recording_of_runs(&[0, 1, 0]).with_rules(rules));
        assert_eq!(model.rules().min_runs, 5);
        assert_eq!(model.saved(), "");
        check_rules(&model, "");
        model.set(ThresholdSetting::Runs, 6);
        assert_eq!(model.saved(), "min_runs=6");
        check_rules(&model, "rules=gpumem.Rules()");
        model.restore("");
        assert_eq!(model.rules().min_runs, 5);
    }

    #[test]
    fn a_page_follows_the_session_until_a_threshold_is_moved() {
        let mut model = ReportModel::new(recording_of_runs(&[0, 1, 0]));
        let tell = |model: &mut ReportModel, min_runs: usize| {
            let rules = Rules {
                min_runs,
                ..Rules::default()
            };
            let header = Header {
                rules,
                ..model.recording().header().clone()
            };
            let frames = wire::encode_frames([Frame::Header(header)]);
            model.apply(&frames).expect("a header fits");
            model.rules().min_runs
        };
        assert_eq!(tell(&mut model, 12), 12);
        model.set(ThresholdSetting::Runs, 2);
        assert_eq!(tell(&mut model, 15), 5);
    }
}
