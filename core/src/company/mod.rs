//! Who is on a GPU: the driver's list of processes, what the system tells of them,
//! and Jupyter's own files, joined.
//!
//! Nothing is guessed. A process is called left over only where the system shows it:
//! the server that a kernel was started by is none of its ancestors any more, or what
//! started a worker is gone. Ids that may be another machine's (a container has ids of its
//! own) are not looked up in ours.

mod command;
mod family;
mod jupyter;
mod kind;
mod member;
#[cfg(test)]
mod tests;
mod words;

use std::cmp::Reverse;
use std::collections::BTreeMap;

pub use jupyter::{connection_file, kernel_id};
pub use kind::Kind;

use crate::recording::Level;
use crate::units::{Bytes, Nanos};
use member::member;

/// All that was found out, at one moment.
#[derive(Debug, Clone, Default)]
pub struct ProcessTable {
    /// This process.
    pub own_pid: u32,
    /// What the drivers say, device by device.
    pub devices: Vec<Listing>,
    /// The processes on those lists, and what they lead to: ancestors, leaders of sessions and
    /// groups. One that is not here was not looked for.
    pub processes: BTreeMap<u32, Sight>,
    /// The driver and this process mean the same by a process id.
    pub are_ids_ours: bool,
    /// What the connection files of kernels say: the notebook of each kernel id.
    pub notebooks: BTreeMap<String, String>,
    /// The Jupyter servers that left word of themselves.
    pub servers: Vec<Server>,
    /// The user's own folder.
    pub home: Option<String>,
}

/// One device, and what its driver says of the processes on it.
#[derive(Debug, Clone)]
pub struct Listing {
    /// As people write it: `cuda:0`.
    pub device: String,
    /// The maker's name.
    pub name: String,
    /// Used by every process together.
    pub used: Option<Bytes>,
    /// All there is.
    pub capacity: Option<Bytes>,
    /// Process ids, with what each uses; or why there is no list.
    pub processes: Result<Vec<(u32, Level)>, String>,
}

/// What the system says to a process id.
#[derive(Debug, Clone)]
pub enum Sight {
    /// It is there.
    There(Box<Facts>),
    /// It is there, and nothing is known of it.
    Hidden,
    /// There is no such process.
    Gone,
}

/// What the system tells of a process.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Its own name for itself, cut by the system.
    pub name: String,
    /// Its command line, word by word.
    pub command: Vec<String>,
    /// Whose it is.
    pub user: Option<String>,
    /// How long ago it began.
    pub age: Option<Nanos>,
    /// Its parent's id; 0 for none.
    pub parent: Option<u32>,
    /// The process that leads its group: all of one command line of a shell.
    pub group: Option<u32>,
    /// The process that leads its session: a kernel leads one of its own.
    pub session: Option<u32>,
    /// It has ended, and its parent has not taken note.
    pub is_zombie: bool,
    /// It has a GPU's device file open.
    pub has_gpu_open: bool,
    /// `JPY_SESSION_NAME`: the notebook that its kernel was started for.
    pub session_name: Option<String>,
    /// `JPY_PARENT_PID`: the server that its kernel was started by.
    pub server_pid: Option<u32>,
}

/// A Jupyter server, from the file that it keeps while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its process.
    pub pid: u32,
    /// Where it is reached; without its token.
    pub url: String,
    /// The folder that it shows.
    pub root: String,
}

/// Who is on each device.
#[derive(Debug, Clone, Default)]
pub struct GpuProcesses {
    /// In the order in which the devices were read.
    pub devices: Vec<DeviceCompany>,
}

/// Who is on one device.
#[derive(Debug, Clone)]
pub struct DeviceCompany {
    /// As people write it.
    pub device: String,
    /// The maker's name.
    pub name: String,
    /// Used by every process together.
    pub used: Option<Bytes>,
    /// All there is.
    pub capacity: Option<Bytes>,
    /// This process first, then its children, then the others, the largest first.
    pub members: Vec<Member>,
    /// Why there is no list.
    pub unlisted: Option<String>,
    /// Used on the device, and by none of those that are listed.
    pub unattributed: Option<Bytes>,
}

/// One process on one device.
#[derive(Debug, Clone)]
pub struct Member {
    /// As the driver gives it.
    pub pid: u32,
    /// What it uses of the device.
    pub used: Level,
    /// What it is to this process.
    pub kind: Kind,
    /// Whose it is.
    pub user: Option<String>,
    /// It is this process's own user's.
    pub is_own_users: bool,
    /// Program and script; of a process of the same user's, its first plain words too.
    pub command: Option<String>,
    /// How long ago it began.
    pub age: Option<Nanos>,
    /// The notebook whose kernel, or kernel's child, it is: a path, as far as Jupyter knows it.
    pub notebook: Option<String>,
    /// The kernel's id, by its connection file.
    pub kernel_id: Option<String>,
    /// Where the server of its kernel is reached.
    pub server: Option<String>,
    /// What it is, in words.
    pub words: String,
}

/// Joins what was found out.
///
/// ```
/// use gpumem_core::company::{Listing, ProcessTable, company};
/// use gpumem_core::units::Bytes;
///
/// let device = Listing {
///     device: "cuda:0".to_owned(),
///     name: "Tesla T4".to_owned(),
///     used: Some(Bytes::mib(300)),
///     capacity: Some(Bytes::gib(16)),
///     processes: Ok(vec![(7, Bytes::mib(300).into())]),
/// };
/// let found = company(&ProcessTable {
///     own_pid: 7,
///     devices: vec![device],
///     are_ids_ours: true,
///     ..ProcessTable::default()
/// });
/// assert_eq!(found.devices[0].members[0].words, "this process");
/// ```
pub fn company(sightings: &ProcessTable) -> GpuProcesses {
    let devices = sightings.devices.iter();
    GpuProcesses {
        devices: devices.map(|it| on_device(it, sightings)).collect(),
    }
}

fn on_device(listing: &Listing, sightings: &ProcessTable) -> DeviceCompany {
    let listed = listing.processes.iter().flatten();
    let mut members: Vec<Member> = listed
        .map(|(pid, used)| member(*pid, used, sightings))
        .collect();
    members.sort_by_key(|it| {
        let place = match it.kind {
            Kind::Own => 0,
            Kind::Child => 1,
            _ => 2,
        };
        (place, Reverse(it.used.known()), it.pid)
    });
    DeviceCompany {
        device: listing.device.clone(),
        name: listing.name.clone(),
        used: listing.used,
        capacity: listing.capacity,
        unattributed: unattributed(listing),
        members,
        unlisted: listing.processes.clone().err(),
    }
}

/// What is used and not listed, where it is worth a word: 1 % of the device. The driver rounds,
/// and holds some for itself.
fn unattributed(listing: &Listing) -> Option<Bytes> {
    let listed = listing.processes.as_ref().ok()?.iter();
    let known = listed
        .map(|(_, used)| used.known())
        .sum::<Option<Bytes>>()?;
    let unattributed = listing.used?.saturating_sub(known);
    let is_much = unattributed.as_f64() >= listing.capacity?.as_f64() / 100.0;
    is_much.then_some(unattributed)
}
