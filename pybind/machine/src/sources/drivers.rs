//! The driver sources, shared by the recorder and the sampler's thread.

use std::process;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use gpumem_model::recording::{DeviceKey, DriverLevels, Level, Source, Unknown};

use super::driver_worker::{DriverWorker, Pending, Response};
use super::guarded::Guarded;
use super::visible::Visibility;
use super::{DriverSource, ProcessLists, Unused, failed, not_chosen};

use gpumem_base::locks::lock;

/// Driver sources behind one lock. Its holder needs no GIL and takes none.
///
/// After a fork the lock may be held by a thread that the child does not have: there every call
/// says so at once and touches nothing.
#[derive(Clone)]
pub struct Drivers {
    pid: u32,
    set: Arc<Mutex<DriverSet>>,
}

struct DriverSet {
    sources: Vec<DriverEntry>,
    /// The devices that are sampled.
    plan: Vec<Planned>,
}

/// A source, and the thread that queries it.
enum DriverEntry {
    /// On the calling thread: it answers at once.
    Here(Guarded),
    /// On its own thread: it may be slow, or hang.
    Apart(DriverWorker),
}

/// A device with the sources that answer for it, each with the key that it gives it.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) key: DeviceKey,
    pub(super) sources: Vec<(Source, DeviceKey)>,
}

/// One query for each source, in their order; `None` for sources that are not chosen.
pub(super) struct PendingAnswers(Vec<Option<DriverQuery>>);

/// The query of one source.
enum DriverQuery {
    /// Sent when the answers are collected.
    Later,
    Put(Pending),
}

/// The answer of one source.
pub(super) struct DriverAnswer {
    pub(super) source: Source,
    pub(super) response: Arc<Response>,
}

/// The cheap levels of a device, and when they were read.
pub struct Sampled {
    pub key: DeviceKey,
    pub at: Instant,
    pub levels: DriverLevels,
}

impl Drivers {
    /// Queries `here` on the calling thread and `apart` on threads of their own.
    pub(super) fn new(apart: Vec<Box<dyn DriverSource>>, here: Vec<Box<dyn DriverSource>>) -> Self {
        let apart = apart
            .into_iter()
            .map(|it| DriverEntry::Apart(DriverWorker::new(it)));
        let here = here
            .into_iter()
            .map(|it| DriverEntry::Here(Guarded::new(it)));
        Self {
            pid: process::id(),
            set: Arc::new(Mutex::new(DriverSet {
                // Sources of this thread come first: the others work meanwhile.
                sources: here.chain(apart).collect(),
                plan: Vec::new(),
            })),
        }
    }

    /// The new samples of the planned devices since the last call and after `since`, in the order of
    /// the devices. Slow drivers are queried again at this interval.
    pub fn sample(&self, since: Instant, interval: Duration) -> Vec<Sampled> {
        let Some(mut set) = self.lock() else {
            return Vec::new();
        };
        let said = set.sample(|driver_worker| driver_worker.sample(since, interval));
        let sampled = set.plan.iter().filter_map(|planned| {
            let of_device = planned.sources.iter().filter_map(|(source, key)| {
                let said = said.iter().find(|said| said.source == *source)?;
                Some((said.response.at, said.response.levels_of(key)?.clone()))
            });
            let (at, levels) =
                of_device.reduce(|one, other| (one.0.max(other.0), joined(one.1, other.1)))?;
            let key = planned.key.clone();
            Some(Sampled { key, at, levels })
        });
        sampled.collect()
    }

    /// Queries every chosen source for everything. Sources with their own thread have until
    /// [`collect`](Self::collect), and at most `patience` from now.
    pub(super) fn ask(
        &self,
        chosen: &[Source],
        visibility: &Visibility,
        patience: Duration,
    ) -> PendingAnswers {
        let Some(mut set) = self.lock() else {
            return PendingAnswers(Vec::new());
        };
        let queries = set.sources.iter_mut().map(|entry| {
            let is_chosen = chosen.contains(&entry.source());
            is_chosen.then(|| match entry {
                DriverEntry::Here(_) => DriverQuery::Later,
                DriverEntry::Apart(driver_worker) => {
                    DriverQuery::Put(driver_worker.ask(visibility, patience))
                }
            })
        });
        PendingAnswers(queries.collect())
    }

    /// The levels of the planned devices now; the last response of sources with their own thread.
    /// Never waits: empty while another thread holds the sources.
    pub(super) fn at_once(&self) -> Vec<DriverAnswer> {
        let is_here = self.pid == process::id();
        let Some(mut set) = is_here.then(|| self.set.try_lock().ok()).flatten() else {
            return Vec::new();
        };
        set.sample(|driver_worker| driver_worker.latest())
    }

    /// The answers of the sources.
    pub(super) fn collect(&self, PendingAnswers(queries): PendingAnswers) -> Vec<DriverAnswer> {
        let Some(mut set) = self.lock() else {
            return Vec::new();
        };
        let sources = set.sources.iter_mut().zip(queries);
        sources.map(|(entry, query)| entry.answer(query)).collect()
    }

