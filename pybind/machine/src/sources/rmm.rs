//! The RAPIDS memory manager, as far as the resources that the user has set count anything.

use std::collections::BTreeMap;

use gpumem_model::recording::{AllocatorLevels, DeviceKey, Level, Source, Unknown};
use pyo3::prelude::*;

use super::framework::{
    FrameworkSource, cuda_device, imported, known, managed_device, not_imported, pinned_device,
    unused,
};
use super::{Answer, SourceDevice, cuda};

/// A stack of resources is not deeper.
const MAX_DEPTH: usize = 32;
const NESTED: &str = "rmm's statistics count a nested block alone just now";

/// Walks the resource of each device that has a context, from the outermost to the one that calls
/// CUDA. Asking rmm for the resource of a device makes no context and sets none.
#[derive(Default)]
pub(super) struct RmmSource {
    stacks: Vec<(SourceDevice, usize, Py<PyAny>)>,
    /// The most that the statistics of a device were seen to have allocated in all.
    totals: BTreeMap<usize, u64>,
}

impl FrameworkSource for RmmSource {
    fn source(&self) -> Source {
        Source::Rmm
    }

    fn devices(&mut self, py: Python<'_>) -> PyResult<Answer> {
        self.stacks.clear();
        let Some(resources) = imported(py, "rmm.mr")? else {
            return Ok(not_imported());
        };
        let numbers = cuda::numbers_with_context().unwrap_or_default();
        if numbers.is_empty() {
            return Ok(unused("imported, but there is no CUDA context"));
        }
        for number in numbers {
            let resource = resources.call_method1("get_per_device_resource", (number,))?;
            let stack = ResourceStack::new(&resource)?;
            if let Some(found) = stack.found(number).filter(|_| stack.counts) {
                self.stacks.push((found, number, resource.unbind()));
            }
        }
        if self.stacks.is_empty() {
            return Ok(unused(
                "imported, but its resources count nothing: `rmm.statistics.enable_statistics()` \
                 before the first allocation makes them",
            ));
        }
        let mut devices: Vec<SourceDevice> =
            self.stacks.iter().map(|(it, ..)| it.clone()).collect();
        devices.dedup();
        Ok(Ok(devices))
    }

    /// The total of the resources whose memory is of one kind.
    fn read(&mut self, py: Python<'_>, key: &DeviceKey) -> PyResult<AllocatorLevels> {
        let mut total: Option<AllocatorLevels> = None;
        for (_, number, resource) in self.stacks.iter().filter(|(it, ..)| it.key == *key) {
            let mut stack = ResourceStack::new(resource.bind(py))?;
            if let Some(ever) = stack.levels.total_allocated.known() {
                // Counters that were pushed start at zero, and are added when they are popped.
                let most = self.totals.entry(*number).or_default();
                if ever.get() < *most {
                    stack.withhold();
                }
                *most = ever.get().max(*most);
            }
            total = Some(match total {
                None => stack.levels,
                Some(sum) => added(&sum, &stack.levels),
            });
        }
        Ok(total.unwrap_or_else(|| AllocatorLevels::unread(Source::Rmm)))
    }
}

/// Where the memory of a stack of resources is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemoryKind {
    Device,
    Managed,
    Pinned,
}

/// What the resources say that stand on top of each other.
struct ResourceStack {
    levels: AllocatorLevels,
    place: Option<MemoryKind>,
    counts: bool,
}

impl ResourceStack {
    fn new(resource: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut stack = Self {
            levels: AllocatorLevels::unread(Source::Rmm),
            place: None,
            counts: false,
        };
        let mut is_under_pool = false;
        let mut next = Some(resource.clone());
        for _ in 0..MAX_DEPTH {
            let Some(resource) = next.take() else { break };
            let kind = resource.get_type();
            // A resource of the user's own is not called.
            if !kind.module()?.to_string_lossy().starts_with("rmm.") {
                break;
            }
            stack.take_in(
                &kind.name()?.to_string_lossy(),
                &resource,
                &mut is_under_pool,
            )?;
            if resource.hasattr("get_upstream")? {
                next = Some(resource.call_method0("get_upstream")?);
            }
        }
        Ok(stack)
    }

