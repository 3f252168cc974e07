//! To scale, all of it, and few enough to be looked at.

use proptest::prelude::*;

use super::*;
use gpumem_model::segments::{Block, BlockState};
use gpumem_sim::CachingAllocator;

fn segment(pool: Pool, blocks: &[(BlockState, u64)]) -> Segment {
    let block = |(state, mib): &(BlockState, u64)| Block::new(*state, Bytes::mib(*mib));
    Segment {
        pool,
        stream: 0,
        blocks: blocks.iter().map(block).collect(),
    }
}

/// Each shelf as text, 20 letters long: `#` held, `~` awaiting, `%` mixed, `.` a hole, `-` unused,
/// `*` the largest free block.
fn drawn(map: &SegmentMap) -> Vec<String> {
    let shelves = map.shelves.iter();
    let bars = shelves.map(|shelf| shelf.iter().map(bar).collect::<Vec<_>>().join("|"));
    bars.collect()
}

fn bar(bar: &Bar) -> String {
    let (mut drawn, mut end) = (String::new(), 0.0);
    for block in &bar.blocks {
        let letter = match block.look {
            _ if block.is_largest => '*',
            BlockStyle::Held => '#',
            BlockStyle::Awaiting => '~',
            BlockStyle::Mixed => '%',
            BlockStyle::Hole => '.',
            BlockStyle::Unused => '-',
        };
        end += 20.0 * bar.share * block.share;
        while (drawn.len() as f64) < (end + 1e-9_f64).round() {
            drawn.push(letter);
        }
    }
    drawn
}

#[track_caller]
fn check(segments: &[Segment], shelves: &[&str]) -> SegmentMap {
    let map = SegmentMap::new(&Segments::new(segments.to_vec()), Units::Binary);
    assert_eq!(drawn(&map), shelves, "{map:#?}");
    map
}

#[test]
fn the_largest_segment_fills_a_shelf_and_others_share_one() {
    use BlockState::{Awaiting, Free, Held};
    let all = [
        segment(Pool::Large, &[(Held, 20), (Free, 20)]),
        segment(Pool::Large, &[(Held, 40), (Free, 30), (Awaiting, 30)]),
        segment(Pool::Small, &[(Free, 20)]),
    ];
    let shelves = ["########******~~~~~~", "####....|----"];
    let map = check(&all, &shelves);
    assert_eq!(map.scale, Bytes::mib(100));
    assert_eq!(
        map.shelves[0][0].blocks[1].words,
        "30 MiB free between blocks in use, the largest free piece · segment of 100 MiB for \
         requests over 1 MiB"
    );
    assert_eq!(
        map.words,
        "3 segments with 6 blocks, 160 MiB reserved: 90 MiB in use, 50 MiB free between blocks in \
         use, 20 MiB in segments that are all free; the largest free piece has 30 MiB"
    );
    // No shelf is longer than the fullest needs.
    let many: Vec<Segment> = (0..31)
        .map(|_| segment(Pool::Large, &[(Held, 10), (Free, 10)]))
        .collect();
    let map = SegmentMap::new(&Segments::new(many), Units::Binary);
    assert_eq!((map.scale, map.shelves.len()), (Bytes::mib(60), 11));
}

#[test]
fn a_private_pool_comes_last_and_its_hole_is_not_for_others() {
    use BlockState::{Free, Held};
    let all = [
        segment(Pool::Private, &[(Held, 10), (Free, 90)]),
        segment(Pool::Large, &[(Held, 90), (Free, 10)]),
    ];
    let shelves = ["##################**", "##.................."];
    check(&all, &shelves);
}

#[test]
fn small_parts_are_summed_up() {
    use BlockState::{Free, Held};
    let mut all = vec![segment(Pool::Large, &[(Held, 1000), (Free, 24)])];
    let small = || segment(Pool::Small, &[(Held, 1), (Free, 1)]);
    all.extend((0..40).map(|_| small()));
    let map = check(&all, &["####################", "#."]);
    assert_eq!(
        map.shelves[1][0].words,
        "40 small segments of at most 2 MiB, 80 MiB together"
    );
    let crumbs: Vec<(BlockState, u64)> = (0..400).flat_map(|_| [(Held, 2), (Free, 1)]).collect();
    let map = check(&[segment(Pool::Large, &crumbs)], &["%%%%%%%%%%%%%%%%%%%%"]);
    assert!(map.shelves[0][0].blocks.len() < 400);
}

#[test]
fn nothing_is_an_empty_map() {
    check(&[], &[]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

    #[test]
    fn shares_are_bytes_and_shelves_are_few(
        steps in prop::collection::vec((any::<bool>(), 0_usize..64, 1_u64..40 << 20), 1..300),
    ) {
        let mut device = CachingAllocator::new(Bytes::gib(4));
        let mut held = Vec::new();
        for (frees, at, size) in steps {
            if frees && !held.is_empty() {
                device.free(held.swap_remove(at % held.len()));
            } else {
                held.extend(device.allocate(Bytes::new(size)));
            }
        }
        let found = device.map();
        let map = SegmentMap::new(&found, Units::Binary);
        let share = |size: Bytes| size.as_f64() / map.scale.as_f64().max(1.0);
        let bars = || map.shelves.iter().flatten();
        let drawn: f64 = bars().map(|bar| bar.share).sum();
        prop_assert!((drawn - share(found.reserved())).abs() < 1e-6);
        prop_assert!(map.shelves.len() as u64 <= N_SHELVES);
        for shelf in &map.shelves {
            prop_assert!(shelf.iter().map(|bar| bar.share).sum::<f64>() < 1.0 + 1e-6);
        }
        for bar in bars() {
            let all: f64 = bar.blocks.iter().map(|block| block.share).sum();
            prop_assert!((all - 1.0).abs() < 1e-6);
        }
        // Free is drawn as far as it is not too small to be seen; the largest is marked once.
        let n_marked = bars().flat_map(|bar| &bar.blocks).filter(|it| it.is_largest).count();
        prop_assert!(n_marked <= 1);
        let is_seen = share(found.largest_free) >= LEAST_BAR;
        prop_assert!(n_marked == 1 || !is_seen);
    }
}
