//! NVIDIA's management library: devices and their memory without a context.

use std::collections::{BTreeMap, HashMap};
use std::process;
use std::time::Instant;

use gpumem_model::recording::{DeviceKey, DeviceKind, DriverLevels, Level, Source, Unknown};
use gpumem_model::units::Bytes;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml};

use super::cuda::{Footing, footing};
use super::process::{descends_from, is_in_first_pid_namespace, is_in_wsl};
use super::unified::NOT_SUPPORTED;
use super::visible::{Unit, UnitVisibility, Visibility, visibilities};
use super::{Answer, DriverSource, ProcessLists, SourceDevice, Unused};

/// Listing processes takes at most this part of a run: 0.1 %.
const REST_PER_LIST: u32 = 1000;
const WSL: &str = "WSL 2 does not tell what a process uses";
const WDDM: &str = "Windows manages the memory of this GPU (WDDM) and does not tell it by process";
const NOT_REPORTED: &str =
    "the driver does not tell what a process uses, as without the right to see it";
const NOT_LISTED: &str = "the driver lists the processes of the machine by ids that this \
    container does not know";

/// The GPUs that CUDA shows to this process.
#[derive(Default)]
pub(super) struct NvmlSource {
    library: Option<Result<&'static Nvml, Unused>>,
    /// Those that are shown, by what the environment said.
    shown: Option<(Visibility, Vec<(SourceDevice, Device<'static>)>)>,
    /// When the processes of each device may be listed again.
    listed_again: HashMap<DeviceKey, Instant>,
    /// The driver has listed this process by the id that it knows of itself.
    is_listed: bool,
}

impl DriverSource for NvmlSource {
    fn source(&self) -> Source {
        Source::Nvml
    }

    /// A library that is missing, or that does not start, is not tried again.
    fn is_final(&self) -> bool {
        matches!(self.library, Some(Err(_)))
    }

    fn devices(&mut self, visibility: &Visibility) -> Answer {
        let nvml = self.library.get_or_insert_with(initialised).clone()?;
        let known = self.shown.take().filter(|(under, _)| under == visibility);
        let shown = match known {
            Some((_, shown)) => shown,
            None => shown(nvml, visibility).map_err(|error| Unused(message(&error).into()))?,
        };
        let (_, shown) = self.shown.insert((visibility.clone(), shown));
        if shown.is_empty() {
            let reason = match &visibility.devices {
                Some(list) => format!("CUDA_VISIBLE_DEVICES={list:?} hides every GPU"),
                None => "the driver runs, but this machine has no GPU of it".to_owned(),
            };
            return Err(Unused(reason.into()));
        }
        Ok(shown.iter().map(|(found, _)| found.clone()).collect())
    }

    fn read(&mut self, key: &DeviceKey) -> DriverLevels {
        let Some(device) = device(self.shown.as_ref(), key) else {
            return DriverLevels::default();
        };
        let levels = memory(device);
        let (process_used, children_used) = processes(device, &mut self.is_listed);
        DriverLevels {
            process_used,
            children_used,
            ..levels
        }
    }

    fn processes(&mut self, visibility: &Visibility) -> ProcessLists {
        self.devices(visibility)?;
        let shown = self.shown.iter().flat_map(|(_, shown)| shown);
        let lists = shown.map(|(found, device)| {
            let list = listed(device, NvmlLists::All).map(|listed| {
                let listed = listed.into_iter();
                listed.map(|(pid, used)| (pid, level(used))).collect()
            });
            (
                found.key.clone(),
                list.map_err(|why| why.message().to_owned()),
            )
        });
        Ok(lists.collect())
    }

    /// The device's memory, and more rarely the list of processes, which costs several times as
    /// much to read.
    fn sample(&mut self, key: &DeviceKey) -> DriverLevels {
        let Some(device) = device(self.shown.as_ref(), key) else {
            return DriverLevels::default();
        };
        let levels = memory(device);
        let began = Instant::now();
        if self.listed_again.get(key).is_some_and(|at| began < *at) {
            return levels;
        }
        let (process_used, _) = processes(device, &mut self.is_listed);
        let again = Instant::now() + began.elapsed() * REST_PER_LIST;
        self.listed_again.insert(key.clone(), again);
        DriverLevels {
            process_used,
            ..levels
        }
    }
}

fn device<'a>(
    shown: Option<&'a (Visibility, Vec<(SourceDevice, Device<'static>)>)>,
    key: &DeviceKey,
) -> Option<&'a Device<'static>> {
    let (_, shown) = shown?;
    let device = shown.iter().find(|(found, _)| found.key == *key);
    device.map(|(_, device)| device)
}