    /// What stands above a pool counts what is allocated, below it what the pool holds.
    fn take_in(
        &mut self,
        kind: &str,
        resource: &Bound<'_, PyAny>,
        is_under_pool: &mut bool,
    ) -> PyResult<()> {
        let levels = &mut self.levels;
        match kind {
            "StatisticsResourceAdaptor" => {
                let counts = resource.getattr("allocation_counts")?;
                let current = figure(&counts, "current_bytes")?;
                if *is_under_pool {
                    set(&mut levels.reserved, current);
                } else if levels.allocated == Level::default() {
                    set(&mut levels.allocated, current);
                    set(&mut levels.peak_allocated, figure(&counts, "peak_bytes")?);
                    set(&mut levels.total_allocated, figure(&counts, "total_bytes")?);
                    levels.n_blocks = figure(&counts, "current_count")?;
                }
            }
            "TrackingResourceAdaptor" | "LimitingResourceAdaptor" => {
                let n_bytes = resource.call_method0("get_allocated_bytes")?.extract().ok();
                let level = if *is_under_pool {
                    &mut levels.reserved
                } else {
                    &mut levels.allocated
                };
                set(level, n_bytes);
                if kind == "LimitingResourceAdaptor" {
                    let limit = resource.call_method0("get_allocation_limit")?;
                    set(&mut levels.limit, limit.extract().ok());
                }
            }
            "PoolMemoryResource" => {
                let n_bytes = resource.call_method0("pool_size")?.extract().ok();
                set(&mut levels.reserved, n_bytes);
                *is_under_pool = true;
            }
            "ArenaMemoryResource" | "BinningMemoryResource" | "FixedSizeMemoryResource" => {
                *is_under_pool = true;
            }
            "CudaMemoryResource" | "CudaAsyncMemoryResource" | "CudaAsyncViewMemoryResource" => {
                self.place = Some(MemoryKind::Device);
            }
            "ManagedMemoryResource"
            | "CudaAsyncManagedMemoryResource"
            | "SystemMemoryResource"
            | "SamHeadroomMemoryResource" => self.place = Some(MemoryKind::Managed),
            "PinnedHostMemoryResource" | "CudaAsyncPinnedMemoryResource" => {
                self.place = Some(MemoryKind::Pinned);
            }
            _ => {}
        }
        self.counts = [&self.levels.allocated, &self.levels.reserved]
            .iter()
            .any(|level| level.known().is_some());
        Ok(())
    }

    fn found(&self, number: usize) -> Option<SourceDevice> {
        Some(match self.place? {
            MemoryKind::Device => cuda_device(number, None, String::new()),
            MemoryKind::Managed => managed_device(),
            MemoryKind::Pinned => pinned_device(),
        })
    }

    fn withhold(&mut self) {
        let level = Level::Unknown(Unknown::Withheld(NESTED.into()));
        self.levels.allocated = level.clone();
        self.levels.peak_allocated = level.clone();
        self.levels.total_allocated = level;
        self.levels.n_blocks = None;
    }
}

/// The figure of the outermost resource that has one. A negative one belongs to a nested block.
fn set(level: &mut Level, figure: Option<u64>) {
    if level.known().is_none()
        && let Some(n_bytes) = figure
    {
        *level = known(n_bytes);
    }
}

/// An attribute; up to rmm 24.02 an item. `None` where it is below zero.
fn figure(counts: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<u64>> {
    let figure = counts.getattr(name).or_else(|_| counts.get_item(name))?;
    Ok(figure.extract().ok())
}

/// The sum over two devices, unknown if either is. Their peaks need not coincide.
fn added(one: &AllocatorLevels, other: &AllocatorLevels) -> AllocatorLevels {
    let sum = |one: &Level, other: &Level| match (one, other) {
        (Level::Known(one), Level::Known(other)) => Level::Known(*one + *other),
        (Level::Known(_), unknown) | (unknown, _) => unknown.clone(),
    };
    AllocatorLevels {
        allocated: sum(&one.allocated, &other.allocated),
        reserved: sum(&one.reserved, &other.reserved),
        total_allocated: sum(&one.total_allocated, &other.total_allocated),
        n_blocks: one.n_blocks.zip(other.n_blocks).map(|(a, b)| a + b),
        ..AllocatorLevels::unread(Source::Rmm)
    }
}
