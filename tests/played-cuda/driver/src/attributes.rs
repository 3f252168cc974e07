//! `cuDeviceGetAttribute`, by the numbers of `CUdevice_attribute`.

use std::ffi::c_int;

use played_machine::{Device, State, put};

use crate::process::process;

const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const INTEGRATED: c_int = 18;
const PCI_BUS: c_int = 33;
const N_MULTIPROCESSORS: c_int = 16;
const SHARED_PER_MULTIPROCESSOR: c_int = 81;
const SHARED_PER_BLOCK_IF_ASKED: c_int = 97;
const CLUSTERS: c_int = 120;

/// Attributes that are 1.
const YES: [c_int; 26] = [
    15, 19, 31, 32, 41, 78, 79, 80, 83, 89, 90, 91, 95, 98, 99, 102, 103, 113, 114, 115, 119, 121,
    122, 123, 125, 128,
];

/// Attributes with a figure: those of a data centre's card of capability 8.0.
const FIGURES: [(c_int, c_int); 33] = [
    // A block: threads, and their number along each axis; blocks along each axis.
    (1, 1024),
    (2, 1024),
    (3, 1024),
    (4, 64),
    (5, c_int::MAX),
    (6, 65535),
    (7, 65535),
    // Shared and constant bytes, the width of a warp, the longest pitch, registers, kHz.
    (8, 49152),
    (9, 65536),
    (10, 32),
    (11, c_int::MAX),
    (12, 65536),
    (13, 1_410_000),
    // Alignment of textures; multiprocessors; the largest textures.
    (14, 512),
    (N_MULTIPROCESSORS, 108),
    (21, 131_072),
    (22, 131_072),
    (23, 65536),
    (24, 16384),
    (25, 16384),
    (26, 16384),
    // Alignment of surfaces; the memory's clock, bus and cache; threads; copy engines.
    (30, 512),
    (36, 1_215_000),
    (37, 5120),
    (38, 40 << 20),
    (39, 2048),
    (40, 3),
    (51, 32),
    // Per multiprocessor: shared bytes, registers; shared bytes of a block that asks; blocks.
    (SHARED_PER_MULTIPROCESSOR, 167_936),
    (82, 65536),
    (SHARED_PER_BLOCK_IF_ASKED, 166_912),
    (106, 32),
    (111, 1024),
];

calls! {
    cuDeviceGetAttribute(call, figure: *mut c_int, which: c_int, ordinal: c_int) {
        let device = process()?.device(ordinal)?;
        Ok(put(figure, attribute(&call.state, device, which))?)
    }
}

fn attribute(state: &State, device: Device, which: c_int) -> c_int {
    let capability = device.capability(state) as c_int;
    let is_newer = capability >= 90;
    match which {
        CAPABILITY_MAJOR => capability / 10,
        CAPABILITY_MINOR => capability % 10,
        INTEGRATED => c_int::from(device.text(state, "integrated").is_some()),
        PCI_BUS => device.bus() as c_int,
        CLUSTERS => c_int::from(is_newer),
        N_MULTIPROCESSORS if is_newer => 132,
        SHARED_PER_MULTIPROCESSOR if is_newer => 233_472,
        SHARED_PER_BLOCK_IF_ASKED if is_newer => 232_448,
        which if YES.contains(&which) => 1,
        which => {
            let known = FIGURES.iter().find(|(of, _)| *of == which);
            known.map_or(0, |(_, figure)| *figure)
        }
    }
}
