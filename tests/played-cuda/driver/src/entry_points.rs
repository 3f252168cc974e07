//! Looking functions up by name and version.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use played_machine::{put, read_text};

use crate::calls::{Answer, EntryPoint};
use crate::code::Code;
use crate::{
    attributes, code, contexts, devices, events, functions, graphs, launches, memory, streams,
    unsupported,
};

const FOUND: c_int = 0;
const NOT_FOUND: c_int = 1;
const TOO_OLD: c_int = 2;

calls! {
    [11030]
    cuGetProcAddress(_call, name: *const c_char, address: *mut *const c_void, version: c_int, _flags: u64) {
        find(name, address, version, ptr::null_mut())
    }

    [12000]
    cuGetProcAddress_v2(
        _call, name: *const c_char, address: *mut *const c_void, version: c_int, _flags: u64,
        status: *mut c_int,
    ) {
        find(name, address, version, status)
    }

    /// Tables that no document describes serve NVIDIA's own runtime alone, which also wants
    /// a proof that the driver is NVIDIA's. Neither is played.
    cuGetExportTable(_call, table: *mut *const c_void, _id: usize) {
        put(table, ptr::null())?;
        Err(Code::NOT_FOUND)
    }
}

fn all() -> impl Iterator<Item = &'static EntryPoint> {
    let modules = [
        attributes::ENTRY_POINTS,
        code::ENTRY_POINTS,
        contexts::ENTRY_POINTS,
        std::slice::from_ref(&contexts::RETAIN),
        std::slice::from_ref(&graphs::INSTANTIATE),
        devices::ENTRY_POINTS,
        ENTRY_POINTS,
        events::ENTRY_POINTS,
        functions::ENTRY_POINTS,
        graphs::ENTRY_POINTS,
        launches::ENTRY_POINTS,
        streams::ENTRY_POINTS,
        unsupported::ENTRY_POINTS,
    ];
    modules.into_iter().chain(memory::ENTRY_POINTS).flatten()
}

/// The function's newest form that is no newer than the version.
fn find(
    name: *const c_char,
    address: *mut *const c_void,
    version: c_int,
    status: *mut c_int,
) -> Answer {
    let name = read_text(name)?;
    let of_name = || all().filter(|it| it.name() == name);
    let found = of_name()
        .filter(|it| it.since <= version)
        .max_by_key(|it| it.since);
    let outcome = match found {
        Some(_) => FOUND,
        None if of_name().next().is_some() => TOO_OLD,
        None => NOT_FOUND,
    };
    if !status.is_null() {
        put(status, outcome)?;
    }
    put(address, found.map_or(ptr::null(), |it| (it.address)()))?;
    found.map(|_| ()).ok_or(Code::NOT_FOUND)
}
