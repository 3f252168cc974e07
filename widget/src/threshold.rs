//! The slider of sizes: its positions go up by halves of an octave, in sizes
//! that read well (1 MiB, 1.5 MiB, 2 MiB, 3 MiB, …).

use gpumem_model::units::Bytes;

/// The smallest size is this power of two: 64 KiB.
const FIRST_OCTAVE: u32 = 16;
/// The largest size is this power of two: 16 GiB.
const LAST_OCTAVE: u32 = 34;

/// The last position; the first is 0.
pub(crate) const LAST: u32 = 2 * (LAST_OCTAVE - FIRST_OCTAVE);

/// The size at a position; beyond the ends, the size at the end.
pub(crate) fn size_at(position: u32) -> Bytes {
    let position = position.min(LAST);
    let octave = 1_u64 << (FIRST_OCTAVE + position / 2);
    Bytes::new(octave + (octave / 2) * u64::from(position % 2))
}

/// The position whose size is nearest, seen as a ratio.
pub(crate) fn position_of(size: Bytes) -> u32 {
    let octaves = |bytes: Bytes| bytes.as_f64().max(1.0).log2();
    let distance = |position: &u32| (octaves(size_at(*position)) - octaves(size)).abs();
    (0..=LAST)
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(position: u32, shown: &str) {
        assert_eq!(size_at(position).to_string(), shown);
    }

    #[test]
    fn sizes_read_well() {
        check(0, "64 KiB");
        check(1, "96 KiB");
        check(8, "1 MiB");
        check(9, "1.5 MiB");
        check(20, "64 MiB");
        check(LAST, "16 GiB");
        check(LAST + 5, "16 GiB");
    }

    #[test]
    fn every_position_is_found_again() {
        for position in 0..=LAST {
            assert_eq!(position_of(size_at(position)), position);
        }
        assert_eq!(position_of(Bytes::ZERO), 0);
        assert_eq!(position_of(Bytes::gib(900)), LAST);
    }
}
