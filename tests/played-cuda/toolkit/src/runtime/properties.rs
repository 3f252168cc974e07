//! `cudaDeviceProp`, in the form of each major version.

use std::ffi::{c_char, c_int, c_void};

use played_machine::put;

use super::current::checked;
use crate::calls::Answer;
use crate::driver::{
    cuDeviceGetAttribute, cuDeviceGetName, cuDeviceGetUuid_v2, cuDeviceTotalMem_v2,
};
use crate::error::Error;
use crate::version;

calls! {
    cudaGetDeviceProperties(properties: *mut c_void, device: c_int) {
        put_properties(properties, device)
    }

    /// CUDA 12's.
    cudaGetDeviceProperties_v2(properties: *mut c_void, device: c_int) {
        put_properties(properties, device)
    }
}

/// Writes a structure of C's, field by field.
struct Structure {
    place: *mut u8,
    /// What has been written so far.
    n_bytes: usize,
    device: c_int,
}

impl Structure {
    fn field<T>(&mut self, figure: T) -> Answer {
        self.n_bytes = self.n_bytes.next_multiple_of(align_of::<T>());
        put(self.place.wrapping_add(self.n_bytes).cast(), figure)?;
        self.n_bytes += size_of::<T>();
        Ok(())
    }

    fn zeros(&mut self, n_ints: usize) -> Answer {
        (0..n_ints).try_for_each(|_| self.field::<c_int>(0))
    }

    /// A field that holds an attribute.
    fn int(&mut self, attribute: c_int) -> Answer {
        let figure = self.attribute(attribute)?;
        self.field(figure)
    }

    fn ints(&mut self, attributes: &[c_int]) -> Answer {
        attributes.iter().try_for_each(|it| self.int(*it))
    }

    /// The same in a field for sizes.
    fn size(&mut self, attribute: c_int) -> Answer {
        let figure = self.attribute(attribute)?;
        self.field(figure as usize)
    }

    fn attribute(&self, attribute: c_int) -> Result<c_int, Error> {
        let mut figure = 0;
        cuDeviceGetAttribute(&raw mut figure, attribute, self.device)?;
        Ok(figure)
    }
}

fn put_properties(place: *mut c_void, device: c_int) -> Answer {
    checked(device)?;
    let is_12 = !version::is_13();
    let mut name: [c_char; 256] = [0; 256];
    let (mut uuid, mut n_bytes) = ([0; 16], 0);
    cuDeviceGetName(name.as_mut_ptr(), 256, device)?;
    cuDeviceGetUuid_v2(&raw mut uuid, device)?;
    cuDeviceTotalMem_v2(&raw mut n_bytes, device)?;
    let mut all = Structure {
        place: place.cast(),
        n_bytes: 0,
        device,
    };
    // Fields in the order of the documentation; attributes by their numbers.
    all.field(name)?;
    all.field(uuid)?;
    all.field([0_u8; 8])?; // luid
    all.zeros(1)?; // luidDeviceNodeMask
    all.field(n_bytes)?; // totalGlobalMem
    all.size(8)?; // sharedMemPerBlock
    all.ints(&[12, 10])?; // regsPerBlock, warpSize
    all.size(11)?; // memPitch
    all.ints(&[1, 2, 3, 4, 5, 6, 7])?; // maxThreadsPerBlock, maxThreadsDim, maxGridSize
    if is_12 {
        all.int(13)?; // clockRate
    }
    all.size(9)?; // totalConstMem
    all.ints(&[75, 76])?; // major, minor
    all.size(14)?; // textureAlignment
    all.size(51)?; // texturePitchAlignment
    if is_12 {
        all.int(15)?; // deviceOverlap
    }
    all.int(16)?; // multiProcessorCount
    if is_12 {
        all.zeros(1)?; // kernelExecTimeoutEnabled
    }
    all.ints(&[18, 19])?; // integrated, canMapHostMemory
    if is_12 {
        all.zeros(1)?; // computeMode
    }
    all.int(21)?; // maxTexture1D
    all.zeros(1)?; // maxTexture1DMipmap
    if is_12 {
        all.zeros(1)?; // maxTexture1DLinear
    }
    all.zeros(23)?; // maxTexture2D … maxTextureCubemapLayered
    all.zeros(14)?; // maxSurface1D … maxSurfaceCubemapLayered
    all.size(30)?; // surfaceAlignment
    all.ints(&[31, 32, 33, 34, 50, 35])?; // concurrentKernels, ECC, PCI bus, device, domain, tccDriver
    all.ints(&[40, 41])?; // asyncEngineCount, unifiedAddressing
    if is_12 {
        all.int(36)?; // memoryClockRate
    }
    all.ints(&[37, 38, 108, 39])?; // memoryBusWidth, l2CacheSize, persisting, maxThreadsPerMultiProcessor
    all.ints(&[78, 79, 80])?; // streamPriorities, globalL1Cache, localL1Cache
    all.size(81)?; // sharedMemPerMultiprocessor
    all.ints(&[82, 83, 84, 85, 86])?; // regsPerMultiprocessor … hostNativeAtomicSupported
    if is_12 {
        all.int(87)?; // singleToDoublePrecisionPerfRatio
    }
    all.ints(&[88, 89, 90, 91, 95])?; // pageableMemoryAccess … cooperativeLaunch
    if is_12 {
        all.int(96)?; // cooperativeMultiDeviceLaunch
    }
    all.size(97)?; // sharedMemPerBlockOptin
    all.ints(&[100, 101, 106, 109])?; // host page tables, direct access, maxBlocks, accessPolicy
    all.size(111)?; // reservedSharedMemPerBlock
    all.ints(&[99, 112, 113, 114, 115])?; // hostRegister, sparse arrays, read-only, semaphores, pools
    all.zeros(4)?; // GPUDirect RDMA, memoryPoolSupportedHandleTypes
    all.zeros(1)?; // deferredMappingCudaArraySupported
    all.ints(&[125, 120, 129])?; // ipcEventSupported, clusterLaunch, unifiedFunctionPointers
    all.zeros(63) // NUMA and PCI numbers of CUDA 13, and what both reserve
}
