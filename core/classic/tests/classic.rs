//! The classic rules against the reference answers of `tests/data/oracle`, and of the folder that
//! `GPUMEM_ORACLE` names.

#[path = "../../examples/samples.rs"]
mod samples;

use gpumem_classic::{Call, Calls, Figure, Figures, Report, Thresholds, report};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    match value {
        Value::String(word) => match word.as_str() {
            "NaN" | "nan" => f64::NAN,
            "-Infinity" | "-inf" => f64::NEG_INFINITY,
            _ => f64::INFINITY,
        },
        number => number.as_f64().expect("a number"),
    }
}

fn calls(input: &Value) -> Calls {
    let mut calls = Calls::default();
    for row in input["results"].as_array().expect("a list of results") {
        let function = calls.function(row["function_name"].as_str().expect("a name"));
        let level = |when: &str, name: &str| number(&row[when][name]);
        calls.push(Call {
            function,
            seconds: number(&row["execution_time"]),
            began_at: level("memory_before", "timestamp"),
            ended_at: level("memory_after", "timestamp"),
            diff: level("memory_after", "allocated_memory")
                - level("memory_before", "allocated_memory"),
            rise: level("memory_peak", "allocated_memory")
                - level("memory_before", "allocated_memory"),
            after: level("memory_after", "allocated_memory"),
            reserved: level("memory_after", "reserved_memory"),
            allocated: number(&row["memory_allocated"]),
        });
    }
    calls
}

#[track_caller]
fn close(what: &str, found: f64, expected: f64) {
    let both_nan = found.is_nan() && expected.is_nan();
    let error = (found - expected).abs() / expected.abs().max(f64::MIN_POSITIVE);

    assert!(
        both_nan || error <= 1e-9,
        "{what}: {found} is not {expected}"
    );
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names
}

fn names(value: &Value) -> Vec<String> {
    let names = value.as_array().expect("a list of names").iter();
    let mut names: Vec<String> = names
        .map(|name| name.as_str().expect("a name").to_owned())
        .collect();
    names.sort();
    names
}

#[track_caller]
fn same_figures(what: &str, found: &Figures, expected: &Value) {
    for (name, value) in expected.as_object().expect("figures") {
        let (_, figure) = found
            .iter()
            .find(|(known, _)| known == name)
            .unwrap_or_else(|| panic!("{what} has no {name}"));
        let what = format!("{what}.{name}");
        match figure {
            Figure::Whole(found) | Figure::Real(found) => close(&what, *found, number(value)),
            Figure::Name(found) => assert_eq!(Some(found.as_str()), value.as_str(), "{what}"),
            Figure::Names(found) => assert_eq!(sorted(found), names(value), "{what}"),
            Figure::Named(found, figure) => {
                assert_eq!(Some(found.as_str()), value[0].as_str(), "{what}");
                close(&what, *figure, number(&value[1]));
            }
        }
    }
}

#[track_caller]
fn same_report(case: &str, found: &Report, expected: &Value) {
    let patterns = expected["patterns"].as_array().expect("patterns");
    assert_eq!(
        found.patterns.len(),
        patterns.len(),
        "{case}: {:?}",
        found.patterns
    );
    for (found, expected) in found.patterns.iter().zip(patterns) {
        let what = format!("{case} {}", found.kind);
        assert_eq!(
            Some(found.kind),
            expected["pattern_type"].as_str(),
            "{what}"
        );
        assert_eq!(
            Some(found.severity.name()),
            expected["severity"].as_str(),
            "{what}"
        );
        assert_eq!(
            sorted(&found.functions),
            names(&expected["affected_functions"]),
            "{what}"
        );
        same_figures(&what, &found.metrics, &expected["metrics"]);
    }
    let Some(insights) = expected["insights"].as_array() else {
        assert!(
            !found.left_out.is_empty(),
            "{case}: it says what it left out"
        );
        return;
    };
    assert_eq!(
        found.insights.len(),
        insights.len(),
        "{case}: {:?}",
        found.insights
    );
    for (found, expected) in found.insights.iter().zip(insights) {
        let what = format!("{case} {}", found.category);
        assert_eq!(
            Some(found.category),
            expected["category"].as_str(),
            "{what}"
        );
        assert_eq!(
            Some(found.impact.name()),
            expected["impact"].as_str(),
            "{what}"
        );
        close(&what, found.confidence, number(&expected["confidence"]));
        same_figures(&what, &found.data, &expected["data"]);
    }
    let score = &expected["score"];
    close(case, found.score.score as f64, number(&score["score"]));
    assert_eq!(Some(found.score.grade), score["grade"].as_str(), "{case}");
    close(
        case,
        found.score.n_issues as f64,
        number(&score["issues_found"]),
    );
    let Some(recommendations) = expected["report"]["recommendations"].as_array() else {
        return;
    };
    let shown: Vec<_> = found
        .recommendations
        .iter()
        .map(|found| (Some(found.priority), Some(found.category)))
        .collect();
    let wanted: Vec<_> = recommendations
        .iter()
        .map(|wanted| (wanted["priority"].as_str(), wanted["category"].as_str()))
        .collect();
    assert_eq!(shown, wanted, "{case}");
}

#[test]
fn reference_answers_are_given() {
    for path in samples::files("oracle", "GPUMEM_ORACLE", "json") {
        let text = std::fs::read_to_string(&path).expect("a readable case");
        let case: Value = serde_json::from_str(&text).expect("a case is JSON");
        let engines = case["expected"].as_object().expect("answers by engine");
        let found = report(&calls(&case["input"]), &Thresholds::default());
        for expected in engines.values() {
            same_report(case["name"].as_str().expect("a name"), &found, expected);
        }
    }
}
