use super::*;

#[track_caller]
fn check(levels_mib: &[u64], state: GrowthVerdict, shape: GrowthShape) {
    let levels: Vec<Bytes> = levels_mib.iter().copied().map(Bytes::mib).collect();
    let growth = classify_growth(&levels, Bytes::mib(1), &Rules::default());
    assert_eq!((growth.state, growth.shape), (state, shape), "{growth:#?}");
}

#[test]
fn a_course_has_its_verdict_and_shape() {
    let saw = [3, 9, 5, 11, 7, 13, 9, 15, 11, 17, 13, 19, 15, 21, 17, 23];
    let warm_up = [0, 60, 90, 100, 100, 100, 100, 100, 100, 100, 100, 100];
    let comes_back = [0, 30, 60, 90].repeat(4);
    let comes_back = [&comes_back[..], &[0, 30, 60, 0]].concat();
    let spikes = [&[7, 7, 7, 90][..], &[7; 6], &[95], &[7; 9]].concat();
    for (levels_mib, state, shape) in [
        (
            &[1, 2, 3, 4, 5, 6, 7, 8, 9][..],
            GrowthVerdict::Leak,
            GrowthShape::Growth,
        ),
        (&saw, GrowthVerdict::Leak, GrowthShape::Growth),
        // Eight runs are not enough.
        (
            &[1, 2, 3, 4, 5, 6, 7, 8],
            GrowthVerdict::NotEnoughData,
            GrowthShape::Growth,
        ),
        (&[5; 12], GrowthVerdict::Stable, GrowthShape::Flat),
        (&warm_up, GrowthVerdict::Stable, GrowthShape::WarmUp),
        (
            &[0, 0, 0, 0, 0, 80, 80, 80, 80, 80, 80, 80],
            GrowthVerdict::Stable,
            GrowthShape::Step,
        ),
        (&comes_back, GrowthVerdict::Stable, GrowthShape::Sawtooth),
        (&spikes, GrowthVerdict::Stable, GrowthShape::Spikes),
    ] {
        check(levels_mib, state, shape);
    }
}

#[test]
fn a_slow_leak_behind_a_warm_up_is_a_leak() {
    let level = |run: u64| if run < 10 { 90 * run } else { 900 + 2 * run };
    let levels: Vec<u64> = (0..40).map(level).collect();
    check(&levels, GrowthVerdict::Leak, GrowthShape::Growth);
    // The end of a warm-up rises, too, but ever less.
    let settles: Vec<u64> = (0..40_u32)
        .map(|run| 1000 - (900.0 * 0.85_f64.powf(run.into())) as u64)
        .collect();
    check(&settles, GrowthVerdict::Stable, GrowthShape::WarmUp);
}

#[test]
fn a_slow_warm_up_is_none_before_it_is_over() {
    for share in [0.15, 0.25, 0.35] {
        let level =
            |run: u32| 100 + (900.0 * (1.0 - (-f64::from(run) / (share * 40.0)).exp())) as u64;
        let levels: Vec<Bytes> = (0..40).map(|run| Bytes::mib(level(run))).collect();
        let growth = classify_growth(&levels, Bytes::mib(1), &Rules::default());
        assert_eq!(growth.state, GrowthVerdict::Stable, "{share}: {growth:#?}");
    }
    // A ramp over three quarters of the runs.
    let ramp: Vec<u64> = (0..40).map(|run: u64| 100 + 10 * run.min(28)).collect();
    check(&ramp, GrowthVerdict::Stable, GrowthShape::WarmUp);
}

#[test]
fn growth_below_the_threshold_is_flat() {
    let levels: Vec<Bytes> = (0..20).map(|run| Bytes::new(512 * run)).collect();
    let growth = classify_growth(&levels, Bytes::mib(1), &Rules::default());
    assert_eq!(
        (growth.state, growth.shape),
        (GrowthVerdict::Stable, GrowthShape::Flat)
    );
    let growth = classify_growth(&levels, Bytes::new(512), &Rules::default());
    assert_eq!(growth.state, GrowthVerdict::Leak);
    assert_eq!(growth.bytes_per_run, ByteDelta::new(512));
}

#[test]
fn what_settles_says_when() {
    let levels = [0, 60, 100, 100, 100, 100].map(Bytes::mib);
    assert_eq!(
        settling(&levels, Bytes::mib(1)),
        (GrowthShape::WarmUp, Some(2))
    );
    let levels = [0, 10, 20, 30, 40, 50].map(Bytes::mib);
    assert_eq!(settling(&levels, Bytes::mib(1)).1, None);
}

#[test]
fn a_long_series_keeps_its_rate() {
    let levels: Vec<Bytes> = (0..100_000).map(|run| Bytes::new(1000 * run)).collect();
    let growth = classify_growth(&levels, Bytes::mib(1), &Rules::default());
    assert_eq!(growth.state, GrowthVerdict::Leak);
    assert!((growth.bytes_per_run.get() - 1000).abs() <= 3);
}

#[test]
fn any_series_has_an_answer() {
    for n in 0..4 {
        let levels = vec![Bytes::mib(3); n];
        let growth = classify_growth(&levels, Bytes::mib(1), &Rules::default());
        assert_eq!(growth.state, GrowthVerdict::NotEnoughData);
    }
}
