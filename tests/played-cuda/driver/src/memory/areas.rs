//! Which memory is where.

use std::collections::BTreeMap;
use std::ffi::c_int;

use played_machine::{Device, State};

use super::mapping::{self, Access, GRANULE};
use crate::calls::Answer;
use crate::code::Code;
use crate::handles::Handle;
use crate::process::Process;

/// What an area is to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Device,
    Managed,
    /// Memory of the host that this driver has mapped.
    Host,
    /// Memory of the host that is the caller's own.
    Registered,
    /// A part of a reserved range, with physical memory.
    Mapped(Handle),
}

impl Kind {
    pub(super) fn is_on_host(self) -> bool {
        matches!(self, Self::Host | Self::Registered)
    }
}

/// A piece of memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) start: usize,
    pub(super) n_bytes: usize,
    /// What it takes of its device.
    pub(super) n_counted: u64,
    pub(super) kind: Kind,
    pub(super) ordinal: c_int,
    pub(super) pool: Option<Handle>,
    pub(super) id: u64,
}

/// Every piece, by its address.
#[derive(Debug, Default)]
pub(crate) struct Areas {
    by_start: BTreeMap<usize, Area>,
    n_made: u64,
}

impl Areas {
    /// The piece that an address lies in.
    pub(super) fn at(&self, address: usize) -> Option<Area> {
        let (_, area) = self.by_start.range(..=address).next_back()?;
        (address - area.start < area.n_bytes).then_some(*area)
    }

    pub(super) fn add(&mut self, mut area: Area) {
        self.n_made += 1;
        area.id = self.n_made;
        self.by_start.insert(area.start, area);
    }

    /// Takes out the piece that starts there.
    pub(super) fn remove(&mut self, start: usize) -> Option<Area> {
        self.by_start.remove(&start)
    }
}

/// Memory that a caller wants.
pub(super) struct Wanted {
    pub(super) n_bytes: usize,
    pub(super) kind: Kind,
    pub(super) ordinal: c_int,
    pub(super) pool: Option<Handle>,
}

impl Process {
    /// Takes memory of a device or of the host; its address.
    pub(super) fn allocate(&mut self, state: &State, wanted: &Wanted) -> Result<usize, Code> {
        let &Wanted {
            n_bytes,
            kind,
            ordinal,
            pool,
        } = wanted;
        if n_bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let n_counted = if kind.is_on_host() {
            0
        } else {
            counted(n_bytes).ok_or(Code::OUT_OF_MEMORY)?
        };
        let device = self.device(ordinal)?;
        self.take(state, device, pool, n_counted)?;
        let align = if n_bytes >= GRANULE / 2 { GRANULE } else { 0 };
        let Some(start) = mapping::map(n_bytes, align, Access::Full) else {
            self.give(device, pool, n_counted);
            return Err(Code::OUT_OF_MEMORY);
        };
        self.areas.add(Area {
            start,
            n_bytes,
            n_counted,
            kind,
            ordinal,
            pool,
            id: 0,
        });
        Ok(start)
    }

    /// Gives it back. Nothing has to be done for null.
    pub(super) fn release(&mut self, start: usize) -> Answer {
        if start == 0 {
            return Ok(());
        }
        let area = self.areas.remove(start).ok_or(Code::INVALID_VALUE)?;
        let device = self.device(area.ordinal)?;
        self.give(device, area.pool, area.n_counted);
        if area.kind != Kind::Registered {
            mapping::unmap(area.start, area.n_bytes);
        }
        Ok(())
    }

    fn take(
        &mut self,
        state: &State,
        device: Device,
        pool: Option<Handle>,
        n_counted: u64,
    ) -> Answer {
        let n_missing = match pool {
            None => n_counted,
            Some(pool) => self.pools.get(pool)?.n_missing(n_counted),
        };
        if !device.take(state, n_missing) {
            return Err(Code::OUT_OF_MEMORY);
        }
        if let Some(pool) = pool {
            self.pools.get_mut(pool)?.grow(n_missing, n_counted);
        }
        Ok(())
    }

    fn give(&mut self, device: Device, pool: Option<Handle>, n_counted: u64) {
        match pool.and_then(|pool| self.pools.get_mut(pool).ok()) {
            None => device.give(n_counted),
            Some(pool) => device.give(pool.shrink(n_counted)),
        }
    }
}

/// What an allocation takes: large ones whole granules, small ones share them.
fn counted(n_bytes: usize) -> Option<u64> {
    let unit = if n_bytes >= GRANULE / 2 { GRANULE } else { 512 };
    Some(n_bytes.checked_next_multiple_of(unit)? as u64)
}
