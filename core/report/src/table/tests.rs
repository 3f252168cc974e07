use super::{Table, Values, findings, runs, samples};
use gpumem_analyzer::testing::{run, session};
use gpumem_analyzer::{Rules, analyze};
use gpumem_model::recording::{Recording, Status};

/// Every column has a value for each row, and this one has these.
#[track_caller]
fn check(table: &Table, name: &str, expected: &Values) {
    for (name, values) in &table.columns {
        let n_values = match values {
            Values::Integers(values) => values.len(),
            Values::Texts(values) => values.len(),
            Values::Flags(values) => values.len(),
        };
        assert_eq!((name, n_values), (name, table.n_rows));
    }
    assert_eq!(table.column(name), Some(expected));
}

#[test]
fn what_is_unknown_is_no_number() {
    let plays = [run(4), run(0).unknown(), run(4).status(Status::Running)];
    let (recording, analysis) = session(&[("a()", &plays)]);
    let kept = Values::Integers(vec![Some(4 << 20), None, None]);
    check(&runs(&recording, &analysis), "kept_bytes", &kept);
}

#[test]
fn marks_have_their_label() {
    let (recording, _) = session(&[("a()", &[run(4).sampled(1).steps(1)])]);
    let labels = [None, Some("step"), Some("step")].map(|label| label.map(str::to_owned));
    let labels = Values::Texts(labels.to_vec());
    check(&samples(&recording), "label", &labels);
}

#[test]
fn a_trace_is_a_series() {
    let (recording, _) = session(&[("a()", &[run(4).peak(8).traced()])]);
    let table = samples(&recording);
    let n_steps = recording.traces().map(|trace| trace.steps.len()).sum();
    assert!(n_steps > 0);
    let series = Values::Texts(vec![Some("traced".to_owned()); n_steps]);
    check(&table, "series", &series);
}

#[test]
fn an_empty_recording_has_all_columns() {
    let (recording, rules) = (Recording::default(), Rules::default());
    let analysis = analyze(&recording, &rules);
    check(&runs(&recording, &analysis), "cell", &Values::Texts(vec![]));
    check(&samples(&recording), "at_nanos", &Values::Integers(vec![]));
    check(
        &findings(&recording, &analysis),
        "kind",
        &Values::Texts(vec![]),
    );
}
