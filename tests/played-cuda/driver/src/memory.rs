//! Memory of devices and of the host.

mod allocation;
mod areas;
mod copies;
mod fills;
mod mapping;
mod pointers;
mod pools;
mod reserved;

pub(crate) use areas::Areas;
pub(crate) use pools::Pool;
pub(crate) use reserved::Physical;

use crate::calls::EntryPoint;

/// Those of every kind of memory.
pub(crate) const ENTRY_POINTS: [&[EntryPoint]; 6] = [
    allocation::ENTRY_POINTS,
    copies::ENTRY_POINTS,
    fills::ENTRY_POINTS,
    pointers::ENTRY_POINTS,
    pools::ENTRY_POINTS,
    reserved::ENTRY_POINTS,
];
