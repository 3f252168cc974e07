//! Ranges of addresses that physical memory is mapped into: expandable segments.

use std::ffi::{c_int, c_ushort};

use played_machine::{put, read};

use super::areas::{Area, Kind};
use super::mapping::{self, Access, GRANULE};
use crate::calls::Answer;
use crate::code::Code;
use crate::handles::Handle;
use crate::process::{Process, initialised, process};

/// Memory without an address.
#[derive(Debug)]
pub(crate) struct Physical {
    properties: Properties,
    n_bytes: usize,
    /// The handles and mappings that it is kept for.
    n_users: usize,
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Properties {
    kind: c_int,
    handle_types: c_int,
    location_kind: c_int,
    location: c_int,
    windows_metadata: usize,
    compression: u8,
    is_rdma_capable: u8,
    usage: c_ushort,
    reserved: [u8; 4],
}

const ON_DEVICE: c_int = 1;

impl Physical {
    /// The device that it lies on; `None` for the host.
    fn ordinal(&self) -> Option<c_int> {
        let Properties {
            location_kind,
            location,
            ..
        } = self.properties;
        (location_kind == ON_DEVICE).then_some(location)
    }
}

impl Process {
    fn drop_physical(&mut self, handle: Handle) -> Answer {
        let physical = self.physical.get_mut(handle)?;
        physical.n_users -= 1;
        if physical.n_users == 0 {
            let physical = self.physical.remove(handle)?;
            if let Some(ordinal) = physical.ordinal() {
                self.device(ordinal)?.give(physical.n_bytes as u64);
            }
        }
        Ok(())
    }
}

calls! {
    cuMemGetAllocationGranularity(_call, n_bytes: *mut usize, _properties: *const Properties, _which: c_int) {
        Ok(put(n_bytes, GRANULE)?)
    }

    cuMemAddressReserve(_call, start: *mut usize, n_bytes: usize, align: usize, _wish: usize, _flags: u64) {
        initialised()?;
        let range = mapping::map(n_bytes, align.max(GRANULE), Access::Forbidden);
        Ok(put(start, range.ok_or(Code::OUT_OF_MEMORY)?)?)
    }

    cuMemAddressFree(_call, start: usize, n_bytes: usize) {
        initialised()?;
        mapping::unmap(start, n_bytes);
        Ok(())
    }

    cuMemCreate(call, handle: *mut Handle, n_bytes: usize, properties: *const Properties, _flags: u64) {
        if n_bytes == 0 || !n_bytes.is_multiple_of(GRANULE) {
            return Err(Code::INVALID_VALUE);
        }
        let physical = Physical { properties: read(properties)?, n_bytes, n_users: 1 };
        let mut process = process()?;
        if let Some(ordinal) = physical.ordinal()
            && !process.device(ordinal)?.take(&call.state, n_bytes as u64)
        {
            return Err(Code::OUT_OF_MEMORY);
        }
        Ok(put(handle, process.physical.add(physical))?)
    }

    cuMemRelease(_call, handle: Handle) {
        process()?.drop_physical(handle)
    }

    cuMemMap(_call, start: usize, n_bytes: usize, _offset: usize, handle: Handle, _flags: u64) {
        let mut process = process()?;
        let physical = process.physical.get_mut(handle)?;
        let ordinal = physical.ordinal().unwrap_or(0);
        if !mapping::reset(start, n_bytes) {
            return Err(Code::INVALID_VALUE);
        }
        physical.n_users += 1;
        let kind = Kind::Mapped(handle);
        process.areas.add(Area { start, n_bytes, n_counted: 0, kind, ordinal, pool: None, id: 0 });
        Ok(())
    }

    cuMemSetAccess(_call, start: usize, n_bytes: usize, _access: usize, _n: usize) {
        initialised()?;
        mapping::allow(start, n_bytes).then_some(()).ok_or(Code::INVALID_VALUE)
    }

    cuMemUnmap(_call, start: usize, n_bytes: usize) {
        let mut process = process()?;
        let mut at = start;
        while at < start + n_bytes {
            let area = process.areas.at(at).ok_or(Code::INVALID_VALUE)?;
            let Kind::Mapped(physical) = area.kind else {
                return Err(Code::INVALID_VALUE);
            };
            process.areas.remove(area.start);
            process.drop_physical(physical)?;
            at = area.start + area.n_bytes;
        }
        mapping::reset(start, n_bytes).then_some(()).ok_or(Code::INVALID_VALUE)
    }

    cuMemRetainAllocationHandle(_call, handle: *mut Handle, address: usize) {
        let mut process = process()?;
        let area = process.areas.at(address).ok_or(Code::INVALID_VALUE)?;
        let Kind::Mapped(physical) = area.kind else {
            return Err(Code::INVALID_VALUE);
        };
        process.physical.get_mut(physical)?.n_users += 1;
        Ok(put(handle, physical)?)
    }

    cuMemGetAllocationPropertiesFromHandle(_call, properties: *mut Properties, handle: Handle) {
        Ok(put(properties, process()?.physical.get(handle)?.properties)?)
    }
}
