use proptest::prelude::*;

use super::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Allocates the sizes in an empty device of 1 GiB.
fn device_with(sizes: &[u64]) -> (CachingAllocator, Vec<BlockId>) {
    let mut device = CachingAllocator::new(Bytes::gib(1));
    let held = sizes
        .iter()
        .map(|size| device.allocate(Bytes::new(*size)).expect("1 GiB is enough"))
        .collect();
    (device, held)
}

#[track_caller]
fn check(sizes: &[u64], allocated: u64, reserved: u64, inactive_split: u64) {
    let stats = device_with(sizes).0.stats();
    assert_eq!(stats.allocated, Bytes::new(allocated), "allocated");
    assert_eq!(stats.reserved, Bytes::new(reserved), "reserved");
    assert_eq!(
        stats.inactive_split,
        Bytes::new(inactive_split),
        "inactive split"
    );
}

#[test]
fn sizes_are_rounded_and_served_from_their_pool() {
    check(&[0], 512, 2 * MIB, 2 * MIB - 512);
    check(&[1, 513], 1536, 2 * MIB, 2 * MIB - 1536);
    check(&[MIB, MIB], 2 * MIB, 2 * MIB, 0);
    check(&[MIB + 1], MIB + 512, 20 * MIB, 19 * MIB - 512);
    check(&[10 * MIB - 512], 10 * MIB - 512, 20 * MIB, 10 * MIB + 512);
    check(&[10 * MIB], 10 * MIB, 10 * MIB, 0);
    check(&[420 * MIB + 1], 420 * MIB + 512, 422 * MIB, 2 * MIB - 512);
}

#[test]
fn the_large_pool_keeps_no_rest_of_a_mebibyte_or_less() {
    check(&[11 * MIB], 12 * MIB, 12 * MIB, 0);
    check(&[11 * MIB - 512], 11 * MIB - 512, 12 * MIB, MIB + 512);
}

#[test]
fn the_best_fit_is_taken_and_neighbours_merge() {
    let (mut device, held) = device_with(&[4 * MIB, 2 * MIB, 6 * MIB, 2 * MIB]);
    device.free(held[0]);
    device.free(held[2]);
    let block = device.allocate(Bytes::mib(4)).expect("the hole of 4 MiB");
    assert_eq!(device.stats().largest_free, Bytes::mib(6));
    device.free(block);
    device.free(held[1]);
    assert_eq!(device.stats().largest_free, Bytes::mib(12));
    device.free(held[3]);
    let stats = device.stats();
    assert_eq!(stats.largest_free, Bytes::mib(20));
    assert_eq!(stats.inactive_split, Bytes::ZERO);
}

#[test]
fn a_full_device_flushes_its_cache_and_then_says_what_it_has() {
    let mut device = CachingAllocator::new(Bytes::mib(100));
    let cached = device.allocate(Bytes::mib(60)).expect("fits");
    device.free(cached);
    device.allocate(Bytes::mib(80)).expect("fits after a flush");
    assert_eq!(device.stats().n_retries, 1);
    let error = device
        .allocate(Bytes::mib(30))
        .expect_err("80 of 100 are held");
    assert_eq!(
        error.to_string(),
        "out of memory: tried to allocate 30 MiB; 20 MiB of 100 MiB free, \
         80 MiB allocated, 80 MiB reserved"
    );
    assert_eq!((device.stats().n_retries, device.stats().n_ooms), (2, 1));
}

#[test]
fn what_is_not_held_is_not_freed_twice() {
    let (mut device, held) = device_with(&[KIB]);
    device.free(BlockId(99));
    device.free(held[0]);
    device.free(held[0]);
    assert_eq!(device.stats().allocated, Bytes::ZERO);
}

#[test]
fn a_request_beyond_all_addresses_is_out_of_memory() {
    let mut device = CachingAllocator::new(Bytes::new(u64::MAX));
    assert!(device.allocate(Bytes::new(u64::MAX)).is_err());
}

#[derive(Debug, Clone)]
enum AllocatorCall {
    Allocate(u64),
    /// Of the blocks held, by a number that is wrapped to how many there are.
    Free(usize),
    EmptyCache,
    ResetPeaks,
}

fn any_action() -> impl Strategy<Value = AllocatorCall> {
    prop_oneof![
        4 => (0..=2 * KIB).prop_map(AllocatorCall::Allocate),
        4 => (0..=3 * MIB).prop_map(AllocatorCall::Allocate),
        4 => (0..=50 * MIB).prop_map(AllocatorCall::Allocate),
        8 => any::<usize>().prop_map(AllocatorCall::Free),
        1 => Just(AllocatorCall::EmptyCache),
        1 => Just(AllocatorCall::ResetPeaks),
    ]
}

fn assert_sound(device: &CachingAllocator) {
    let stats = device.stats();
    assert!(stats.allocated <= stats.reserved && stats.reserved <= device.capacity());
    assert!(stats.peak_allocated >= stats.allocated && stats.peak_reserved >= stats.reserved);
    let segments: Vec<SimSegment> = device.segments().collect();
    assert_eq!(segments.len() as u64, stats.n_segments);
    assert_eq!(
        segments.iter().map(|s| s.size).sum::<Bytes>(),
        stats.reserved
    );
    let mut end_before = 0;
    for segment in &segments {
        assert!(segment.address >= end_before, "segments overlap");
        end_before = segment.address;
        for block in &segment.blocks {
            assert_eq!(block.address, end_before, "gap or overlap in a segment");
            end_before += block.size.get();
        }
        assert_eq!(end_before, segment.address + segment.size.get());
        let merged = |pair: &[SimBlock]| pair.iter().any(|block| block.held_as.is_some());
        assert!(segment.blocks.windows(2).all(merged), "free neighbours");
    }
    let blocks = || {
        segments
            .iter()
            .flat_map(|s| s.blocks.iter().map(move |b| (s, b)))
    };
    let held = blocks().filter(|(_, b)| b.held_as.is_some());
    assert_eq!(held.map(|(_, b)| b.size).sum::<Bytes>(), stats.allocated);
    let free = || blocks().filter(|(_, b)| b.held_as.is_none());
    let split = free().filter(|(s, b)| b.size < s.size);
    assert_eq!(
        split.map(|(_, b)| b.size).sum::<Bytes>(),
        stats.inactive_split
    );
    let largest = free().map(|(_, b)| b.size).max().unwrap_or_default();
    assert_eq!(largest, stats.largest_free);
}

proptest! {
    #[test]
    fn blocks_fill_segments_and_segments_fit_the_device(
        capacity_mib in 1_u64..200,
        actions in prop::collection::vec(any_action(), 0..200),
    ) {
        let mut device = CachingAllocator::new(Bytes::mib(capacity_mib));
        let mut held = Vec::new();
        for action in actions {
            match action {
                AllocatorCall::Allocate(size) => held.extend(device.allocate(Bytes::new(size))),
                AllocatorCall::Free(n) if !held.is_empty() => {
                    device.free(held.swap_remove(n % held.len()));
                }
                AllocatorCall::Free(_) => {}
                AllocatorCall::EmptyCache => drop(device.empty_cache()),
                AllocatorCall::ResetPeaks => device.reset_peaks(),
            }
            assert_sound(&device);
        }
        for block in held {
            device.free(block);
        }
        let reserved = device.stats().reserved;
        prop_assert_eq!(device.empty_cache(), reserved);
        prop_assert_eq!(device.stats().reserved, Bytes::ZERO);
        assert_sound(&device);
    }
}
