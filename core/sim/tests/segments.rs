//! No byte is lost in the bounds, and the largest hole is never lost sight of.

use proptest::prelude::*;

use gpumem_model::segments::*;
use gpumem_model::units::Bytes;
use gpumem_sim::CachingAllocator;

fn block() -> impl Strategy<Value = Block> {
    let state = prop::sample::select(BlockState::ALL.as_slice());
    (state, 1_u64..1 << 30).prop_map(|(state, size)| Block::new(state, Bytes::new(size)))
}

fn segment(blocks: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Segment> {
    let pool = prop::sample::select(Pool::ALL.as_slice());
    (pool, 0_u32..3, prop::collection::vec(block(), blocks)).prop_map(|(pool, stream, blocks)| {
        Segment {
            pool,
            stream,
            blocks,
        }
    })
}

fn check(all: &[Segment]) {
    let found = Segments::new(all.to_vec());
    let blocks = || all.iter().flat_map(|segment| &segment.blocks);
    let sum = |sizes: &mut dyn Iterator<Item = Bytes>| sizes.sum::<Bytes>();

    assert_eq!(found.reserved(), sum(&mut blocks().map(|it| it.size)));
    let free = |it: &&Block| it.state == BlockState::Free;
    assert_eq!(
        found.split() + found.unused(),
        sum(&mut blocks().filter(free).map(|it| it.size))
    );
    let busy = |it: &&Block| it.state != BlockState::Free;
    assert_eq!(
        found.in_use(),
        sum(&mut blocks().filter(busy).map(|it| it.size))
    );
    let unused = all.iter().filter(|it| it.blocks.iter().all(Block::is_free));
    assert_eq!(found.unused(), sum(&mut unused.map(Segment::size)));
    assert_eq!(found.n_blocks, blocks().count() as u64);

    let shared = all.iter().filter(|it| it.pool != Pool::Private);
    let largest = shared
        .flat_map(|it| &it.blocks)
        .filter(free)
        .map(|it| it.size);
    assert_eq!(found.largest_free, largest.max().unwrap_or_default());

    let shown: Vec<&Block> = found.segments.iter().flat_map(|it| &it.blocks).collect();
    assert!(found.segments.len() <= MAX_SEGMENTS, "{shown:?}");
    assert!(shown.len() <= MAX_BLOCKS, "{}", shown.len());
    // No hidden segment is larger than a shown one.
    if let Some(least) = found.segments.iter().map(Segment::size).min()
        && found.rest.n_segments > 0
    {
        assert!(found.rest.size <= Bytes::new(least.get() * found.rest.n_segments));
    }
    // The largest hole of the shown segments is unchanged.
    let before = found
        .segments
        .iter()
        .flat_map(|it| it.blocks.iter().filter(|it| it.is_free()));
    let hole = before.map(|it| it.size).max().unwrap_or_default();
    let hidden = shown.iter().map(|it| it.holes).max().unwrap_or_default();
    assert!(hole > Bytes::ZERO || hidden == Bytes::ZERO);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 5))]

    #[test]
    fn few_segments_stay_unchanged(
        all in prop::collection::vec(segment(1..5), 0..40),
    ) {
        check(&all);
        prop_assert_eq!(Segments::new(all.clone()).segments, all);
    }

    #[test]
    fn many_segments_and_blocks_keep_their_sums(
        many in prop::collection::vec(segment(1..9), 120..300),
        long in prop::collection::vec(segment(1..4_000), 1..4),
    ) {
        check(&many);
        check(&long);
    }

    /// Against the allocator's own counters, in any course of requests.
    #[test]
    fn the_map_of_the_model_allocator_matches_its_stats(
        steps in prop::collection::vec((any::<bool>(), 0_usize..64, 1_u64..40 << 20), 1..400),
    ) {
        let mut device = CachingAllocator::new(Bytes::gib(2));
        let mut held = Vec::new();
        for (frees, at, size) in steps {
            if frees && !held.is_empty() {
                device.free(held.swap_remove(at % held.len()));
            } else {
                held.extend(device.allocate(Bytes::new(size)));
            }
        }
        let (found, stats) = (device.map(), device.stats());
        prop_assert_eq!(found.reserved(), stats.reserved);
        prop_assert_eq!(found.in_use(), stats.allocated);
        prop_assert_eq!(found.split(), stats.inactive_split);
        prop_assert_eq!(found.largest_free, stats.largest_free);
        prop_assert_eq!(found.n_segments(), stats.n_segments);
    }
}

#[test]
fn thousands_of_equal_holes_keep_as_many_as_there_is_room_for() {
    let pair =
        |_| [BlockState::Held, BlockState::Free].map(|state| Block::new(state, Bytes::mib(1)));
    let all = [Segment {
        pool: Pool::Large,
        stream: 0,
        blocks: (0..10_000).flat_map(pair).collect(),
    }];
    check(&all);
    let found = Segments::new(all.to_vec());
    let holes = found.segments[0].blocks.iter().filter(|it| it.is_free());
    assert_eq!(holes.count(), (MAX_BLOCKS - 1) / 2);
}
