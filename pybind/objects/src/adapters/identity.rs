//! Which storage is which, over time.
//!
//! An address is used again as soon as its block is free. What stands for the bytes in a framework
//! (torch's `StorageImpl`, an array's object) has another address of its own; both together and the
//! size are rarely met again for another storage: in 0 to 14 % of the cases where a list is replaced
//! by its equal. Therefore the bytes of a name are counted, and identity only
//! marks new storages.

use gpumem_model::units::Bytes;

use super::StorageId;

/// Above the numbers of simulated storages, which have their own and use none again.
const FIRST: u64 = 1 << 48;

/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The id of the storage of these bytes; `owner` is the address of the framework's object.
pub(super) fn storage_id(address: usize, n_bytes: Bytes, owner: usize) -> StorageId {
    let mix = |sum: u64, number: u64| (sum ^ number).wrapping_mul(SPREAD).rotate_left(29);
    let numbers = [address as u64, n_bytes.get(), owner as u64];
    let sum = numbers.into_iter().fold(0, mix);
    // The highest two bits mark storages of the user's adapters and of pools.
    let over_time = (sum & (u64::MAX >> 2)) | FIRST;
    StorageId {
        now: mix(mix(0, address as u64), n_bytes.get()),
        over_time,
    }
}