    /// Queries a source for the processes on its devices. The answer comes over the channel, which
    /// closes if there is no such source.
    pub(super) fn ask_processes(
        &self,
        source: Source,
        visibility: &Visibility,
    ) -> Receiver<ProcessLists> {
        let (sender, answer) = mpsc::channel();
        let visibility = visibility.clone();
        let job = move |guarded: &mut Guarded| {
            let lists = guarded.run(|driver| driver.processes(&visibility));
            // The caller may have timed out.
            let _ = sender.send(lists.unwrap_or_else(|words| Err(Unused(words.into()))));
        };
        if let Some(mut set) = self.lock() {
            let mut sources = set.sources.iter_mut();
            match sources.find(|entry| entry.source() == source) {
                Some(DriverEntry::Here(guarded)) => job(guarded),
                Some(DriverEntry::Apart(driver_worker)) => driver_worker.send(Box::new(job)),
                None => {}
            }
        }
        answer
    }

    /// Sets which devices are sampled, and from which sources.
    pub(super) fn plan(&self, plan: Vec<Planned>) {
        if let Some(mut set) = self.lock() {
            set.plan = plan;
        }
    }

    /// The sources' names, in their order.
    pub(super) fn names(&self) -> Vec<Source> {
        let Some(set) = self.lock() else {
            return Vec::new();
        };
        set.sources.iter().map(DriverEntry::source).collect()
    }

    fn lock(&self) -> Option<MutexGuard<'_, DriverSet>> {
        let is_here = self.pid == process::id();
        is_here.then(|| lock(&self.set))
    }
}

impl DriverSet {
    /// The levels of the planned devices; `of_apart` gives those of sources with their own thread.
    fn sample(
        &mut self,
        mut of_apart: impl FnMut(&mut DriverWorker) -> Option<Arc<Response>>,
    ) -> Vec<DriverAnswer> {
        let Self { sources, plan } = self;
        let said = sources.iter_mut().filter_map(|entry| {
            let source = entry.source();
            let planned = plan.iter().flat_map(|it| &it.sources);
            let mut keys = planned.filter(|(of, _)| *of == source).peekable();
            keys.peek()?;
            let response = match entry {
                DriverEntry::Here(guarded) => sample(guarded, keys.map(|(_, key)| key)),
                DriverEntry::Apart(driver_worker) => of_apart(driver_worker)?,
            };
            Some(DriverAnswer { source, response })
        });
        said.collect()
    }
}

impl DriverEntry {
    fn source(&self) -> Source {
        match self {
            Self::Here(guarded) => guarded.source(),
            Self::Apart(driver_worker) => driver_worker.source(),
        }
    }

    fn answer(&mut self, query: Option<DriverQuery>) -> DriverAnswer {
        let source = self.source();
        let response = match (self, query) {
            (Self::Apart(driver_worker), Some(DriverQuery::Put(pending))) => {
                driver_worker.answer(pending)
            }
            (Self::Here(guarded), Some(_)) => everything(guarded),
            _ => Arc::new(Response::without_devices(not_chosen())),
        };
        DriverAnswer { source, response }
    }
}

fn everything(guarded: &mut Guarded) -> Arc<Response> {
    let devices = guarded
        .run(|driver| driver.devices(&Visibility::default()))
        .unwrap_or_else(|words| Err(Unused(words.into())));
    let levels = devices.iter().flatten().map(|found| {
        let levels = guarded.run(|driver| driver.read(&found.key));
        let levels = levels.unwrap_or_else(|words| failed(&words));
        (found.key.clone(), levels)
    });
    let levels = levels.collect();
    Arc::new(Response::now(devices, levels))
}

fn sample<'a>(guarded: &mut Guarded, keys: impl Iterator<Item = &'a DeviceKey>) -> Arc<Response> {
    let levels = keys.map(|key| {
        let levels = guarded.run(|driver| driver.sample(key));
        (key.clone(), levels.unwrap_or_else(|words| failed(&words)))
    });
    let levels = levels.collect();
    Arc::new(Response::now(Ok(Vec::new()), levels))
}

/// Merges the levels of one device from two sources: of each level the first figure that is known, and the
/// smaller capacity.
pub(super) fn joined(one: DriverLevels, other: DriverLevels) -> DriverLevels {
    DriverLevels {
        device_used: better(one.device_used, other.device_used),
        process_used: better(one.process_used, other.process_used),
        capacity: smaller(one.capacity, other.capacity),
        container_limit: better(one.container_limit, other.container_limit),
        service_limit: better(one.service_limit, other.service_limit),
        host_limit: better(one.host_limit, other.host_limit),
        children_used: better(one.children_used, other.children_used),
        // Read at the end of a run, apart from the levels.
        children: Vec::new(),
        driver_reserved: better(one.driver_reserved, other.driver_reserved),
        pool_used: better(one.pool_used, other.pool_used),
        pool_reserved: better(one.pool_reserved, other.pool_reserved),
        graph_used: better(one.graph_used, other.graph_used),
        graph_reserved: better(one.graph_reserved, other.graph_reserved),
    }
}

/// The first that is known; else the first that says more than that nobody reads it.
fn better(first: Level, second: Level) -> Level {
    match (&first, &second) {
        (Level::Known(_), _) => first,
        (_, Level::Known(_)) | (Level::Unknown(Unknown::NotRead), _) => second,
        _ => first,
    }
}

fn smaller(first: Level, second: Level) -> Level {
    match (&first, &second) {
        (Level::Known(one), Level::Known(other)) => Level::Known(*one.min(other)),
        _ => better(first, second),
    }
}
