//! Modules and libraries of code: any name is found in any of them.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint};

use played_machine::{put, read_text};

use crate::calls::Answer;
use crate::handles::Handle;
use crate::process::process;

/// A module, with the functions that were looked up in it.
#[derive(Debug, Default)]
pub(crate) struct Module {
    functions: HashMap<String, Handle>,
}

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    module: Handle,
    attributes: HashMap<c_int, c_int>,
}

const MAX_THREADS_PER_BLOCK: c_int = 0;
const N_REGISTERS: c_int = 4;
const PTX_VERSION: c_int = 5;
const BINARY_VERSION: c_int = 6;
const MAX_DYNAMIC_SHARED_BYTES: c_int = 8;

calls! {
    cuModuleLoad(_call, module: *mut Handle, _path: *const c_char) {
        load(module)
    }

    cuModuleLoadData(_call, module: *mut Handle, _image: usize) {
        load(module)
    }

    cuModuleLoadDataEx(
        _call, module: *mut Handle, _image: usize, _n: c_uint, _options: usize, _values: usize,
    ) {
        load(module)
    }

    cuModuleLoadFatBinary(_call, module: *mut Handle, _image: usize) {
        load(module)
    }

    cuModuleUnload(_call, module: Handle) {
        process()?.modules.remove(module).map(|_| ())
    }

    cuModuleGetFunction(_call, function: *mut Handle, module: Handle, name: *const c_char) {
        look_up(function, module, name)
    }

    cuLibraryLoadData(
        _call, library: *mut Handle, _code: usize, _options: usize, _values: usize, _n: c_uint,
        _library_options: usize, _library_values: usize, _n_library: c_uint,
    ) {
        load(library)
    }

    cuLibraryUnload(_call, library: Handle) {
        process()?.modules.remove(library).map(|_| ())
    }

    cuLibraryGetKernel(_call, kernel: *mut Handle, library: Handle, name: *const c_char) {
        look_up(kernel, library, name)
    }

    cuLibraryGetModule(_call, module: *mut Handle, library: Handle) {
        process()?.modules.get(library)?;
        Ok(put(module, library)?)
    }

    cuKernelGetFunction(_call, function: *mut Handle, kernel: Handle) {
        process()?.functions.get(kernel)?;
        Ok(put(function, kernel)?)
    }

    cuFuncGetModule(_call, module: *mut Handle, function: Handle) {
        Ok(put(module, process()?.functions.get(function)?.module)?)
    }

    cuFuncGetAttribute(call, figure: *mut c_int, which: c_int, function: Handle) {
        let process = process()?;
        let function = process.functions.get(function)?;
        let capability = process.current_device()?.capability(&call.state) as c_int;
        let usual = match which {
            MAX_THREADS_PER_BLOCK => 1024,
            N_REGISTERS => 32,
            PTX_VERSION | BINARY_VERSION => capability,
            MAX_DYNAMIC_SHARED_BYTES => 49152,
            _ => 0,
        };
        Ok(put(figure, function.attributes.get(&which).copied().unwrap_or(usual))?)
    }

    cuFuncSetAttribute(_call, function: Handle, which: c_int, figure: c_int) {
        process()?.functions.get_mut(function)?.attributes.insert(which, figure);
        Ok(())
    }

    cuFuncSetCacheConfig(_call, function: Handle, _preference: c_int) {
        process()?.functions.get(function).map(|_| ())
    }
}

fn load(module: *mut Handle) -> Answer {
    let mut process = process()?;
    process.context(0)?;
    Ok(put(module, process.modules.add(Module::default()))?)
}

fn look_up(place: *mut Handle, module: Handle, name: *const c_char) -> Answer {
    let name = read_text(name)?;
    let mut process = process()?;
    if let Some(known) = process.modules.get(module)?.functions.get(&name) {
        return Ok(put(place, *known)?);
    }
    let function = Function {
        module,
        attributes: HashMap::new(),
    };
    let handle = process.functions.add(function);
    let module = process.modules.get_mut(module)?;
    module.functions.insert(name, handle);
    Ok(put(place, handle)?)
}
