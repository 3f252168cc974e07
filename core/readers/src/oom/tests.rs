//! Every wording, one line each.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;

/// `torch cuda:0 wanted 283115520 free …`: the known figures, in bytes.
fn shown(message: &OomMessage) -> String {
    let mut words = message
        .framework
        .map_or("unknown", Framework::name)
        .to_owned();
    let mut add = |name: &str, bytes: Option<Bytes>| {
        if let Some(bytes) = bytes {
            write!(words, " · {name} {bytes}").expect("a string takes in every text");
        }
    };
    let figures = &message.figures;
    add("wanted", figures.wanted);
    add("free", figures.free);
    add("total", figures.total);
    add("limit", figures.limit);
    add("allocated", figures.allocated);
    add("reserved", figures.reserved);
    add("cached", figures.unallocated);
    add("private", figures.private_pools);
    add("this process", figures.this_process);
    for other in &figures.others {
        add(&format!("pid {}", other.pid), other.used);
    }
    match &message.device {
        Some(device) => format!("{device} {words}"),
        None => words,
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let message = parse(text).map_or_else(|| "nothing".to_owned(), |message| shown(&message));
    assert_eq!(message, expected);
}

#[test]
fn pytorch_from_2_1_on() {
    check(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 3 has a total \
         capacity of 15.77 GiB of which 512.00 KiB is free. Process 41 has 2.00 GiB memory in use. \
         Including non-PyTorch memory, this process has 13.00 GiB memory in use. Process 42 has \
         17179869184.00 GiB memory in use. 10.00 GiB allowed; Of the allocated memory 12.00 GiB is \
         allocated by PyTorch, with 1.00 GiB allocated in private pools (e.g., CUDA Graphs), and \
         256.00 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is",
        "cuda:3 torch · wanted 1.5 GiB · free 512 KiB · total 15.8 GiB · limit 10 GiB · allocated \
         12 GiB · reserved 12.2 GiB · cached 256 MiB · private 1 GiB · this process 13 GiB · pid 41 \
         2 GiB",
    );
    check(
        "CUDA out of memory. Tried to allocate 20 bytes. GPU 0 has a total capacty of 14.75 GiB of \
         which 0 bytes is free. Of the allocated memory 0 bytes is allocated by PyTorch, and \
         17179869184.00 GiB is reserved by PyTorch but unallocated.",
        "cuda:0 torch · wanted 20 B · free 0 B · total 14.8 GiB · allocated 0 B",
    );
    check(
        "HIP out of memory. Tried to allocate 2.00 MiB. GPU 1 has a total capacity of 191.98 GiB of \
         which 1.00 GiB is free.",
        "cuda:1 torch · wanted 2 MiB · free 1 GiB · total 192 GiB",
    );
    check(
        "CUDA out of memory. Tried to allocate more than 1EB memory.",
        "torch",
    );
}

#[test]
fn a_process_without_a_figure_is_still_one() {
    let message = parse("CUDA out of memory. Process 42 has 17179869184.00 GiB memory in use.");
    let unknown = OtherProcess {
        pid: 42,
        used: None,
    };
    assert_eq!(message.expect("of memory").figures.others, [unknown]);
}

#[test]
fn pytorch_before_2_1() {
    check(
        "CUDA out of memory. Tried to allocate 36.00 MiB (GPU 1; 8.00 GiB total capacity; 6.00 GiB \
         already allocated; 47.06 MiB free; 7.00 GiB allowed; 6.50 GiB reserved in total by PyTorch) \
         If reserved memory is >> allocated memory try setting max_split_size_mb",
        "cuda:1 torch · wanted 36 MiB · free 47.1 MiB · total 8 GiB · limit 7 GiB · allocated 6 GiB · \
         reserved 6.5 GiB · cached 512 MiB",
    );
    check(
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 8.00 GiB total capacity; 6.00 GiB \
         already allocated; 14.94 MiB free; 128.00 MiB cached)",
        "cuda:0 torch · wanted 20 MiB · free 14.9 MiB · total 8 GiB · allocated 6 GiB · reserved \
         6.12 GiB · cached 128 MiB",
    );
    check(
        "NPU out of memory. Tried to allocate 2.00 GiB (NPU 4; 29.50 GiB total capacity; 28.00 GiB \
         already allocated; 28.00 GiB current active; 1.00 GiB free; 28.50 GiB reserved in total by \
         PyTorch)",
        "npu:4 torch · wanted 2 GiB · free 1 GiB · total 29.5 GiB · allocated 28 GiB · reserved \
         28.5 GiB · cached 512 MiB",
    );
    check(
        "cuda runtime error (2) : out of memory at THCStorage.cu:58",
        "driver",
    );
}

