//! The processes on a GPU, joined from the driver's list, the operating system and Jupyter's own files.
//!
//! Nothing is guessed. A process is called left over only if the system shows it: the server that
//! started a kernel is no longer among its ancestors, or the process that started a worker is gone. Ids
//! that may belong to another machine (a container has its own ids) are not looked up.
//!
//! ```
//! use gpumem_jobs::gpu_processes::{ProcessKind, Listing, ProcessTable, gpu_processes};
//! use gpumem_model::units::Bytes;
//!
//! let device = Listing {
//!     device: "cuda:0".to_owned(),
//!     name: "Tesla T4".to_owned(),
//!     used: Some(Bytes::mib(300)),
//!     capacity: Some(Bytes::gib(16)),
//!     processes: Ok(vec![(7, Bytes::mib(300).into())]),
//! };
//! let found = gpu_processes(&ProcessTable {
//!     own_pid: 7,
//!     devices: vec![device],
//!     are_ids_ours: true,
//!     ..ProcessTable::default()
//! });
//! let member = &found.devices[0].members[0];
//! assert_eq!((member.kind, &*member.words), (ProcessKind::Own, "this process"));
//! ```

mod command;
mod describe;
mod family;
mod jupyter;
mod kind;
mod process;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

pub use command::shortened;
pub use jupyter::{connection_file, kernel_id};
pub use kind::ProcessKind;

use gpumem_model::recording::Level;
use gpumem_model::units::{Bytes, Nanos};
use process::process;

/// Facts of one instant: the input of [`gpu_processes`](gpu_processes()).
#[derive(Debug, Clone, Default)]
pub struct ProcessTable {
    /// The id of this process.
    pub own_pid: u32,
    /// The drivers' lists, one per device.
    pub devices: Vec<Listing>,
    /// The processes on those lists, and the processes related to them: ancestors, leaders of sessions and
    /// groups. A process that is missing here was not looked up.
    pub processes: BTreeMap<u32, ProcessLookup>,
    /// Whether the driver's process ids are valid in this process's namespace.
    pub are_ids_ours: bool,
    /// The notebook of each kernel id, from the kernels' connection files.
    pub notebooks: BTreeMap<String, String>,
    /// The running Jupyter servers, from the files that they keep.
    pub servers: Vec<Server>,
    /// The user's home folder.
    pub home: Option<String>,
}

/// One device with its driver's list of processes.
#[derive(Debug, Clone)]
pub struct Listing {
    /// As people write it: `cuda:0`.
    pub device: String,
    /// The maker's name.
    pub name: String,
    /// Memory used by all processes.
    pub used: Option<Bytes>,
    /// The capacity.
    pub capacity: Option<Bytes>,
    /// Process ids with the level of each, or the reason why there is no list.
    pub processes: Result<Vec<(u32, Level)>, String>,
}

/// What the operating system reports about a process id.
#[derive(Debug, Clone)]
pub enum ProcessLookup {
    /// The process exists.
    Found(Box<ProcessFacts>),
    /// The process exists, but the system hides its details.
    Hidden,
    /// There is no such process.
    Gone,
}

/// What the operating system reports about a process.
#[derive(Debug, Clone, Default)]
pub struct ProcessFacts {
    /// Its own name for itself, cut by the system.
    pub name: String,
    /// Its command line, one entry per argument.
    pub command: Vec<String>,
    /// Its user.
    pub user: Option<String>,
    /// How long ago it began.
    pub age: Option<Nanos>,
    /// Its parent's id; 0 if it has none.
    pub parent: Option<u32>,
    /// The leader of its process group: all processes of one command line of a shell.
    pub group: Option<u32>,
    /// The leader of its session; a kernel leads its own.
    pub session: Option<u32>,
    /// It has ended, but its parent has not reaped it.
    pub is_zombie: bool,
    /// It has a GPU's device file open.
    pub has_gpu_open: bool,
    /// `JPY_SESSION_NAME`: the notebook that its kernel was started for.
    pub session_name: Option<String>,
    /// `JPY_PARENT_PID`: the server that started its kernel.
    pub server_pid: Option<u32>,
}

/// A running Jupyter server, from the file that it keeps: an entry of [`ProcessTable::servers`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its process.
    pub pid: u32,
    /// Its address, without the token.
    pub url: String,
    /// The folder that it serves.
    pub root: String,
}

/// The processes on each device.
#[derive(Debug, Clone, Default)]
pub struct GpuProcesses {
    /// In the order in which the devices were read.
    pub devices: Vec<DeviceProcesses>,
}

/// The processes on one device.
#[derive(Debug, Clone)]
pub struct DeviceProcesses {
    /// As people write it.
    pub device: String,
    /// The maker's name.
    pub name: String,
    /// Memory used by all processes.
    pub used: Option<Bytes>,
    /// The capacity.
    pub capacity: Option<Bytes>,
    /// This process first, then its children, then the others, the largest first.
    pub members: Vec<GpuProcess>,
    /// Why there is no list.
    pub unlisted: Option<String>,
    /// Used on the device, but by none of the listed processes; `None` below 1 % of the device.
    pub unattributed: Option<Bytes>,
}

/// One process on one device.
#[derive(Debug, Clone)]
pub struct GpuProcess {
    /// As the driver gives it.
    pub pid: u32,
    /// What it uses of the device.
    pub used: Level,
    /// Its relation to this process.
    pub kind: ProcessKind,
    /// Its user.
    pub user: Option<String>,
    /// It belongs to the same user as this process.
    pub is_own_users: bool,
    /// Program and script; for processes of the same user also the first plain arguments.
    pub command: Option<String>,
    /// How long ago it began.
    pub age: Option<Nanos>,
    /// The path of the notebook whose kernel, or kernel's child, it is, if Jupyter's files show it.
    pub notebook: Option<String>,
    /// The kernel's id, from its connection file.
    pub kernel_id: Option<String>,
    /// The address of its kernel's server.
    pub server: Option<String>,
    /// Its description.
    pub words: String,
}

/// Joins the facts about processes: their kinds, and which may be left over.
pub fn gpu_processes(table: &ProcessTable) -> GpuProcesses {
    let devices = table.devices.iter();
    GpuProcesses {
        devices: devices.map(|it| on_device(it, table)).collect(),
    }
}

fn on_device(listing: &Listing, table: &ProcessTable) -> DeviceProcesses {
    let listed = listing.processes.iter().flatten();
    let mut members: Vec<GpuProcess> = listed
        .map(|(pid, used)| process(*pid, used, table))
        .collect();
    members.sort_by_key(|it| {
        let place = match it.kind {
            ProcessKind::Own => 0,
            ProcessKind::Child => 1,
            _ => 2,
        };
        (place, Reverse(it.used.known()), it.pid)
    });
    DeviceProcesses {
        device: listing.device.clone(),
        name: listing.name.clone(),
        used: listing.used,
        capacity: listing.capacity,
        unattributed: unattributed(listing),
        members,
        unlisted: listing.processes.clone().err(),
    }
}

/// Used but not listed memory, if it is at least 1 % of the device: the driver rounds, and uses some itself.
fn unattributed(listing: &Listing) -> Option<Bytes> {
    let listed = listing.processes.as_ref().ok()?.iter();
    let known = listed
        .map(|(_, used)| used.known())
        .sum::<Option<Bytes>>()?;
    let unattributed = listing.used?.saturating_sub(known);
    let is_much = unattributed.as_f64() >= listing.capacity?.as_f64() / 100.0;
    is_much.then_some(unattributed)
}
