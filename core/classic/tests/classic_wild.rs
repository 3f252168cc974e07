//! The classic rules on figures that no program measures but a hand can write.

use gpumem_classic::{
    Call, Calls, ClassicFigure, ClassicThresholds, Figures, GapSample, Report, hidden_gaps, report,
};
use proptest::prelude::*;

const NAMES: [&str; 6] = [
    "forward",
    "forward ",
    "",
    "训练.步",
    "a\u{202e}b",
    "\u{1f9e0}",
];

/// Numbers as they come from hands: plain ones, equal ones, and every edge of a float.
fn wild() -> impl Strategy<Value = f64> {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        9_223_372_036_854_775_808.0,  // 2^63
        18_446_744_073_709_551_616.0, // 2^64
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        1e60,
        1.000_000_1e60,
    ];
    prop_oneof![
        4 => -1e3..1e3,
        4 => 0.0..2e10,
        2 => prop::sample::select(edges.to_vec()),
        1 => any::<f64>(),
    ]
}

#[derive(Debug, Clone)]
struct Wild {
    name_idx: usize,
    figures: [f64; 8],
}

fn wild_call() -> impl Strategy<Value = Wild> {
    (0..NAMES.len(), prop::array::uniform8(wild()))
        .prop_map(|(name_idx, figures)| Wild { name_idx, figures })
}

fn wild_calls() -> impl Strategy<Value = Vec<Wild>> {
    prop_oneof![
        prop::collection::vec(wild_call(), 0..40),
        // One call many times over: equal times, equal levels.
        (wild_call(), 1..40_usize).prop_map(|(call, n)| vec![call; n]),
    ]
}

fn calls(wild: &[Wild], names: [&str; 6]) -> Calls {
    let mut calls = Calls::default();
    for Wild { name_idx, figures } in wild {
        let function = calls.function(names[*name_idx]);
        let [
            seconds,
            began_at,
            ended_at,
            diff,
            rise,
            after,
            reserved,
            allocated,
        ] = *figures;
        calls.push(Call {
            function,
            seconds,
            began_at,
            ended_at,
            diff,
            rise,
            after,
            reserved,
            allocated,
        });
    }
    calls
}

fn wild_thresholds() -> impl Strategy<Value = ClassicThresholds> {
    prop::collection::vec(prop_oneof![3 => 0.0..5.0, 1 => wild()], 10).prop_map(|values| {
        let mut thresholds = ClassicThresholds::default();
        for ((_, threshold), value) in thresholds.entries().into_iter().zip(values) {
            *threshold = value;
        }
        thresholds
    })
}

fn names_in(figures: &Figures) -> Vec<&str> {
    let names = figures.iter().flat_map(|(_, figure)| match figure {
        ClassicFigure::Name(name) | ClassicFigure::Named(name, _) => vec![name.as_str()],
        ClassicFigure::Names(names) => names.iter().map(String::as_str).collect(),
        ClassicFigure::Whole(_) | ClassicFigure::Real(_) => Vec::new(),
    });
    names.collect()
}

fn all_finite(figures: &Figures) -> bool {
    figures.iter().all(|(_, figure)| match figure {
        ClassicFigure::Whole(number)
        | ClassicFigure::Real(number)
        | ClassicFigure::Named(_, number) => number.is_finite(),
        ClassicFigure::Name(_) | ClassicFigure::Names(_) => true,
    })
}

fn kinds(report: &Report) -> Vec<&'static str> {
    let patterns = report.patterns.iter().map(|pattern| pattern.kind);
    let insights = report.insights.iter().map(|insight| insight.category);
    patterns.chain(insights).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_answer_is_a_number_and_about_a_call(
        wild in wild_calls(),
        thresholds in wild_thresholds(),
    ) {
        for thresholds in [ClassicThresholds::default(), thresholds] {
            let found = report(&calls(&wild, NAMES), &thresholds);
            prop_assert!((0..=100).contains(&found.score.score));
            prop_assert!(found.recommendations.len() <= 10);
            for pattern in &found.patterns {
                prop_assert!(all_finite(&pattern.metrics), "{:?}", pattern);
                let functions = pattern.functions.iter().map(String::as_str);
                for name in functions.chain(names_in(&pattern.metrics)) {
                    prop_assert!(NAMES.contains(&name), "{:?}", pattern);
                }
            }
            for insight in &found.insights {
                prop_assert!(all_finite(&insight.data), "{:?}", insight);
                prop_assert!((0.0..=1.0).contains(&insight.confidence), "{:?}", insight);
            }
        }
    }

    #[test]
    fn left_out_metrics_are_listed(wild in wild_calls()) {
        let found = report(&calls(&wild, NAMES), &ClassicThresholds::default());
        let is_unusable = |call: &Wild| {
            // The time of the end and the level after are shown, and judged by no rule.
            let [seconds, began_at, _, diff, rise, _, reserved, allocated] = call.figures;
            let judged = [seconds, began_at, diff, rise, reserved, allocated];
            judged.into_iter().any(|figure| !figure.is_finite())
        };
        if wild.iter().any(is_unusable) {
            prop_assert!(!found.left_out.is_empty());
        }
    }

    #[test]
    fn a_name_is_only_a_name(wild in wild_calls()) {
        let plain = ["f0", "f1", "f2", "f3", "f4", "f5"];
        let found = report(&calls(&wild, NAMES), &ClassicThresholds::default());
        let renamed = report(&calls(&wild, plain), &ClassicThresholds::default());
        prop_assert_eq!(kinds(&found), kinds(&renamed));
        prop_assert_eq!(found.score, renamed.score);
    }

    #[test]
    fn every_gap_has_its_figures(
        samples in prop::collection::vec(
            (prop::array::uniform4(wild()), prop::option::of(wild())),
            0..60,
        ),
        thresholds in wild_thresholds(),
    ) {
        let samples: Vec<GapSample> = samples
            .into_iter()
            .map(|([at, allocated, reserved, device_used], device_total)| GapSample {
                at,
                allocated,
                reserved,
                device_used,
                device_total,
            })
            .collect();
        for thresholds in [ClassicThresholds::default(), thresholds] {
            for gap in hidden_gaps(&samples, &thresholds) {
                prop_assert!((0.0..=1.0).contains(&gap.confidence), "{:?}", gap);
                prop_assert!(all_finite(&gap.evidence), "{:?}", gap);
            }
        }
    }
}
