//! CRC-32 (IEEE 802.3) of a payload.

#[cfg(not(target_arch = "wasm32"))]
pub(super) use crc32fast::hash as of;
#[cfg(target_arch = "wasm32")]
pub(super) use sliced::crc32 as of;

/// The page's own, sixteen bytes at a time: the library's tables are 16 KiB that no packing
/// makes smaller, a sixteenth of the page's module; here they are worked out at first use.
///
/// Slicing-by-N as in Kounavis and Berry, "A Systematic Approach to Building High Performance,
/// Software-based, CRC Generators" (2005).
#[cfg(any(test, target_arch = "wasm32"))]
mod sliced {
    use std::sync::LazyLock;

    /// The polynomial, its bits in reverse order.
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    const SLICES: usize = 16;

    /// What a byte does to the checksum, by how many bytes follow it in its slice.
    static TABLES: LazyLock<Vec<[u32; 256]>> = LazyLock::new(tables);

    fn tables() -> Vec<[u32; 256]> {
        let mut next = [0; 256];
        for (byte, entry) in (0_u32..).zip(&mut next) {
            *entry = (0..8).fold(byte, |crc, _| (crc >> 1) ^ (POLYNOMIAL * (crc & 1)));
        }
        let mut tables = vec![next];
        while tables.len() < SLICES {
            let table = tables[tables.len() - 1].map(|crc| step(&next, crc, 0));
            tables.push(table);
        }
        tables
    }

    fn step(table: &[u32; 256], crc: u32, byte: u8) -> u32 {
        let [first, ..] = crc.to_le_bytes();
        table[usize::from(first ^ byte)] ^ (crc >> 8)
    }

    pub(crate) fn crc32(bytes: &[u8]) -> u32 {
        let (slices, rest) = bytes.as_chunks::<SLICES>();
        let (groups, _) = TABLES.as_chunks::<4>();
        let mut crc = !0;
        for slice in slices {
            let (words, _) = slice.as_chunks::<4>();
            let mut before = crc;
            crc = 0;
            for (word, tables) in words.iter().zip(groups.iter().rev()) {
                let [a, b, c, d] = (u32::from_le_bytes(*word) ^ before).to_le_bytes();
                before = 0;
                crc ^= tables[3][usize::from(a)]
                    ^ tables[2][usize::from(b)]
                    ^ tables[1][usize::from(c)]
                    ^ tables[0][usize::from(d)];
            }
        }
        !rest
            .iter()
            .fold(crc, |crc, byte| step(&TABLES[0], crc, *byte))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_page_finds_what_the_library_finds(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(super::sliced::crc32(&bytes), super::of(&bytes));
        }
    }
}
