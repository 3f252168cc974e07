//! The driver sources, shared by the recorder and the sampler's thread.

use std::panic::AssertUnwindSafe;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpumem_core::recording::{DriverLevels, Level, Source, Unknown};

use super::{Answer, DriverSource, Unused, not_chosen};
use crate::trouble::quietly;

const FORKED: &str = "this process was forked from the one that records";

/// Driver sources behind one lock. Its holder needs no GIL and takes none.
///
/// After a fork the lock may be held by a thread that the child does not have: there every call
/// says so at once and touches nothing.
#[derive(Clone)]
pub(crate) struct Drivers {
    pid: u32,
    set: Arc<Mutex<DriverSet>>,
}

#[derive(Default)]
struct DriverSet {
    sources: Vec<Guarded>,
    /// The devices that are read, with all their sources.
    plan: Vec<(String, Vec<Source>)>,
}

/// A source whose panic ends itself only.
struct Guarded {
    driver: Box<dyn DriverSource>,
    failure: Option<String>,
}

impl Drivers {
    pub(super) fn new(drivers: Vec<Box<dyn DriverSource>>) -> Self {
        let guarded = |driver| Guarded {
            driver,
            failure: None,
        };
        Self {
            pid: process::id(),
            set: Arc::new(Mutex::new(DriverSet {
                sources: drivers.into_iter().map(guarded).collect(),
                plan: Vec::new(),
            })),
        }
    }

    /// The cheap levels of every device that has any, in the order of the devices.
    pub(crate) fn sample(&self) -> Vec<(String, DriverLevels)> {
        let Some(mut set) = self.lock() else {
            return Vec::new();
        };
        let DriverSet { sources, plan } = &mut *set;
        plan.iter()
            .map(|(key, of)| {
                let levels = levels(sources, of, |driver| driver.sample(key));
                (key.clone(), levels)
            })
            .collect()
    }

    /// All levels of one device.
    pub(super) fn read(&self, key: &str) -> DriverLevels {
        let Some(mut set) = self.lock() else {
            return failed(FORKED);
        };
        let DriverSet { sources, plan } = &mut *set;
        let planned = plan.iter().find(|(planned, _)| planned == key);
        planned.map_or_else(DriverLevels::default, |(key, of)| {
            levels(sources, of, |driver| driver.read(key))
        })
    }

    /// What each source answers for its devices.
    pub(super) fn find(&self, is_chosen: &dyn Fn(Source) -> bool) -> Vec<(Source, Answer)> {
        let Some(mut set) = self.lock() else {
            return Vec::new();
        };
        let answers = set.sources.iter_mut().map(|guarded| {
            let source = guarded.driver.source();
            let answer = if is_chosen(source) {
                let asked = guarded.run(|driver| driver.devices());
                asked.unwrap_or_else(|words| Err(Unused(words)))
            } else {
                Err(not_chosen())
            };
            (source, answer)
        });
        answers.collect()
    }

    /// Sets which devices are read, and from which sources.
    pub(super) fn plan(&self, plan: Vec<(String, Vec<Source>)>) {
        if let Some(mut set) = self.lock() {
            set.plan = plan;
        }
    }

    /// The sources' names, in their order.
    pub(super) fn names(&self) -> Vec<Source> {
        let Some(set) = self.lock() else {
            return Vec::new();
        };
        set.sources.iter().map(|it| it.driver.source()).collect()
    }

    fn lock(&self) -> Option<MutexGuard<'_, DriverSet>> {
        let is_here = self.pid == process::id();
        is_here.then(|| self.set.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a device's sources say together: of each level the first figure that is known, and the
/// smallest capacity.
fn levels(
    guarded: &mut [Guarded],
    sources: &[Source],
    mut read: impl FnMut(&mut dyn DriverSource) -> DriverLevels,
) -> DriverLevels {
    guarded
        .iter_mut()
        .filter(|guarded| sources.contains(&guarded.driver.source()))
        .map(|guarded| {
            guarded
                .run(&mut read)
                .unwrap_or_else(|words| failed(&words))
        })
        .reduce(|first, second| DriverLevels {
            device_used: better(first.device_used, second.device_used),
            process_used: better(first.process_used, second.process_used),
            capacity: smaller(first.capacity, second.capacity),
        })
        .unwrap_or_default()
}

impl Guarded {
    fn run<T>(&mut self, ask: impl FnOnce(&mut dyn DriverSource) -> T) -> Result<T, String> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        // A source that panicked is never asked again, so nobody sees what it left behind.
        let asked = quietly(AssertUnwindSafe(|| ask(self.driver.as_mut())));
        asked.map_err(|message| {
            let failure = format!("not read again in this session: it panicked: {message}");
            self.failure.insert(failure).clone()
        })
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

/// Every level unknown, in the source's own words.
pub(super) fn failed(words: &str) -> DriverLevels {
    let level = Level::Unknown(Unknown::Failed(words.to_owned()));
    DriverLevels {
        device_used: level.clone(),
        process_used: level.clone(),
        capacity: level,
    }
}