#[test]
fn pytorch_on_the_drivers_own_pool() {
    check(
        "Allocation on device 2 would exceed allowed memory. (out of memory)\n\
         Currently allocated     : 44.18 GiB\n\
         Requested               : 500.00 MiB\n\
         Device limit            : 47.26 GiB\n\
         Free (according to CUDA): 72.38 MiB\n\
         PyTorch limit (set by user-supplied memory fraction)\n\
         \x20                       : 17179869184.00 GiB",
        "cuda:2 torch · wanted 500 MiB · free 72.4 MiB · total 47.3 GiB · allocated 44.2 GiB",
    );
}

#[test]
fn pytorch_elsewhere() {
    check(
        "XPU out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 12.00 GiB.",
        "xpu:1 torch · wanted 20 MiB · total 12 GiB",
    );
    check(
        "MPS backend out of memory (MPS allocated: 17.00 GB, other allocations: 512.00 MB, max \
         allowed: 18.13 GB). Tried to allocate 256 bytes on shared pool. Use PYTORCH_MPS_HIGH",
        "mps:0 torch · wanted 256 B · limit 18.1 GiB · allocated 17 GiB · this process 17.5 GiB",
    );
    check(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: \
         you tried to allocate 4000000000000 bytes. Error code 12 (Cannot allocate memory)",
        "host torch · wanted 3.64 TiB",
    );
    check(
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some",
        "torch",
    );
    check(
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "torch",
    );
}

#[test]
fn in_a_worker_of_a_data_loader() {
    check(
        "Caught OutOfMemoryError in DataLoader worker process 0.\n\
         Original Traceback (most recent call last):\n  File \"worker.py\", line 351, in _worker_loop\n\
         \x20   raise RuntimeError(\"CUDA out of memory. Tried nothing\")\n\
         torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total \
         capacity of 8.00 GiB of which 3.00 MiB is free.",
        "cuda:0 torch · wanted 64 MiB · free 3 MiB · total 8 GiB",
    );
}

#[test]
fn xla() {
    check(
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 86.89GiB.",
        "jax · wanted 86.9 GiB",
    );
    check(
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 16.00GiB with allocator GPU_1_bfc \
         (set the environment variable TF_GPU_ALLOCATOR=cuda_malloc_async)",
        "cuda:1 jax · wanted 16 GiB",
    );
    check(
        "RESOURCE_EXHAUSTED: Out of memory allocating 70368744177664 bytes.",
        "jax · wanted 64 TiB",
    );
    check(
        "INTERNAL: Failed to allocate request for 2.00GiB (2147483648B) on device ordinal 3",
        "cuda:3 jax · wanted 2 GiB",
    );
    check(
        "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space \
         hbm. Used 34.00G of 30.75G hbm. Exceeded hbm capacity by 3.25G.",
        "jax · total 30.8 GiB · allocated 34 GiB",
    );
    check(
        "RESOURCE_EXHAUSTED: Attempting to allocate 1.50G. That was not possible. There are 512.00M \
         free.; (0x0x0_HBM0)",
        "jax · wanted 1.5 GiB · free 512 MiB",
    );
}

#[test]
fn tensorflow() {
    check(
        "OOM when allocating tensor with shape[500,512,4,4] and type float on \
         /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc [Op:Conv2D]",
        "cuda:1 tensorflow · wanted 15.6 MiB",
    );
    check(
        "OOM when allocating tensor with shape[] and type complex128 on \
         /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
        "host tensorflow · wanted 16 B",
    );
    check(
        "OOM when allocating tensor with shape[99999999999,99999999999] and type double",
        "tensorflow",
    );
    check(
        "{{function_node __wrapped__Mul_device_/job:localhost/replica:0/task:0/device:GPU:0}} \
         failed to allocate memory [Op:Mul]",
        "cuda:0 tensorflow",
    );
    check("Dst tensor is not initialized.", "tensorflow");
    check(
        "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.25GiB with freed_by_count=0.",
        "cuda:0 tensorflow · wanted 2.25 GiB",
    );
}