/// The library, which then stays: unloading it while a process ends is not safe.
fn initialised() -> Result<&'static Nvml, Unused> {
    match Nvml::init() {
        Ok(nvml) => Ok(Box::leak(Box::new(nvml))),
        Err(error) => Err(Unused(message(&error).into())),
    }
}

fn shown(
    nvml: &'static Nvml,
    visibility: &Visibility,
) -> Result<Vec<(SourceDevice, Device<'static>)>, NvmlError> {
    let units = units(nvml)?;
    let described: Vec<Unit<'_>> = units
        .iter()
        .map(|(found, _)| Unit {
            uuid: found.key.as_str(),
            name: &found.name,
        })
        .collect();
    let visibilities = visibilities(&described, visibility);
    let mut shown: Vec<(usize, (SourceDevice, Device<'static>))> = Vec::new();
    for (visibility, (mut found, device)) in visibilities.into_iter().zip(units) {
        match visibility {
            UnitVisibility::Hidden => {}
            UnitVisibility::Numbered(ordinal) => {
                found.label = format!("cuda:{ordinal}");
                shown.push((ordinal, (found, device)));
            }
            UnitVisibility::Unnumbered => shown.push((shown.len(), (found, device))),
        }
    }
    shown.sort_by_key(|(ordinal, _)| *ordinal);
    Ok(shown.into_iter().map(|(_, unit)| unit).collect())
}

/// Every GPU, or in its place the parts that it is divided into, in the order of the bus.
fn units(nvml: &'static Nvml) -> Result<Vec<(SourceDevice, Device<'static>)>, NvmlError> {
    let mut units = Vec::new();
    for idx in 0..nvml.device_count()? {
        let device = nvml.device_by_index(idx)?;
        let parts = parts(&device);
        if parts.is_empty() {
            units.push((found(&device, format!("nvml:{idx}"))?, device));
            continue;
        }
        for (part_idx, part) in parts.into_iter().enumerate() {
            units.push((found(&part, format!("nvml:{idx}.{part_idx}"))?, part));
        }
    }
    Ok(units)
}

/// The instances of a GPU in MIG mode. Most GPUs know no such mode, and say so by an error.
fn parts(device: &Device<'static>) -> Vec<Device<'static>> {
    if !device.mig_mode().is_ok_and(|mode| mode.current != 0) {
        return Vec::new();
    }
    let n_places = device.mig_device_count().unwrap_or(0);
    let places = 0..n_places;
    places
        .filter_map(|idx| device.mig_device_by_index(idx).ok())
        .collect()
}

fn found(device: &Device<'static>, label: String) -> Result<SourceDevice, NvmlError> {
    Ok(SourceDevice {
        key: device.uuid()?.into(),
        label,
        name: device.name()?,
        kind: DeviceKind::Gpu,
    })
}

fn memory(device: &Device<'static>) -> DriverLevels {
    let memory = match device.memory_info() {
        Ok(memory) => memory,
        Err(error) => {
            let level = Level::Unknown(unknown(&error));
            return DriverLevels {
                device_used: level.clone(),
                capacity: level,
                ..DriverLevels::default()
            };
        }
    };
    let usable = memory.total.saturating_sub(memory.reserved);
    DriverLevels {
        device_used: Bytes::new(memory.used).into(),
        driver_reserved: Bytes::new(memory.reserved).into(),
        capacity: Bytes::new(usable).into(),
        ..DriverLevels::default()
    }
}

/// What this process uses, and what those that it started use.
fn processes(device: &Device<'static>, is_listed: &mut bool) -> (Level, Level) {
    let listed = match listed(device, NvmlLists::Usual) {
        Ok(listed) => listed,
        Err(why) => return (Level::Unknown(why.clone()), Level::Unknown(why)),
    };
    let own = process::id();
    let own_used = listed.get(&own).copied();
    *is_listed |= own_used.is_some();
    let own_used = own_used.map_or_else(|| unlisted(*is_listed), level);
    let children = listed
        .iter()
        .filter(|(pid, _)| **pid != own && descends_from(**pid, own));
    let children_used = children.map(|(_, used)| *used).sum::<Option<u64>>();
    (own_used, level(children_used))
}

/// What each process uses, by its id.
type UsedByPid = BTreeMap<u32, Option<u64>>;

/// Which lists of processes to read.
#[derive(Clone, Copy)]
enum NvmlLists {
    /// Those that compute, and those that draw.
    Usual,
    /// Those that compute through CUDA MPS, too: a call more.
    All,
}

/// The processes on these lists.
///
/// The driver counts by process: one that is on two of them uses the same memory on both.
fn listed(device: &Device<'static>, lists: NvmlLists) -> Result<UsedByPid, Unknown> {
    let computing = device.running_compute_processes();
    let computing = computing.map_err(|error| match unknown(&error) {
        _ if is_in_wsl() => Unknown::Withheld(WSL.into()),
        why => why,
    })?;
    let mut listed = by_pid(computing);
    // Where there is no screen to draw on, or no MPS, these lists are often refused.
    let drawing = device.running_graphics_processes().unwrap_or_default();
    let served = match lists {
        NvmlLists::Usual => Vec::new(),
        NvmlLists::All => device.mps_running_compute_processes().unwrap_or_default(),
    };
    for (pid, used) in [drawing, served].into_iter().flat_map(by_pid) {
        let known = listed.entry(pid).or_insert(used);
        *known = (*known).zip(used).map(|(one, other)| one.max(other));
    }
    Ok(listed)
}

/// Bytes by process, summed over its entries: one for each part of a GPU that it is on.
fn by_pid(listed: Vec<ProcessInfo>) -> UsedByPid {
    let mut used = UsedByPid::new();
    for process in listed {
        let n_bytes = match process.used_gpu_memory {
            UsedGpuMemory::Used(n_bytes) => Some(n_bytes),
            UsedGpuMemory::Unavailable => None,
        };
        let sum = used.entry(process.pid).or_insert(Some(0));
        *sum = sum
            .zip(n_bytes)
            .map(|(one, other)| one.saturating_add(other));
    }
    used
}

/// The level of a process on the driver's list.
fn level(used: Option<u64>) -> Level {
    let unattributed = if is_in_wsl() {
        WSL
    } else if cfg!(windows) {
        WDDM
    } else {
        NOT_REPORTED
    };
    used.map_or_else(
        || Level::Unknown(Unknown::Withheld(unattributed.into())),
        |n_bytes| Level::Known(Bytes::new(n_bytes)),
    )
}

/// The level of a process that is not on this list: zero if the list would show it, as the list of
/// another GPU does.
fn unlisted(is_listed: bool) -> Level {
    let is_surely_absent = match footing() {
        Footing::Outside => true,
        _ if is_listed => true,
        Footing::Initialised => is_in_first_pid_namespace(),
        Footing::Inside => false,
    };
    if is_surely_absent {
        return Level::Known(Bytes::ZERO);
    }
    let reason = if is_in_wsl() { WSL } else { NOT_LISTED };
    Level::Unknown(Unknown::Withheld(reason.into()))
}

fn unknown(error: &NvmlError) -> Unknown {
    match error {
        NvmlError::NotSupported => Unknown::Withheld(NOT_SUPPORTED.into()),
        NvmlError::NoPermission => Unknown::NotPermitted,
        NvmlError::FailedToLoadSymbol(_) => Unknown::Withheld(message(error).into()),
        error => Unknown::Failed(message(error).into()),
    }
}

fn message(error: &NvmlError) -> String {
    let words = match error {
        NvmlError::LibloadingError(_) => "no NVIDIA driver on this machine",
        NvmlError::DriverNotLoaded => "NVIDIA's library is here, but its driver is not loaded",
        NvmlError::NoPermission => "no permission to ask the NVIDIA driver",
        NvmlError::LibRmVersionMismatch => {
            "NVIDIA's library and driver are of different versions, as after an update: \
             restart the machine"
        }
        NvmlError::GpuLost => "the GPU is lost: it has fallen off the bus",
        NvmlError::ResetRequired => "the GPU must be reset",
        NvmlError::FailedToLoadSymbol(symbol) => {
            let mut names = symbol.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
            let name = names.rfind(|name| name.starts_with("nvml"));
            return format!("this driver has no {}", name.unwrap_or("such function"));
        }
        other => return format!("NVML: {other}"),
    };
    words.to_owned()
}
