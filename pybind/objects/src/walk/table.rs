//! The set of met objects by address, and maps with number keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Addresses and the number of the node that each became: open addressing over a
/// power of two, at most half full, so that a look-up is one cache line nearly always.
pub(super) struct AddressTable {
    slots: Vec<Slot>,
    n_used: usize,
    shift: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    /// No object lives at zero.
    address: usize,
    node: u32,
}

const EMPTY: Slot = Slot {
    address: 0,
    node: 0,
};

/// 2^64 divided by the golden ratio: spreads addresses, whose lowest bits are alike.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A map by numbers and addresses, of which there is one for each tensor.
pub(super) type ByNumber<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Spreads numbers and addresses; no one chooses them to collide.
#[derive(Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        // The upper bits of the product are the spread ones; maps begin with the lower.
        self.0.rotate_left(32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(SPREAD);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

impl AddressTable {
    /// Room for `n` addresses before it grows.
    pub(super) fn with_room(n: usize) -> Self {
        let n_slots = (n.max(8) * 2).next_power_of_two();
        Self {
            slots: vec![EMPTY; n_slots],
            n_used: 0,
            shift: 64 - n_slots.trailing_zeros(),
        }
    }

    /// The node of `address`; a new address becomes `next`, and true is returned beside it. Nothing
    /// if there is no memory for one more.
    #[inline]
    pub(super) fn insert(&mut self, address: usize, next: u32) -> Option<(u32, bool)> {
        if self.n_used * 2 >= self.slots.len() && !self.grow() {
            return None;
        }
        let position = self.position(address);
        let slot = &mut self.slots[position];
        if slot.address == address {
            return Some((slot.node, false));
        }
        *slot = Slot {
            address,
            node: next,
        };
        self.n_used += 1;
        Some((next, true))
    }

    /// The node of `address`, if it was met.
    pub(super) fn get(&self, address: usize) -> Option<u32> {
        let slot = self.slots[self.position(address)];
        // A traversal may visit null, which marks an empty slot.
        (slot.address == address && address != 0).then_some(slot.node)
    }

    /// Where `address` is, or the empty slot where it belongs.
    #[inline]
    fn position(&self, address: usize) -> usize {
        let mask = self.slots.len() - 1;
        let mut position = ((address as u64).wrapping_mul(SPREAD) >> self.shift) as usize;
        loop {
            let found = self.slots[position].address;
            if found == address || found == 0 {
                return position;
            }
            position = (position + 1) & mask;
        }
    }

    #[cold]
    fn grow(&mut self) -> bool {
        let n_slots = self.slots.len() * 2;
        let mut grown = Vec::new();
        if grown.try_reserve_exact(n_slots).is_err() {
            return false;
        }
        grown.resize(n_slots, EMPTY);
        self.shift -= 1;
        let old = std::mem::replace(&mut self.slots, grown);
        for slot in old.into_iter().filter(|slot| slot.address != 0) {
            let position = self.position(slot.address);
            self.slots[position] = slot;
        }
        true
    }
}