#[test]
fn arrays_and_pools() {
    check(
        "Out of memory allocating 800,000,000,000 bytes (allocated so far: 512 bytes, limit set to: \
         1,073,741,824 bytes).",
        "cupy · wanted 745 GiB · limit 1 GiB · allocated 512 B",
    );
    check(
        "std::bad_alloc: out_of_memory: CUDA error (failed to allocate 8589934592 bytes) at: \
         rmm/mr/device/cuda_memory_resource.hpp:70: cudaErrorMemoryAllocation out of memory",
        "rmm · wanted 8 GiB",
    );
    check(
        "RMM failure at:pool_memory_resource.hpp:313: Maximum pool size exceeded (failed to allocate \
         1.000000 GiB): std::bad_alloc",
        "rmm · wanted 1 GiB",
    );
    check(
        "[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "numba",
    );
    check(
        "Unable to allocate 7.45 GiB for an array with shape (1000, 1000, 1000) and data type float64",
        "host numpy · wanted 7.45 GiB",
    );
    check(
        "Memory allocation error on worker 0: std::bad_alloc: cudaErrorMemoryAllocation: out of \
         memory\n- Free memory: 1.5GB\n- Requested memory: 3.0GB",
        "driver · wanted 3 GiB · free 1.5 GiB",
    );
}

#[test]
fn the_simulated_device() {
    check(
        "Simulated CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of \
         1024.00 MiB of which 424.00 MiB is free.",
        "sim:0 sim · wanted 500 MiB · free 424 MiB · total 1 GiB",
    );
    check(
        "Simulated CUDA out of memory. Tried to allocate 500.00 MiB. GPU 5 has a total capacity of",
        "sim:5 sim · wanted 500 MiB",
    );
}

#[test]
fn what_is_not_of_memory_tells_nothing() {
    for text in [
        "",
        "out of memory",
        "index 4 is out of bounds for dimension 0 with size 3",
        "RESOURCE_EXHAUSTED: Received message larger than max (4194308 vs. 4194304)",
        "429 RESOURCE_EXHAUSTED. You exceeded your current quota",
        "out of resource: shared memory, Required: 147456, Hardware limit: 101376.",
        "operands for an array with shape (3,) do not match",
        "CUDA error: device-side assert triggered",
    ] {
        check(text, "nothing");
    }
}

#[track_caller]
fn check_class(module: &str, name: &str, text: &str, expected: Option<&str>) {
    let class = |module: &str, name: &str| ClassName {
        module: module.to_owned(),
        name: name.to_owned(),
    };
    let classes = [class(module, name), class("builtins", "Exception")];
    let message = of_exception(&classes, text);
    assert_eq!(message.as_ref().map(shown).as_deref(), expected);
}

#[test]
fn a_class_says_it_without_words() {
    check_class("torch", "OutOfMemoryError", "", Some("torch"));
    check_class("torch.cuda", "OutOfMemoryError", "no room", Some("torch"));
    check_class("cupy.cuda.memory", "OutOfMemoryError", "", Some("cupy"));
    check_class("__main__", "OutOfMemoryError", "", Some("unknown"));
    check_class(
        "tensorflow.python.framework.errors_impl",
        "ResourceExhaustedError",
        "on /device:GPU:1",
        Some("cuda:1 tensorflow"),
    );
    check_class(
        "numpy._core._exceptions",
        "MemoryError",
        "",
        Some("host numpy"),
    );
    check_class(
        "google.api_core.exceptions",
        "ResourceExhausted",
        "quota",
        None,
    );
    check_class("builtins", "MemoryError", "out of room", None);
    check_class("builtins", "MemoryError", "", Some("host unknown"));
    check_class("__main__", "MemoryError", "", None);
    check_class(
        "builtins",
        "RuntimeError",
        "CUDA error: out of memory",
        Some("driver"),
    );
}

proptest! {
    #[test]
    fn a_size_in_any_unit_is_read(n in 1_u64..1 << 20, unit in 0_u32..4) {
        let name = ["bytes", "KiB", "MiB", "GiB"][unit as usize];
        let text = format!("CUDA out of memory. Tried to allocate {n}.00 {name}. GPU 0");
        let message = parse(&text).expect("of memory");
        prop_assert_eq!(message.figures.wanted, Some(Bytes::new(n << (10 * unit))));
    }
}
