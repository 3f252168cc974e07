//! Courses of levels that single calls mislead about.

use proptest::prelude::*;

use super::super::*;
use crate::testing::{Play, run, session};
use gpumem_model::recording::Frame;
use gpumem_model::units::Bytes;

/// Levels in MB after each of the seed's calls, as it tells of them.
#[track_caller]
fn check_course(kept_mb: impl IntoIterator<Item = f64>, expected: GrowthVerdict) {
    let mut level = 1e9;
    let levels: Vec<Bytes> = kept_mb
        .into_iter()
        .map(|kept| {
            level += kept * 1e6;
            Bytes::new(level as u64)
        })
        .collect();
    let rules = Rules::default();
    assert_eq!(
        classify_growth(&levels, rules.min_growth, &rules).state,
        expected
    );
}

#[test]
fn courses_that_single_calls_mislead_about_are_judged_right() {
    // Forward and backward take and give by turns.
    check_course(
        (0..200).map(|n| if n % 2 == 0 { 300.0 } else { -300.0 }),
        GrowthVerdict::Stable,
    );
    // Thirty warm-up calls, then flat.
    check_course(
        (0..200).map(|n| if n < 30 { 10.0 } else { 0.0 }),
        GrowthVerdict::Stable,
    );
    // Half a megabyte in each of 199 calls.
    check_course([0.5; 199], GrowthVerdict::Leak);
    // Twenty megabytes in every twentieth call.
    check_course(
        (0..200).map(|n| if n % 20 == 19 { 20.0 } else { 0.0 }),
        GrowthVerdict::Leak,
    );
    // A sawtooth that never gives all back.
    check_course(
        (0..200).map(|n| if n % 10 == 9 { -85.0 } else { 10.0 }),
        GrowthVerdict::Leak,
    );
    // Five model loads.
    check_course([2000.0; 5], GrowthVerdict::NotEnoughData);
}

proptest! {
    #[test]
    fn moving_or_scaling_a_series_changes_nothing_but_the_bytes(
        kept in prop::collection::vec(-200_i32..400, 3..60),
        offset_mib in 0_u64..10_000,
        scale in 1_u64..8,
    ) {
        let mut level = 20_000_i64;
        let levels: Vec<u64> = kept.iter().map(|kept| {
            level = (level + i64::from(*kept)).max(0);
            level.unsigned_abs()
        }).collect();
        let rules = Rules::default();
        let judge = |levels: Vec<Bytes>, least: Bytes| {
            let growth = classify_growth(&levels, least, &rules);
            (growth.state, growth.shape, growth.bytes_per_run)
        };
        let least = Bytes::mib(1);
        let plain = judge(levels.iter().map(|n| Bytes::mib(*n)).collect(), least);
        let moved = judge(levels.iter().map(|n| Bytes::mib(n + offset_mib)).collect(), least);
        prop_assert_eq!(plain, moved);
        let least = Bytes::mib(scale);
        let scaled = judge(levels.iter().map(|n| Bytes::mib(n * scale)).collect(), least);
        prop_assert_eq!((plain.0, plain.1), (scaled.0, scaled.1));
        let rate = plain.2.as_f64() * scale as f64;
        prop_assert!((scaled.2.as_f64() - rate).abs() <= scale as f64);
    }

    /// A recording that grows, under thresholds that move, as an incremental_analyzer sees it who has
    /// judged it before.
    #[test]
    fn an_analyst_who_judges_again_comes_to_the_same(
        kept in prop::collection::vec(prop::collection::vec(-40_i64..60, 1..24), 1..4),
        thresholds in prop::collection::vec((0_u64..64, 2_usize..20, 0_u8..40), 1..5),
        n_known in 0_usize..40,
    ) {
        const SOURCES: [&str; 3] = ["a()", "b()", "c()"];
        let plays: Vec<Vec<Play>> = kept
            .iter()
            .map(|kept| kept.iter().map(|kept| run(*kept).blocks(*kept)).collect())
            .collect();
        let cells: Vec<(&str, &[Play])> =
            SOURCES.into_iter().zip(plays.iter().map(Vec::as_slice)).collect();
        let (whole, _) = session(&cells);
        let mut begun = Recording::new(whole.header().clone());
        let is_known = |frame: &Frame| !matches!(frame, Frame::Run(run) if run.idx.get() >= n_known);
        for frame in whole.frames().filter(is_known) {
            // What belongs to runs that are not known yet does not fit.
            let _ = begun.apply(frame);
        }
        let mut incremental_analyzer = IncrementalAnalyzer::default();
        for recording in [&begun, &whole] {
            let mut analysis = incremental_analyzer.analyze(recording, &Rules::default());
            for (min_growth_mib, min_runs, tenths) in &thresholds {
                let rules = Rules {
                    min_growth: Bytes::mib(*min_growth_mib),
                    min_runs: *min_runs,
                    block_t: f64::from(*tenths) / 10.0,
                    ..Rules::default()
                };
                incremental_analyzer.judge(&mut analysis, recording, &rules);
                prop_assert_eq!(&analysis, &analyze(recording, &rules));
            }
        }
        let rules = Rules::default();
        let mut incremental_analyzer = IncrementalAnalyzer::default();
        for recording in [&begun, &whole, &whole] {
            let compared = incremental_analyzer.compare(recording, &begun, &rules);
            prop_assert_eq!(compared, compare(recording, &begun, &rules));
        }
    }

    #[test]
    fn a_leak_in_reverse_is_none(rate in 1_u64..100, n in 9_u64..100) {
        let levels: Vec<Bytes> = (0..n).rev().map(|run| Bytes::mib(rate * run)).collect();
        let growth = classify_growth(&levels, Bytes::mib(1), &Rules::default());
        prop_assert!(matches!(growth.state, GrowthVerdict::Stable));
    }

    #[test]
    fn any_levels_have_an_answer(levels in prop::collection::vec(any::<u64>(), 0..300)) {
        let levels: Vec<Bytes> = levels.into_iter().map(Bytes::new).collect();
        let growth = classify_growth(&levels, Bytes::mib(1), &Rules::default());
        prop_assert!(growth.evidence.iter().all(|figure| !figure.value.is_nan()));
    }
}
